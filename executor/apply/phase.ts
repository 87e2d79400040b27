/** The writes of one phase: rank after rank, the objects of a rank side by side, tombstones at the end. */
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import type { PayloadPhase } from '../../constructs/api/payload.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { WaitTimeout, waitFor } from '../../constructs/lib/wait.ts';
import { describeRef } from '../kube/types.ts';
import { eachLimited } from './concurrency.ts';
import { dryRun, type Judged } from './dryrun.ts';
import type { PassContext, StepGuard, StepResult } from './engine.ts';
import { entryOf } from './intents.ts';
import { type Item, itemRef } from './items.ts';
import { confirmGone, removeListed } from './leave.ts';
import { removeOrder, writeOrder } from './order.ts';
import { neededServices, servedBy } from './webhook.ts';
import { writeItem } from './write.ts';

const ok: StepResult = { problems: [], retry: true };

/** Objects of a phase that are as wanted without a write. */
function inPlace({ input }: PassContext, phase: PayloadPhase): number {
  return input.items.filter((item) => {
    const need = input.survey.needs.get(item.id)?.need;
    return item.phase === phase.name && need !== 'write' && need !== 'remove' && need !== 'terminating';
  }).length;
}

/** Writes what the phase needs. Objects that the server could not judge before are judged first. */
export async function writePhase(context: PassContext, phase: PayloadPhase, guard: StepGuard): Promise<StepResult> {
  const { input } = context;
  const items = input.items.filter((item) => item.phase === phase.name);
  const counter = { applied: inPlace(context, phase) };
  input.progress.applied(phase.name, counter.applied);
  const writes = items.filter((item) => input.survey.needs.get(item.id)?.need === 'write');
  const gone = items.filter((item) => input.survey.needs.get(item.id)?.need === 'gone');
  const removes = items.filter((item) => input.survey.needs.get(item.id)?.need === 'remove');
  if (writes.length + removes.length > 0) input.progress.state(phase.name, 'Applying');
  const again = await judgeAgain(
    context,
    writes.filter((item) => context.judged.get(item.id)?.partial === true),
    false,
    guard,
  );
  if (again.problems.length > 0) return again;
  const written = await writeRanks(context, phase, writes, counter, guard);
  if (written.problems.length > 0) return written;
  const removed = await removeTombstones(context, phase, removes, counter, guard);
  const problems = [...removed.problems];
  for (const { id } of gone) problems.push(...(await forget(context, id, guard)));
  if (problems.length === 0 && phase.gates.length === 0 && phase !== input.content.phases.at(-1)) {
    // The next phase begins at once: what was seen of this one is stored beside its writes.
    input.ledger.flushBeside(context.clock, context.options.ledgerQuietMs, guard.signal);
    return ok;
  }
  const flushed = await flush(context, guard);
  return problems.length > 0 ? { problems, retry: true } : flushed;
}

/** Asks the server about objects that it could not judge before. */
async function judgeAgain(
  context: PassContext,
  items: readonly Item[],
  final: boolean,
  guard: StepGuard,
): Promise<StepResult> {
  if (items.length === 0) return ok;
  const { input, client } = context;
  const judgement = await dryRun(
    {
      client,
      release: input.release,
      items: input.items,
      needs: input.survey.needs,
      bind: input.session.bind,
      namespace: input.namespace,
      signal: guard.signal,
      concurrency: context.options.concurrency,
      phaseIndex: items[0]?.phaseIndex ?? 0,
      final,
      takeBack: true,
    },
    items,
  );
  for (const [id, judged] of judgement.judged) {
    const known = context.judged.get(id);
    context.judged.set(id, judged);
    // It was judged new without the server and exists after all: the ledger learns the UID before the write.
    if (known?.partial === true && 'uid' in judged.verdict) recordIntent(context, judged, judged.verdict.uid);
  }
  return { problems: judgement.problems, retry: true };
}

function recordIntent(context: PassContext, { item }: Judged, uid: string): void {
  const { ledger } = context.input;
  const entry = ledger.ledger.get(item.id);
  if (entry !== undefined && entry.uid === undefined) ledger.put({ ...entry, uid });
}

async function writeRanks(
  context: PassContext,
  phase: PayloadPhase,
  writes: readonly Item[],
  counter: { applied: number },
  guard: StepGuard,
): Promise<StepResult> {
  for (const batch of writeOrder(writes)) {
    const late = batch.filter((item) => context.judged.get(item.id)?.partial === true);
    const unserved = await untilServed(context, late, guard);
    if (unserved.length > 0) return { problems: unserved, retry: true };
    const judged = await judgeAgain(context, late, true, guard);
    if (judged.problems.length > 0) return judged;
    const unanswered = await untilAnswered(context, batch, guard);
    if (unanswered.length > 0) return { problems: unanswered, retry: true };
    const result = await writeBatch(context, phase, batch, counter, guard);
    if (result.problems.length > 0) {
      await flush(context, guard);
      return result;
    }
  }
  return ok;
}

/** Waits until the API server serves the kinds whose CRDs were just written. */
async function untilServed(context: PassContext, items: readonly Item[], guard: StepGuard): Promise<Problem[]> {
  const { client, clock, options } = context;
  const problems: Problem[] = [];
  const kinds = new Map(items.map(({ entry }) => [`${entry.apiVersion} ${entry.kind}`, entry]));
  for (const [name, { apiVersion, kind }] of kinds) {
    try {
      await waitFor({
        what: `the API server to serve ${name}`,
        limitMs: options.kindMs,
        intervalMs: 100,
        clock,
        signal: guard.signal,
        probe: async (saw) => {
          const found = await client.resource({ apiVersion, kind }, { signal: guard.signal });
          if (found.type === 'resource') return true;
          saw(found.message);
          return undefined;
        },
      });
    } catch (error) {
      if (!(error instanceof WaitTimeout)) throw error;
      problems.push({ reason: 'KindAbsent', message: error.message });
    }
  }
  return problems;
}

