/** What is looked at before the first write of a network that nothing is known of yet. */

import { probeContainers } from '../../constructs/api/constants.ts';
import { isObject, objectsOf } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { Item } from '../apply/items.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';
import { pinOf } from '../observe/retained.ts';
import { type NamespaceLabels, podSecurityProblems, privilegedNamespaces } from './pod-security.ts';
import { hostQuestion, workloadNamed } from './preflight.ts';
import type { PreflightPlan } from './preflight-job.ts';
import { rangeProblems, rangesOf } from './ranges.ts';
import { installationRef, type NetworkSnapshot } from './snapshot.ts';

/**
 * Whether this is the first install: no payload of it was ever authorised, no topology of it is retained, and nothing that
 * exists is to be taken over.
 */
function isFirstInstall({ installation }: NetworkSnapshot): boolean {
  if (installation === undefined || installation.checkpoint !== undefined) return false;
  return pinOf(installation.object.status) === undefined && installation.spec.adoption?.enabled !== true;
}

const intentsOf = (items: readonly Item[]): KubeObject[] =>
  items.filter(({ entry }) => !entry.absent).map(({ object }) => object);

/** The ranges of Services as the API server has them, where it tells them. */
async function serviceCIDRs(client: KubeClient, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const ref = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', name: 'kubernetes' };
  const read = await client.get(ref, { signal });
  const cidrs = read.type === 'found' ? read.object.spec?.cidrs : undefined;
  return Array.isArray(cidrs) && cidrs.length > 0 ? cidrs.map(String) : undefined;
}

const stringLabels = (object: KubeObject): Record<string, string> => object.metadata.labels ?? {};

/** Labels of a namespace as they will be: what is there, and what the payload sets. */
async function namespaceLabels(
  client: KubeClient,
  name: string,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<NamespaceLabels | Problem> {
  const own = objects.find(({ kind, metadata }) => kind === 'Namespace' && metadata.name === name);
  const read = await client.get({ apiVersion: 'v1', kind: 'Namespace', name }, { signal });
  if (read.type !== 'found' && read.type !== 'absent')
    return { reason: 'ApiUnavailable', message: read.message, object: `Namespace ${name}` };
  const live = read.type === 'found' ? stringLabels(read.object) : {};
  return { name, labels: { ...live, ...(own === undefined ? {} : stringLabels(own)) } };
}

/** What the cluster has against this network, as far as the API server tells; everything at once. */
export async function clusterProblems(
  items: readonly Item[],
  snapshot: NetworkSnapshot,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Problem[]> {
  const { installation, nodes } = snapshot;
  if (installation === undefined || !isFirstInstall(snapshot)) return [];
  const objects = intentsOf(items);
  const ranges = rangesOf(objects);
  const names = privilegedNamespaces(objects);
  const spaces = await Promise.all(names.map((name) => namespaceLabels(client, name, objects, signal)));
  const { networkStack: stack, dataPlane } = installation.spec;
  const { namespace = '', name = '' } = installation.object.metadata;
  return [
    ...spaces.flatMap((one) => ('reason' in one ? [one] : podSecurityProblems(objects, [one]))),
    ...(ranges === undefined
      ? []
      : rangeProblems({
          object: describeRef(installationRef({ namespace, name })),
          stack,
          selector: dataPlane.nodeSelector ?? {},
          ranges,
          nodes,
          serviceCIDRs: await serviceCIDRs(client, signal),
        })),
  ];
}

/**
 * The looks at nodes that a payload needs: none where it brings no database to a node, and none where it brings no probe,
 * since then there is no image that could look.
 */
export function preflightPlan(
  items: readonly Item[],
  snapshot: NetworkSnapshot,
  nodes: readonly string[],
): PreflightPlan | undefined {
  if (snapshot.installation === undefined || !isFirstInstall(snapshot) || nodes.length === 0) return undefined;
  const objects = intentsOf(items);
  const question = hostQuestion(objects);
  const central = workloadNamed(objects, 'ovn-central');
  const template = isObject(central?.spec?.template) ? central.spec.template : {};
  const pod = isObject(template.spec) ? template.spec : {};
  const image = objectsOf(pod.containers).find(({ name }) => name === probeContainers.central)?.image;
  const namespace = central?.metadata.namespace;
  if (question === undefined || typeof image !== 'string' || namespace === undefined) return undefined;
  const pullSecrets = objectsOf(pod.imagePullSecrets);
  return { namespace, installationUID: snapshot.installation.uid, image, pullSecrets, question, nodes };
}
