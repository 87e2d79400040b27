/** The writes of drift repair. A value that an Update took is given up by its holder, then applied; never by force. */
import type { Problem } from '../../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, refOf, resourceVersionOf, uidOf } from '../../kube/types.ts';
import { dryRun, type Judged } from '../dryrun.ts';
import type { StepGuard } from '../engine.ts';
import { intents } from '../intents.ts';
import { itemRef } from '../items.ts';
import type { Need } from '../need.ts';
import { applied } from '../phase.ts';
import { type WriteDeps, writeItem } from '../write.ts';
import type { Bound } from './bound.ts';
import type { Drifted } from './decide.ts';
import { wholeObject } from './fights.ts';
import { somebody, withoutTaken } from './holders.ts';
import type { MendContext } from './mend.ts';

/** What one object needs. */
export type Mend =
  | { readonly how: 'create'; readonly bound: Bound; readonly need: Need }
  | {
      readonly how: 'setBack';
      readonly bound: Bound;
      readonly intent: KubeObject;
      readonly live: KubeObject;
      /** The version that its watch showed before it was read. */
      readonly shown: string | undefined;
      readonly drifted: Drifted;
    };

type SetBack = Extract<Mend, { readonly how: 'setBack' }>;

const writeDeps = ({ client, clock, options }: MendContext, { signal, check }: StepGuard): WriteDeps => ({
  client,
  clock,
  signal,
  check,
  replaceMs: options.goneMs,
});

/**
 * The same, but an apply holds for one version only: between the look and the write a Lease may have been waited for, and
 * whoever marked the object meanwhile is not written over. The server refuses, and the object is looked at again.
 */
const pinned = ({ client, ...deps }: WriteDeps, resourceVersion: string): WriteDeps => ({
  ...deps,
  client: { ...client, apply: (object, options) => client.apply(object, { ...options, resourceVersion }) },
});

/** Sets the fields of one object back. */
export async function setBack(context: MendContext, mend: SetBack, guard: StepGuard): Promise<void> {
  const { state, input, clock, ledger } = context;
  const { bound, intent, drifted } = mend;
  const { item } = bound;
  const version = await giveUp(context, mend, guard);
  if (version === undefined) return;
  const verdict = { verdict: 'ours', uid: uidOf(mend.live), version } as const;
  const deps = pinned(writeDeps(context, guard), version);
  const outcome = await writeItem({ item, intent, verdict, partial: false }, deps).catch((error: unknown) => {
    input.doubt(item.id);
    throw error;
  });
  if (!outcome.ok) {
    state.failed(item.id, outcome.problem);
    return;
  }
  const entry = ledger.ledger.get(item.id);
  if (entry?.uid === undefined) ledger.put(applied(item, input.digest, outcome.uid));
  if (outcome.answer !== undefined) state.answers.take(bound, outcome.answer);
  const elapsedMs = clock.monotonic() - state.since(item.id);
  // The server wrote the value its own way all along: nothing was set back.
  if (outcome.result !== 'unchanged') repaired(context, bound, drifted, outcome.answer, { created: false, elapsedMs });
  const { shown, live } = mend;
  state.looked(item.id, [shown, resourceVersionOf(live), version, outcome.answer?.metadata.resourceVersion]);
}

/** Takes what drifted out of the entries of those who took it. Answers the version of the object, or undefined when it changed meanwhile. */
async function giveUp(
  { client, state }: MendContext,
  { bound, live, drifted }: SetBack,
  guard: StepGuard,
): Promise<string | undefined> {
  const resourceVersion = resourceVersionOf(live);
  const entries = live.metadata.managedFields ?? [];
  const left = withoutTaken(entries, drifted.taken);
  if (left.every((entry, place) => entry === entries[place]) && left.length === entries.length) return resourceVersion;
  guard.check();
  const patch = { uid: uidOf(live), resourceVersion, entries: left };
  const given = await client.replaceManagedFields(refOf(live), patch, { signal: guard.signal });
  if (given.type === 'updated') return resourceVersionOf(given.object);
  const message = given.type === 'absent' ? 'it is gone' : given.message;
  const reason = given.type === 'forbidden' ? 'Forbidden' : 'ObjectChanged';
  const passing = given.type === 'stale' || given.type === 'absent';
  state.failed(bound.item.id, passing ? undefined : { reason, message, object: describeRef(itemRef(bound.item)) });
  return undefined;
}

function repaired(
  { state, clock, input }: MendContext,
  { item, intent }: Bound,
  { fields, managers }: Pick<Drifted, 'fields' | 'managers'>,
  object: KubeObject | undefined,
  more: { readonly created: boolean; readonly elapsedMs: number },
): void {
  state.fights.repaired(item.id, fields, clock.monotonic());
  const fight = state.fights.of(item.id);
  // One more try of a fight: the longer pause after it tells whether it was the last.
  if (fight !== undefined) state.fights.begin(fight, clock.monotonic());
  input.tell({ type: 'repaired', object: object ?? intent, fields, managers, ...more });
}

/** Creates objects that somebody deleted. The ledger forgets their UIDs first, and learns the new ones afterwards. */
export async function createAgain(
  context: MendContext,
  mends: readonly Mend[],
  guard: StepGuard,
): Promise<{ readonly passNeeded: boolean; readonly lost?: Problem }> {
  if (mends.length === 0) return { passNeeded: false };
  const { state, followed, ledger, client, input } = context;
  const needs = new Map(mends.flatMap((mend) => (mend.how === 'create' ? [[mend.bound.item.id, mend.need]] : [])));
  const items = mends.map(({ bound }) => bound.item);
  const judgement = await dryRun(
    {
      client,
      release: followed.release,
      namespace: input.namespace,
      items: followed.items,
      needs,
      bind: input.session.bind,
      signal: guard.signal,
    },
    items,
  );
  // What can not be judged alone is the work of a whole pass, which knows what comes before what.
  const alone = [...judgement.judged.values()].filter(({ partial, verdict }) => !partial && verdict.verdict === 'new');
  const others = items.filter(({ id }) => !alone.some(({ item }) => item.id === id));
  for (const { id } of others) state.failed(id, undefined);
  if (alone.length === 0) return { passNeeded: true };
  const judged = new Map(alone.map((one) => [one.item.id, one]));
  const entries = intents({
    payload: input.digest,
    items: alone.map(({ item }) => item),
    needs,
    judged,
    ledger: ledger.ledger,
  });
  for (const entry of entries) ledger.put(entry);
  guard.check();
  const lost = await ledger.flush(guard.signal);
  if (lost !== undefined) return { passNeeded: true, lost };
  for (const one of alone) await createOne(context, one, guard);
  return { passNeeded: others.length > 0 };
}

async function createOne(context: MendContext, judged: Judged, guard: StepGuard): Promise<void> {
  const { state, input, ledger, clock } = context;
  const { item } = judged;
  const bound = state.bound(item.id);
  const outcome = await writeItem(judged, writeDeps(context, guard)).catch((error: unknown) => {
    input.doubt(item.id);
    throw error;
  });
  if (!outcome.ok) {
    state.failed(item.id, outcome.problem);
    return;
  }
  ledger.put(applied(item, input.digest, outcome.uid));
  if (bound === undefined) return;
  if (outcome.answer !== undefined) state.answers.written(bound, judged, outcome.answer);
  const elapsedMs = clock.monotonic() - state.since(item.id);
  const what = { fields: [wholeObject], managers: [somebody] };
  repaired(context, bound, what, outcome.answer, { created: true, elapsedMs });
  state.looked(item.id, [outcome.answer?.metadata.resourceVersion]);
}
