/** The checkpoint: what was authorised, in the status of the installation, before anything of it is written. */

import { timeText } from '../../constructs/api/conditions.ts';
import { managers } from '../../constructs/api/constants.ts';
import { installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { ApplyCheckpoint } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import type { InstallationEntry } from '../../constructs/api/payload.ts';
import type { ChangeClass } from '../../constructs/api/release.ts';
import { deepEqual, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { writeStatus } from '../kube/status.ts';
import { describeRef, type KubeObject, refOf, uidOf } from '../kube/types.ts';
import { digestsOf, enforcedPart, isEnforced } from './enforced.ts';

type Fixed = Pick<ApplyCheckpoint, 'specDigest' | 'manifestDigest' | 'baseDigest' | 'payloadDigest'>;

/** What a payload asks the checkpoint to fix. */
export const checkpointOf = (entry: InstallationEntry, payloadDigest: string): Fixed => ({
  specDigest: entry.specDigest,
  manifestDigest: entry.manifestDigest,
  baseDigest: entry.baseDigest,
  payloadDigest,
});

/**
 * The recorded trivial lifecycle that moves the checkpoint: a person has approved that what Keelson puts in itself changes,
 * objects were added, only a policy field changed, or nothing did. Whatever else a change is has been blocked before.
 */
export function authorisedClass(
  recorded: ApplyCheckpoint | undefined,
  wanted: Fixed,
  changeClass?: ChangeClass,
): ChangeClass {
  if (recorded === undefined) return 'additive';
  if (recorded.manifestDigest !== wanted.manifestDigest) return changeClass === 'keelson' ? 'keelson' : 'additive';
  return recorded.specDigest === wanted.specDigest ? 'none' : 'policy';
}

const sameFixed = (recorded: ApplyCheckpoint, wanted: Fixed): boolean =>
  recorded.specDigest === wanted.specDigest &&
  recorded.manifestDigest === wanted.manifestDigest &&
  recorded.baseDigest === wanted.baseDigest &&
  recorded.payloadDigest === wanted.payloadDigest;

/**
 * The status with the checkpoint moved, and the nodes that the payload places OVN central on; the same object when all of it
 * stands where it should.
 */
export function withCheckpoint(
  status: JsonObject,
  recorded: ApplyCheckpoint | undefined,
  wanted: Fixed,
  now: number,
  nodes: InstallationEntry['nodes'] = [],
  approved?: ChangeClass,
): JsonObject {
  const placed = nodes.length === 0 ? {} : { nodes: nodes as unknown as JsonValue };
  const placedAlready = nodes.length === 0 || deepEqual(status.nodes, nodes as unknown as JsonValue);
  if (recorded !== undefined && sameFixed(recorded, wanted)) return placedAlready ? status : { ...status, ...placed };
  const recordedAt = timeText(now);
  const changeClass = authorisedClass(recorded, wanted, approved);
  return {
    ...status,
    ...placed,
    applyCheckpoint: { ...wanted, recordedAt },
    authorisation: { changeClass, payloadDigest: wanted.payloadDigest, recordedAt },
  };
}

/**
 * The same status with what it keeps of the specification that its checkpoint fixes, so that both are written at once: another
 * one may come from Git, and be blocked, before the next look. `seen` are the object as it is and as it was admitted; the
 * specification may have changed in between.
 */
function withEnforced(status: JsonObject, seen: readonly KubeObject[]): JsonObject {
  for (const one of seen) {
    const object = { ...one, status };
    const spec = installationSpec.safeParse(one.spec ?? {});
    if (spec.success && isEnforced(digestsOf(object))) return { ...status, ...enforcedPart(object, spec.data) };
  }
  return status;
}

/** The reconciler of the same process writes the same status; how often it may have been faster. */
const mostRaces = 5;

/** Persists the checkpoint. Nothing is sent when it is recorded already. Answers what kept it from being recorded. */
export async function recordCheckpoint(
  options: {
    readonly client: KubeClient;
    readonly object: KubeObject;
    readonly recorded: ApplyCheckpoint | undefined;
    readonly wanted: Fixed;
    readonly now: number;
    /** Nodes of OVN central, in its order. */
    readonly nodes?: InstallationEntry['nodes'];
    /** Class of the change, where it is known. */
    readonly changeClass?: ChangeClass | undefined;
  },
  signal: AbortSignal,
): Promise<Problem[]> {
  const { client, object, recorded, wanted, now, nodes, changeClass } = options;
  const build = (live: KubeObject): JsonObject =>
    withEnforced(withCheckpoint(isObject(live.status) ? live.status : {}, recorded, wanted, now, nodes, changeClass), [
      live,
      object,
    ]);
  let outcome = await writeStatus(client, object, build, { fieldManager: managers.status, signal });
  for (let race = 1; outcome.type === 'lost' && race < mostRaces; race += 1) {
    const found = await client.get(refOf(object), { signal });
    if (found.type !== 'found' || uidOf(found.object) !== uidOf(object)) break;
    outcome = await writeStatus(client, found.object, build, { fieldManager: managers.status, signal });
  }
  if (outcome.type === 'written' || outcome.type === 'unchanged') return [];
  return [
    {
      reason: outcome.type === 'unavailable' || outcome.type === 'lost' ? 'ApiUnavailable' : 'CheckpointNotRecorded',
      message: `the checkpoint could not be recorded, so nothing is written: ${outcome.message}`,
      object: describeRef(refOf(object)),
      path: 'status.applyCheckpoint',
    },
  ];
}