/**
 * Waits until something ready stands behind the webhooks of a batch that fail closed: from the write on they could keep it
 * from ever becoming ready.
 */
async function untilAnswered(context: PassContext, batch: readonly Item[], guard: StepGuard): Promise<Problem[]> {
  const { client, clock, options } = context;
  const problems: Problem[] = [];
  for (const item of batch)
    for (const service of neededServices(item.object)) {
      const what = `ready endpoints of Service ${service.namespace}/${service.name}`;
      const object = describeRef(itemRef(item));
      try {
        const seen = await waitFor({
          what,
          limitMs: options.kindMs,
          intervalMs: 250,
          clock,
          signal: guard.signal,
          probe: async (saw) => {
            const served = await servedBy(client, service, guard.signal);
            if (served.type === 'none') saw('there are none');
            if (served.type !== 'unknown') return served.type === 'ready' ? served : undefined;
            saw(served.message);
            return served.denied ? served : undefined;
          },
        });
        if (seen.type === 'unknown') problems.push({ reason: 'Forbidden', message: seen.message, object });
      } catch (error) {
        if (!(error instanceof WaitTimeout)) throw error;
        const remedy =
          'see why its pods are not ready, or move it to a phase after theirs: what fails closed is written last';
        problems.push({ reason: 'WebhookNotServed', message: error.message, object, remedy });
      }
    }
  return problems;
}

async function writeBatch(
  context: PassContext,
  phase: PayloadPhase,
  batch: readonly Item[],
  counter: { applied: number },
  guard: StepGuard,
): Promise<StepResult> {
  const { input, client, clock, options } = context;
  const problems: Problem[] = [];
  let retry = true;
  const seen = (id: string) => input.survey.live.get(id);
  const deps = {
    client,
    clock,
    signal: guard.signal,
    check: guard.check,
    replaceMs: options.goneMs,
    seen,
    takeBack: true,
  };
  await eachLimited(batch, options.concurrency, async (item) => {
    // After a failure nothing new is begun; what is under way ends.
    if (problems.length > 0) return;
    const judged = context.judged.get(item.id);
    if (judged === undefined) throw new TypeError(`${item.id} was never judged`);
    const outcome = await writeItem(judged, deps).catch((error: unknown) => {
      input.doubt(item.id);
      throw error;
    });
    if (!outcome.ok && outcome.held !== undefined) {
      input.progress.held = [...input.progress.held, { id: item.id, by: outcome.held }];
      counter.applied += 1;
      input.progress.applied(phase.name, counter.applied);
      return;
    }
    if (!outcome.ok) {
      problems.push(outcome.problem);
      retry &&= outcome.retry;
      return;
    }
    context.counts[outcome.result] += 1;
    if (outcome.answer !== undefined) input.watch.written(judged, outcome.answer);
    if (outcome.result !== 'left') input.ledger.put(applied(item, input.digest, outcome.uid));
    counter.applied += 1;
    input.progress.applied(phase.name, counter.applied);
    if (counter.applied % options.ledgerBatch === 0)
      input.ledger.flushBeside(clock, options.ledgerQuietMs, guard.signal);
  });
  return { problems, retry };
}

/** The ledger entry of an object that was written. */
export const applied = (item: Item, payload: string, uid: string): LedgerEntry =>
  entryOf(item, payload, 'applied', uid);

async function removeTombstones(
  context: PassContext,
  phase: PayloadPhase,
  removes: readonly Item[],
  counter: { applied: number },
  guard: StepGuard,
): Promise<StepResult> {
  const { input, options } = context;
  const problems: Problem[] = [];
  for (const batch of removeOrder(removes)) {
    await eachLimited(batch, options.concurrency, async (item) => {
      const need = input.survey.needs.get(item.id);
      if (need?.need !== 'remove') return;
      const problem = await removeListed(context, { id: item.id, ref: itemRef(item), uid: need.uid }, guard);
      if (problem !== undefined) {
        problems.push(problem);
        return;
      }
      counter.applied += 1;
      input.progress.applied(phase.name, counter.applied);
    });
    if (problems.length > 0) break;
  }
  return { problems, retry: true };
}

/** Lets go of an id whose object the listing did not show; one that has only lost its label is removed all the same. */
async function forget(context: PassContext, id: string, guard: StepGuard): Promise<Problem[]> {
  const { input } = context;
  const item = input.items.find((candidate) => candidate.id === id);
  const entry = input.ledger.ledger.get(id);
  if (item === undefined || entry === undefined) return [];
  if (entry.state === 'unmanaged') {
    // Nothing shows that it was ever ours: what has that name stays.
    input.ledger.remove(id);
    return [];
  }
  const ref = itemRef(item);
  const still = await confirmGone(context, { id, ref, uid: entry.uid }, guard.signal);
  if (still.type === 'unknown') return [still.problem];
  if (still.type === 'forgotten' || entry.uid === undefined) return [];
  const problem = await removeListed(context, { id, ref, uid: entry.uid }, guard);
  return problem === undefined ? [] : [problem];
}

async function flush({ input }: PassContext, guard: StepGuard): Promise<StepResult> {
  const problem = await input.ledger.flush(guard.signal);
  return problem === undefined ? ok : { problems: [problem], retry: true };
}
