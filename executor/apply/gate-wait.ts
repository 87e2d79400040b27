/** Opens the gates of a phase: looks, reports, waits; every wait has a limit or says that it has none, and can be cancelled. */
import type { Gate, PayloadPhase } from '../../constructs/api/payload.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeObject, ObjectRef } from '../kube/types.ts';
import type { GateScope, GateVerdict } from '../release/domain.ts';
import { commonGate, gateMessage, observedItems, patience } from '../release/gates.ts';
import type { PassContext } from './engine.ts';
import type { Item } from './items.ts';
import { kindsOf, readLive } from './live.ts';

/**
 * `block`: wait until they open. `stop`: look once and stop at a phase whose gates are shut. `observe`: look once and go
 * on, since the payload was through all of them before.
 */
export type GateMode = 'block' | 'stop' | 'observe';

export type GatesOutcome =
  /** `waited`: for how they stand now time has passed in which anything may have changed. */
  | { readonly type: 'open'; readonly waited: boolean }
  | { readonly type: 'shut' }
  | { readonly type: 'failed'; readonly problems: readonly Problem[] };

interface Judgement {
  readonly gate: Gate;
  readonly verdict: GateVerdict;
  /** What it looks at. */
  readonly observed: readonly Item[];
}

/** A gate opens when its verdict is True, or when a test executor bypasses it. */
export const isOpen = (verdict: GateVerdict): boolean => verdict.state === 'True' || verdict.bypassed === true;

/**
 * The first look after this long, each next one after twice as long, up to the usual pace, and sooner when what is watched
 * has changed and come to rest: definitions are served in a moment.
 */
const firstPollMs = 100;

/** Looks at the gates of a phase until the mode says that this is enough. */
export async function passGates(context: PassContext, phase: PayloadPhase): Promise<GatesOutcome> {
  const { input, clock, options } = context;
  if (phase.gates.length === 0) return { type: 'open', waited: false };
  const upTo = input.content.phases.slice(0, input.content.phases.indexOf(phase) + 1).map(({ name }) => name);
  const items = input.items.filter((item) => upTo.includes(item.phase));
  for (let wait = firstPollMs; ; wait *= 2) {
    const since = clock.monotonic();
    const looked = await look(context, phase, items);
    if (!Array.isArray(looked)) return { type: 'failed', problems: looked.problems };
    input.progress.gates(phase.name, looked);
    const shut = looked.filter(({ verdict }) => !isOpen(verdict));
    if (shut.length === 0) return { type: 'open', waited: wait > firstPollMs };
    input.progress.state(phase.name, 'Waiting');
    const expired = expiredGates(context, phase, shut);
    if (expired.length > 0) return { type: 'failed', problems: expired };
    if (input.gates !== 'block') return { type: 'shut' };
    await input.watch.meanwhile();
    const awaited = shut.flatMap(({ observed }) => observed);
    await input.watch.pause(Math.min(wait, options.gatePollMs), since, input.signal, awaited);
  }
}

function expiredGates({ input, clock }: PassContext, phase: PayloadPhase, shut: readonly Judgement[]): Problem[] {
  const records = input.progress.phases.find(({ name }) => name === phase.name)?.gates ?? [];
  return shut.flatMap(({ gate, verdict }): Problem[] => {
    const record = records.find((r) => r.gate.type === gate.type && r.gate.scope === gate.scope);
    const elapsed = record === undefined ? 0 : clock.now() - record.since;
    if (patience(gate, elapsed).kind !== 'expired') return [];
    const object = verdict.object === undefined ? {} : { object: verdict.object };
    return [{ reason: 'GateExpired', message: gateMessage(gate, verdict, elapsed), ...object }];
  });
}

/** One look at all gates of a phase: one list per kind that they judge, and one read per named target. */
async function look(
  context: PassContext,
  phase: PayloadPhase,
  items: readonly Item[],
): Promise<Judgement[] | { readonly problems: readonly Problem[] }> {
  const { input, client, clock, options } = context;
  const scopeOf = (gate: Gate): readonly Item[] =>
    input.session.scope(gate.scope, items) ?? items.filter((item) => item.phase === gate.scope);
  const observedBy = new Map(phase.gates.map((gate) => [gate, observedItems(gate, scopeOf(gate))]));
  const observed = new Set([...observedBy.values()].flat());
  const read = await readLive(
    client,
    { release: input.release, kinds: kindsOf([...observed]), whole: true },
    input.signal,
  );
  if (!read.ok) return { problems: read.problems };
  const scopes = new Map<Gate, GateScope>();
  for (const gate of phase.gates)
    scopes.set(gate, {
      phase: phase.name,
      items: scopeOf(gate),
      live: read.live,
      now: clock.now(),
      ...(await targetOf(context, gate)),
    });
  const told = (gate: Gate, verdict: GateVerdict): GateVerdict => {
    const bypassed = verdict.state !== 'True' && options.bypassGates.has(gate.type);
    return bypassed ? { ...verdict, bypassed } : verdict;
  };
  const common = (gate: Gate): boolean => {
    const scope = scopes.get(gate);
    return scope !== undefined && isOpen(told(gate, commonGate(gate, scope)));
  };
  const deps = { client, clock, signal: input.signal };
  const judge = await input.session.gates(phase.name, phase.gates, deps, common);
  return [...scopes].map(([gate, scope]) => {
    const verdict = told(gate, judge(gate, scope) ?? commonGate(gate, scope));
    return { gate, verdict, observed: observedBy.get(gate) ?? [] };
  });
}

async function targetOf({ client, input }: PassContext, gate: Gate): Promise<{ target?: KubeObject }> {
  const { target } = gate;
  if (target === undefined) return {};
  const { apiVersion, kind, name, namespace } = target;
  const ref: ObjectRef = { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
  const live = await client.get(ref, { signal: input.signal });
  return live.type === 'found' ? { target: live.object } : {};
}
