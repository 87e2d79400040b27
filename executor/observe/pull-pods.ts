/**
 * Asks the sidecars of nodes: each once, straight, few at a time; then, for a while, those that nobody could reach once more
 * through their kubelets. That nodes are out of reach holds up neither the others nor the round, however many they are.
 */
import { timings } from '../../constructs/api/constants.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { ProbeTarget } from '../evidence/target.ts';
import { type AskWays, missedBoth } from './ask-ways.ts';
import { pullAll } from './pull-all.ts';
import type { Outcome, PodFacts } from './round.ts';
import type { Pullable } from './schedule.ts';

/** How somebody was when he was asked last. */
export interface Asked {
  readonly fingerprint: string;
  readonly healthy: boolean;
  readonly askedTick: number;
  /** When his kubelet was asked last. */
  readonly retriedTick?: number;
}

/** By id of the target; who was not asked in a round drops out of it. */
export type AskedBefore = ReadonlyMap<string, Asked>;

export interface Pulls extends AskWays {
  readonly clock: Clock;
  /** How many nodes are asked at a time. */
  readonly atOnce: number;
  /** How long kubelets are asked in a round; by default {@link timings.evidence.retryMs}. */
  readonly retryMs?: number;
  readonly before: AskedBefore;
  /** Told how everybody was. */
  readonly asked: Map<string, Asked>;
}

/** What must stay as it was for an answer to count: the pod, where it is, and the instances of its containers. */
export const fingerprint = ({ uid, node, addresses, containers }: PodFacts): string =>
  JSON.stringify([uid, node, addresses, containers.map(({ name, id, restarts }) => [name, id, restarts])]);

/** What pods answer, by their UID; one pod of a node is asked. `targetOf` says what of a pod is asked. */
export async function pullPods<K extends 'chassis' | 'network'>(
  kind: K,
  pods: readonly PodFacts[],
  pulls: Pulls,
  targetOf: (pod: PodFacts) => ProbeTarget<K>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Outcome<K>>> {
  const { clock, before, asked, atOnce } = pulls;
  const outcomes = new Map<string, Outcome<K>>();
  const byId = new Map(pods.map((pod) => [`${kind} ${pod.node}`, pod]));
  const targets = [...byId].map(([id, pod]): Pullable => {
    const last = before.get(id);
    if (last === undefined) return { id, changed: true, healthy: false };
    return { id, changed: last.fingerprint !== fingerprint(pod), healthy: last.healthy, askedTick: last.askedTick };
  });
  await pullAll(
    targets,
    atOnce,
    async (id) => {
      const pod = byId.get(id);
      if (pod === undefined) return;
      const askedTick = clock.monotonic();
      const outcome = await pulls.ask(targetOf(pod), signal);
      outcomes.set(pod.uid, outcome);
      const retriedTick = before.get(id)?.retriedTick;
      asked.set(id, {
        fingerprint: fingerprint(pod),
        healthy: isWell(outcome),
        askedTick,
        ...(retriedTick === undefined ? {} : { retriedTick }),
      });
    },
    signal,
  );
  await retryMissed(byId, outcomes, pulls, targetOf, signal);
  return outcomes;
}

/**
 * Asks the kubelets of those that nobody could reach, whose turn was longest ago first. When the time for it is over, the
 * others wait for the next round: they are no less known for it than they were.
 */
async function retryMissed<K extends 'chassis' | 'network'>(
  byId: ReadonlyMap<string, PodFacts>,
  outcomes: Map<string, Outcome<K>>,
  pulls: Pulls,
  targetOf: (pod: PodFacts) => ProbeTarget<K>,
  signal: AbortSignal,
): Promise<void> {
  const { clock, atOnce, asked, retryMs = timings.evidence.retryMs } = pulls;
  if (pulls.retry === undefined) return;
  const missed = [...byId].flatMap(([id, pod]): Pullable[] => {
    if (outcomes.get(pod.uid)?.type !== 'Unreachable') return [];
    const retriedTick = asked.get(id)?.retriedTick;
    return [{ id, changed: false, healthy: false, ...(retriedTick === undefined ? {} : { askedTick: retriedTick }) }];
  });
  const until = clock.monotonic() + retryMs;
  await pullAll(
    missed,
    atOnce,
    async (id) => {
      const [pod, known] = [byId.get(id), asked.get(id)];
      const straight = pod === undefined ? undefined : outcomes.get(pod.uid);
      if (pod === undefined || known === undefined || straight?.type !== 'Unreachable' || pulls.retry === undefined)
        return;
      const retriedTick = clock.monotonic();
      if (retriedTick >= until) return void outcomes.set(pod.uid, unretried(straight.message));
      const outcome = await pulls.retry(targetOf(pod), signal).then((again) => missedBoth(straight.message, again));
      outcomes.set(pod.uid, outcome);
      asked.set(id, { ...known, healthy: isWell(outcome), retriedTick });
    },
    signal,
  );
}

const unretried = (straight: string) =>
  ({ type: 'Unreachable', message: `${straight}; its kubelet waits for its turn behind others` }) as const;

/** Whether an answer was complete and complains of nothing: who is not well is asked first the next time. */
function isWell(outcome: Outcome<EvidenceKind>): boolean {
  if (outcome.type !== 'Evidence' || !outcome.evidence.complete) return false;
  const { evidence } = outcome;
  if (evidence.kind === 'network') return evidence.facts.checks?.every((check) => check.outcome === 'ok') === true;
  if (evidence.kind !== 'chassis') return true;
  const { controller, vswitchd } = evidence.facts;
  return controller?.connected === true && vswitchd?.bridge.inVswitchd === true;
}
