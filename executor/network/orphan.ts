/**
 * A confirmed delete of an installation leaves the network running: before the object goes, its objects lose their owner,
 * so that the garbage collector takes nothing along. No other value is changed, no payload is written, nothing is deleted.
 */
import { managers, orphanFinalizer } from '../../constructs/api/constants.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { definitionGone } from '../apply/definition.ts';
import { lostLedger, openLedger } from '../apply/ledger-store.ts';
import { servedKind } from '../apply/live.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject, refOf, uidOf } from '../kube/types.ts';
import type { WriteGuard } from '../release/domain.ts';
import { disown } from './disown.ts';
import { findStrays } from './orphan-strays.ts';

/** True when the orphaning finalizer is on the object. */
export const hasOrphanFinalizer = (object: KubeObject): boolean =>
  object.metadata.finalizers?.includes(orphanFinalizer) === true;

/** The part of an installation that the executor owns beside its status: its finalizer, or nothing. */
const finalizerIntent = (object: KubeObject, present: boolean): KubeObject => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  metadata: {
    name: object.metadata.name ?? '',
    namespace: object.metadata.namespace ?? '',
    ...(present ? { finalizers: [orphanFinalizer] } : {}),
  },
});

/** Puts the finalizer on, or takes it off, by server-side apply of that field alone. */
export async function setOrphanFinalizer(
  client: KubeClient,
  object: KubeObject,
  present: boolean,
  signal: AbortSignal,
): Promise<Problem[]> {
  const outcome = await client.apply(finalizerIntent(object, present), {
    fieldManager: managers.status,
    uid: uidOf(object),
    signal,
  });
  if (outcome.type === 'configured' || outcome.type === 'unchanged' || outcome.type === 'gone') return [];
  return [
    {
      reason: outcome.type === 'unavailable' ? 'ApiUnavailable' : 'FinalizerNotWritten',
      message: 'message' in outcome ? outcome.message : `the API server answered '${outcome.type}'`,
      object: describeRef(refOf(object)),
      path: 'metadata.finalizers',
    },
  ];
}

interface Orphaning {
  readonly client: KubeClient;
  readonly release: string;
  readonly namespace: string;
  readonly installationUID: string;
  readonly installationNamespace: string;
  /** Whether a payload was ever authorised for it: there is a ledger then, and without it nothing is known. */
  readonly authorised: boolean;
  readonly guard: WriteGuard;
}

/**
 * Strips the owner from every live object of the ledger that names it, in whatever state its entry is, and from what carries
 * the label of the installation although the ledger does not name it. Objects that are gone, or that another owner replaced,
 * are passed over. Answers every problem; after one the installation must stay.
 */
export async function orphanObjects(options: Orphaning, signal: AbortSignal): Promise<Problem[]> {
  const { client, release, installationUID, authorised, guard } = options;
  const opened = await openLedger(client, options, signal);
  if (!opened.ok) return [...opened.problems];
  if (authorised && opened.store.configMaps === 0) return [lostLedger(options)];
  const problems: Problem[] = [];
  const kinds = new Map<string, Awaited<ReturnType<typeof servedKind>>>();
  for (const { id, uid } of opened.store.ledger.values()) {
    const { group, kind, namespace, name } = parseObjectId(id);
    const key = `${group}/${kind}`;
    const served = kinds.get(key) ?? (await servedKind(client, group, kind, signal));
    kinds.set(key, served);
    if ('problem' in served) problems.push(served.problem);
    else {
      const problem =
        served.found === undefined
          ? await definitionGone(client, group, kind, signal)
          : await disown(
              { ...served.found, name, ...(namespace === undefined ? {} : { namespace }) },
              { id, uid },
              { client, release, owner: installationUID, guard },
              signal,
            );
      if (problem !== undefined) problems.push(problem);
    }
  }
  const known = new Set(opened.store.ledger.keys());
  const found = await findStrays({ ...options, known }, signal);
  problems.push(...found.problems);
  for (const { id, ref } of found.strays) {
    // Without a UID of the ledger only its marks say that it is ours to write.
    const left = await disown(ref, { id }, { client, release, owner: installationUID, guard }, signal);
    if (left !== undefined) problems.push(left);
  }
  return problems;
}
