import { annotations, apiVersion, labels } from '../../constructs/api/constants.ts';
import { formatUninstall, type UninstallRecord, type UninstallRequest } from '../../constructs/api/uninstall.ts';
import { formatProblems, type Problem } from '../../constructs/lib/problems.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { claimant } from '../../executor/apply/need.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf, uidOf } from '../../executor/kube/types.ts';
import { findInstallation } from '../../executor/network/find.ts';
import { readUninstallRecord } from '../../executor/release/uninstall-record.ts';
import type { Invocation } from '../invocation.ts';
import { progressLine, readReleases } from '../releases.ts';

/** Field manager of the annotations that a person's command sets; no courier has it. */
const fieldManager = 'keelson-uninstall';
const pollMs = 500;

export interface Uninstalling {
  readonly invocation: Invocation;
  readonly client: KubeClient;
  readonly target: { readonly release: string; readonly namespace: string };
  readonly limitMs: number;
}

/** The cluster refused something: not an error of the input, so the exit status is 1. */
class UninstallError extends Error {
  override readonly name = 'UninstallError';
  constructor(problems: readonly Problem[]) {
    super(formatProblems(problems));
  }
}

const refused = (ref: ObjectRef, message: string): UninstallError =>
  new UninstallError([
    { reason: 'ApplyFailed', message, object: describeRef(ref), remedy: 'run it again; it goes on' },
  ]);

/** Sets one annotation on the object with this UID. */
async function annotate(
  { client, invocation }: Uninstalling,
  ref: ObjectRef,
  uid: string,
  [key, value]: readonly [string, string],
): Promise<void> {
  const object: KubeObject = {
    apiVersion: ref.apiVersion,
    kind: ref.kind,
    metadata: {
      name: ref.name,
      ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }),
      annotations: { [key]: value },
    },
  };
  const outcome = await client.apply(object, { fieldManager, uid, signal: invocation.signal });
  if (!('object' in outcome) && outcome.type !== 'gone') throw refused(ref, outcome.message);
}

const releaseRef = ({ release, namespace }: Uninstalling['target']): ObjectRef => ({
  apiVersion,
  kind: 'Release',
  namespace,
  name: release,
});

/** Asks the executor for an uninstall that a person has approved. */
export async function requestUninstall(work: Uninstalling, uid: string, request: UninstallRequest): Promise<void> {
  await annotate(work, releaseRef(work.target), uid, [annotations.uninstall, formatUninstall(request)]);
}

/** Tells every change until the executor has done its part. @throws WaitTimeout; the executor goes on all the same. */
export async function followUninstall(work: Uninstalling, { digest }: UninstallRequest): Promise<UninstallRecord> {
  const { client, invocation, target, limitMs } = work;
  const { signal, clock } = invocation;
  let told = '';
  return waitFor({
    what: `the executor to uninstall ${target.release}`,
    limitMs,
    intervalMs: pollMs,
    clock,
    signal,
    probe: async (saw) => {
      const read = await readUninstallRecord(client, target, signal);
      if ('problem' in read) saw(read.problem.message);
      else if (read.record?.digest === digest && read.record.state === 'done') return read.record;
      const release = (await readReleases(client, target.namespace, signal)).find(
        ({ name }) => name === target.release,
      );
      const line = release === undefined ? `${target.release} is gone` : progressLine(release);
      if (line !== told) invocation.err(line);
      told = line;
      saw(line);
      return undefined;
    },
  });
}

/** Confirms and deletes one object that stands for a running system, and waits until it is gone. */
async function deleteConfirmed(work: Uninstalling, ref: ObjectRef): Promise<void> {
  const { client, invocation, limitMs } = work;
  const { signal, clock } = invocation;
  const found = await client.get(ref, { signal });
  if (found.type === 'absent' || found.type === 'kindAbsent') return;
  if (found.type !== 'found') throw refused(ref, found.message);
  const uid = uidOf(found.object);
  if (typeof found.object.metadata.deletionTimestamp !== 'string') {
    await annotate(work, ref, uid, [annotations.confirmDelete, uid]);
    const outcome = await client.delete(ref, { uid, propagation: 'Background', signal });
    if ('message' in outcome) throw refused(ref, outcome.message);
  }
  await waitFor({
    what: `${describeRef(ref)} to go`,
    limitMs,
    intervalMs: pollMs,
    clock,
    signal,
    probe: async (saw) => {
      const live = await client.get(ref, { signal });
      if (live.type === 'absent' || (live.type === 'found' && uidOf(live.object) !== uid)) return true;
      if (live.type === 'found') saw(`finalizers: ${live.object.metadata.finalizers?.join(', ') || 'none'}`);
      return undefined;
    },
  });
}

