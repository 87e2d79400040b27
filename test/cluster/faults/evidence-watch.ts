/** Watches what an executor tells of a network: every write of its conditions, and every round behind them. */
import { loadavg } from 'node:os';
import { networkApiVersion, systemNamespace } from '../../../constructs/api/constants.ts';
import { rest, systemClock } from '../../../constructs/lib/clock.ts';
import { isObject } from '../../../constructs/lib/json.ts';
import { kubeConfigCredentials } from '../../../executor/kube/credentials.ts';
import { Reflector } from '../../../executor/kube/reflector.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import { askLeader } from '../../../executor/page/ask.ts';
import type { InstallationEvidence } from '../../../executor/page/evidence.ts';
import { type Look, until } from '../suite/pipeline-look.ts';
import type { Cluster } from '../types.ts';
import {
  type ConditionState,
  type Judged,
  parts,
  type Seen,
  type Snapshot,
  type Status,
  storyOf,
} from './evidence-judge.ts';
import { PodWatch } from './evidence-pods.ts';

const statuses: readonly string[] = ['True', 'False', 'Unknown'] satisfies Status[];

function snapshotOf(object: KubeObject, at: number): Snapshot {
  const all = object.status?.conditions;
  const conditions: Record<string, ConditionState> = {};
  for (const { type, status, reason, message } of (Array.isArray(all) ? all : []).filter(isObject))
    if (typeof status === 'string' && statuses.includes(status))
      conditions[String(type)] = { status: status as Status, reason: String(reason), message: String(message) };
  return { at, conditions };
}

/** What of a status is not as it is when nothing is wrong. */
function unwell(snapshot: Snapshot | undefined): string | undefined {
  const { conditions = {} } = snapshot ?? {};
  const open = parts.filter((type) => conditions[type]?.status !== 'True');
  if (open.length > 0) return open.map((type) => `${type}: ${conditions[type]?.message ?? 'absent'}`).join('; ');
  const { Ready, Degraded } = conditions;
  if (Ready?.reason !== 'VerificationComplete') return `Ready: ${Ready?.message ?? 'absent'}`;
  return Degraded?.status === 'False' ? undefined : `Degraded: ${Degraded?.message ?? 'absent'}`;
}

const askEveryMs = 500;
/** An age is told in whole milliseconds, by another clock. */
const inexactMs = 50;

/** So many rounds in a row have to find everything well before it counts as being so. */
const wellRounds = 3;

/** An answer about the last round, and between when and when it was given. */
interface Answered {
  readonly from: number;
  readonly to: number;
  readonly ageMs: number;
}

/** Whether an answer is about another round than the one before: that one would be older by now. */
const isNew = (last: Answered | undefined, { from, ageMs }: Answered): boolean =>
  last === undefined || ageMs < last.ageMs + (from - last.to) - inexactMs;

export class Watch {
  readonly #snapshots: Snapshot[] = [];
  readonly #rounds: number[] = [];
  readonly #pods = new PodWatch();
  #report: InstallationEvidence | undefined;

  /** Watches until the signal aborts. */
  async run(look: Look, cluster: Cluster, signal: AbortSignal): Promise<void> {
    const reflector = new Reflector({
      client: look.client,
      clock: systemClock,
      random: Math.random,
      selection: { apiVersion: networkApiVersion, kind: 'KubeOVNInstallation', namespace: 'kube-system' },
      handler: (event) => {
        if (event.type === 'added' || event.type === 'modified')
          this.#snapshots.push(snapshotOf(event.object, systemClock.monotonic()));
      },
    });
    await Promise.all([reflector.run(signal), this.#ask(look, cluster, signal), this.#pods.run(look, cluster, signal)]);
  }

  async #ask(look: Look, cluster: Cluster, signal: AbortSignal): Promise<void> {
    const credentials = kubeConfigCredentials({ clock: systemClock, file: cluster.kubeconfig });
    const question = { client: look.client, credentials, namespace: systemNamespace, node: undefined, limitMs: 5_000 };
    let last: Answered | undefined;
    while (!signal.aborted) {
      const from = systemClock.monotonic();
      const asked = await askLeader(question, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        return undefined;
      });
      const report = asked?.type === 'answered' ? asked.report.installations[0] : undefined;
      if (report !== undefined) {
        this.#report = report;
        const answered = { from, to: systemClock.monotonic(), ageMs: report.ageMs };
        if (isNew(last, answered)) this.#rounds.push(from - report.ageMs);
        last = answered;
      }
      await rest(systemClock, askEveryMs, signal);
    }
  }

  /** What the last round saw. @throws Error while there was none. */
  report(): InstallationEvidence {
    if (this.#report === undefined) throw new Error('no round of observation has ended yet');
    return this.#report;
  }

  latest(): Snapshot | undefined {
    return this.#snapshots.at(-1);
  }

  /** Every write since a moment. */
  since(at: number): Snapshot[] {
    return this.#snapshots.filter((one) => one.at > at);
  }

  /**
   * Waits until everything is well and at rest: no pod has anything left of what was before, and several rounds in a row found
   * nothing. Another one has just ended then: the next one is a whole pause away.
   */
  rest(limitMs: number): Promise<Snapshot> {
    const from = systemClock.monotonic();
    let ended: number | undefined;
    return until(
      'everything to be well',
      limitMs,
      async (saw) => {
        const snapshot = this.latest();
        const why = this.#pods.unrest(from) ?? unwell(snapshot);
        if (why !== undefined || snapshot === undefined) {
          saw(why ?? 'there is no status yet');
          ended = undefined;
          return undefined;
        }
        ended ??= this.#rounds.length;
        const rounds = this.#rounds.length - ended;
        saw(`well for ${rounds} of ${wellRounds} rounds`);
        return rounds >= wellRounds ? snapshot : undefined;
      },
      20,
    );
  }

  /**
   * Waits for the judge. @param before how everything is when nothing is wrong
   * @returns milliseconds until it was as it has to be. @throws Error with what is wrong.
   */
  async judged(
    what: string,
    { before, doneAt }: Pick<Seen, 'before' | 'doneAt'>,
    judge: (seen: Seen) => Judged,
    limitMs: number,
  ): Promise<number> {
    const from = this.#snapshots.findLast(({ at }) => at <= doneAt) ?? before;
    const answer = await until(
      what,
      limitMs,
      async (saw) => {
        const now = systemClock.monotonic();
        const judged = judge({ before, from, doneAt, snapshots: this.since(doneAt), rounds: this.#rounds, now });
        if (judged.type === 'waiting') {
          saw(judged.why);
          return undefined;
        }
        return judged;
      },
      50,
    );
    if (answer.type === 'wrong') {
      const seen = { from, doneAt, snapshots: this.since(doneAt), rounds: this.#rounds };
      // Whoever shares the machine may have been what was seen.
      const load = loadavg().map((one) => one.toFixed(1));
      throw new Error(
        [
          `${what}: ${answer.why}`,
          ...storyOf(seen),
          ...this.#pods.ended(doneAt).map(({ at, text }) => `  ${((at - doneAt) / 1000).toFixed(1)} s: ${text}`),
          `  load of the machine: ${load.join(' ')}`,
        ].join('\n'),
      );
    }
    return answer.afterMs;
  }
}
