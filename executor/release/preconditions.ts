/** What must hold in the cluster before a payload is accepted; each check answers all that it finds. */
import { X509Certificate } from 'node:crypto';
import { specDigest } from '../../constructs/api/digests.ts';
import type { InstallationEntry, PayloadContent, Requirement } from '../../constructs/api/payload.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { activeOwners, foreignReconciler } from '../apply/foreign.ts';
import { type Item, itemRef } from '../apply/items.ts';
import type { LiveIndex } from '../apply/need.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';
import { conditionReadiness } from './readiness.ts';

const unavailable = (message: string): Problem => ({ reason: 'ApiUnavailable', message });

/** What was rendered is for this very cluster. */
export async function checkCluster(
  client: KubeClient,
  content: Pick<PayloadContent, 'cluster' | 'clusterUID'>,
  signal: AbortSignal,
): Promise<Problem[]> {
  if (content.clusterUID === undefined) return [];
  const answer = await client.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' }, { signal });
  if (answer.type === 'absent') return [unavailable('namespace kube-system does not exist')];
  if (answer.type !== 'found') return [unavailable(answer.message)];
  const { uid } = answer.object.metadata;
  if (uid === content.clusterUID) return [];
  return [
    {
      reason: 'ClusterMismatch',
      message: `it is for the cluster with UID ${content.clusterUID} (${content.cluster}); this one is ${String(uid)}`,
      remedy: 'deliver the folder of this cluster, or correct spec.clusterUID in cluster.yaml',
    },
  ];
}

/** Secrets that rendered objects refer to exist, and have the keys; no value is kept or told. */
export async function checkRequirements(
  client: KubeClient,
  requires: readonly Requirement[],
  signal: AbortSignal,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const requirement of requires) {
    const { namespace, name } = requirement;
    const object = `Secret ${namespace}/${name}`;
    const answer = await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name }, { signal });
    if (answer.type === 'absent' || answer.type === 'namespaceMissing')
      problems.push({ reason: 'RequirementMissing', message: 'it does not exist', object, remedy: 'create it' });
    else if (answer.type !== 'found') problems.push({ ...unavailable(answer.message), object });
    else problems.push(...checkSecret(requirement, answer.object).map((problem) => ({ ...problem, object })));
  }
  return problems;
}

function checkSecret({ keys, notAfter }: Requirement, secret: KubeObject): Problem[] {
  const data = isObject(secret.data) ? secret.data : {};
  const missing = keys.filter((key) => data[key] === undefined);
  const problems: Problem[] = [];
  if (missing.length > 0)
    problems.push({
      reason: 'RequirementMissing',
      message: `keys ${missing.join(', ')} are missing`,
      remedy: 'add them',
    });
  if (notAfter === undefined) return problems;
  for (const key of keys) {
    const ends = certificateEnd(data[key]);
    if (ends !== undefined && ends < Date.parse(notAfter))
      problems.push({
        reason: 'RequirementExpires',
        message: `the certificate under ${key} ends ${new Date(ends).toISOString()}, before ${notAfter}`,
        remedy: 'renew it',
      });
  }
  return problems;
}

/** When the first certificate of a value ends; undefined when the value holds none. */
function certificateEnd(value: unknown): number | undefined {
  const text = Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('utf8');
  if (!text.includes('BEGIN CERTIFICATE')) return undefined;
  try {
    return Date.parse(new X509Certificate(text).validTo);
  } catch {
    return undefined;
  }
}

/** The live specs are those that the payload was rendered from; while they are not, the old payload stays. */
export async function checkSpecs(deps: SpecDeps, content: PayloadContent, signal: AbortSignal): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const installation of content.installations) problems.push(...(await checkSpec(deps, installation, signal)));
  return problems;
}

interface SpecDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
}

async function checkSpec(
  { client, clock }: SpecDeps,
  installation: InstallationEntry,
  signal: AbortSignal,
): Promise<Problem[]> {
  const { apiVersion, kind, namespace, name } = installation;
  const ref = { apiVersion, kind, namespace, name };
  const object = describeRef(ref);
  const answer = await client.get(ref, { signal });
  if (answer.type === 'absent' || answer.type === 'kindAbsent' || answer.type === 'namespaceMissing')
    return [
      { reason: 'SpecPayloadSkew', message: 'it has not been delivered yet', object, remedy: 'deliver unit 30-specs' },
    ];
  if (answer.type !== 'found') return [{ ...unavailable(answer.message), object }];
  const manager = foreignReconciler(answer.object, clock.now());
  const foreign: Problem[] =
    manager === undefined
      ? []
      : [
          {
            reason: 'ForeignController',
            message: `controller ${manager} reconciles it too: it wrote its status less than ten minutes ago`,
            object,
            remedy: 'stop that controller; then the release goes on by itself',
          },
        ];
  const live = specDigest({ apiVersion, kind }, answer.object.spec ?? {});
  if (live === installation.specDigest) return foreign;
  return [
    ...foreign,
    {
      reason: 'SpecPayloadSkew',
      message: `its spec has digest ${live}, the payload was rendered from ${installation.specDigest}`,
      object,
      remedy: 'deliver all units of one commit',
    },
  ];
}

/** Objects that are ours, and that another tool writes too. What is not ours the dry run tells of. */
export function checkOwners(items: readonly Item[], live: LiveIndex): Problem[] {
  return items.flatMap((item): Problem[] => {
    const metadata = live.get(item.id);
    return (metadata === undefined ? [] : activeOwners(metadata)).map(({ owner, manager }) => ({
      reason: 'ForeignController',
      message: `${owner} looks after it too: ${manager} writes fields of it`,
      object: describeRef(itemRef(item)),
      remedy: `take the object out of ${owner}, so that one of the two is left; then the release goes on by itself`,
    }));
  });
}

/** Releases that must be ready first, by their name. */
export function checkDependencies(
  dependsOn: readonly { readonly name: string }[],
  releaseOf: (name: string) => KubeObject | undefined,
): Problem[] {
  return dependsOn.flatMap(({ name }): Problem[] => {
    const release = releaseOf(name);
    const object = `Release ${name}`;
    if (release === undefined) return [{ reason: 'DependencyNotReady', message: 'it does not exist', object }];
    const readiness = conditionReadiness(release, 'Ready');
    if (readiness.state === 'True') return [];
    return [{ reason: 'DependencyNotReady', message: readiness.message, object }];
  });
}