/** Removes what stands for a release whose objects are no longer ours: its specification, the Release, its records. */
export async function finishUninstall(
  work: Uninstalling,
  { handsOver }: Pick<UninstallRecord, 'handsOver'>,
): Promise<void> {
  const { release } = work.target;
  if (release.startsWith('network-')) {
    const found = await findInstallation(work.client, release, work.invocation.signal);
    if ('problem' in found) throw new UninstallError([found.problem]);
    if (found.installation !== undefined) await deleteConfirmed(work, refOf(found.installation));
  }
  await deleteConfirmed(work, releaseRef(work.target));
  await removeRecords(work, handsOver === true);
}

/**
 * ConfigMaps of the release: its payloads, ledger, plan and reports; nobody reads them any more. Only an empty ledger tells
 * another release that an object is free for it, so it stays where objects change hands.
 */
async function removeRecords({ client, invocation, target }: Uninstalling, handsOver: boolean): Promise<void> {
  const { signal } = invocation;
  const selection = { apiVersion: 'v1', kind: 'ConfigMap', namespace: target.namespace };
  const labelSelector = `${labels.release}=${target.release},${labels.holds}`;
  const listed = await client.list({ ...selection, labelSelector }, { signal, metadataOnly: true });
  if (listed.type !== 'listed') throw refused({ ...selection, name: '*' }, listed.message);
  for (const item of listed.items) {
    if (handsOver && item.metadata.labels?.[labels.holds] === 'ledger') continue;
    const ref = { ...selection, name: item.metadata.name ?? '' };
    const outcome = await client.delete(ref, { uid: uidOf(item), propagation: 'Background', signal });
    if ('message' in outcome) throw refused(ref, outcome.message);
  }
}

export interface DefinitionsLeft {
  readonly deleted: readonly string[];
  /** Name, and why it stays. */
  readonly left: readonly (readonly [name: string, why: string])[];
}

/** Deletes the definitions of a release, each by its UID, and only where no object of it is left. */
export async function deleteDefinitions(
  { client, invocation, target }: Uninstalling,
  { definitions }: UninstallRecord,
): Promise<DefinitionsLeft> {
  const { signal } = invocation;
  const deleted: string[] = [];
  const left: [string, string][] = [];
  for (const { name, uid } of definitions) {
    const ref = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name };
    const found = await client.get(ref, { signal });
    if (found.type === 'absent' || (found.type === 'found' && uidOf(found.object) !== uid)) continue;
    const why =
      found.type === 'found'
        ? (claimed(found.object, target.release) ?? (await inUse(client, found.object, signal)))
        : found.message;
    if (why !== undefined) {
      left.push([name, why]);
      continue;
    }
    const outcome = await client.delete(ref, { uid, propagation: 'Background', signal });
    if ('message' in outcome) left.push([name, outcome.message]);
    else deleted.push(name);
  }
  return { deleted, left };
}

/** Why a definition must stay: another release has taken it up since. */
function claimed({ metadata }: KubeObject, release: string): string | undefined {
  const by = claimant(metadata, release);
  return by === undefined ? undefined : `Release ${by} has it`;
}

/** Why a definition must stay: it has objects, or it is not known that it has none. */
async function inUse(client: KubeClient, definition: KubeObject, signal: AbortSignal): Promise<string | undefined> {
  const { group, names, versions } = definition.spec as {
    group: string;
    names: { kind: string };
    versions: { name: string; served: boolean }[];
  };
  const served = versions.find((version) => version.served);
  if (served === undefined) return 'no version of it is served, so its objects can not be counted';
  const kind = { apiVersion: `${group}/${served.name}`, kind: names.kind };
  const listed = await client.list(kind, { signal, metadataOnly: true });
  if (listed.type !== 'listed') return listed.message;
  return listed.items.length === 0 ? undefined : `${listed.items.length} object(s) of it are left`;
}
