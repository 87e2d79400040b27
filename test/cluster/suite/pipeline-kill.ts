import { readFileSync } from 'node:fs';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { Reflector } from '../../../executor/kube/reflector.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import type { Selection } from '../../../executor/kube/verbs/list.ts';
import { killAll, type ProcessId } from '../processes.ts';
import { type Leader, type Look, until } from './pipeline-look.ts';

/** A point in the work of an executor, as the API server shows it. */
export interface Moment {
  readonly what: string;
  readonly selection: Selection;
  /** Whether the objects, by `<namespace>/<name>`, show that it has come. */
  readonly reached: (objects: ReadonlyMap<string, KubeObject>) => boolean;
}

/** Waits for a moment by a watch, and so notices it within milliseconds. */
async function untilMoment(look: Look, moment: Moment, limitMs = 90_000): Promise<void> {
  const over = new AbortController();
  const reached = new Promise<void>((resolve) => {
    const reflector = new Reflector({
      client: look.client,
      clock: systemClock,
      random: Math.random,
      selection: moment.selection,
      handler: () => {
        if (moment.reached(reflector.objects)) resolve();
      },
    });
    void reflector.run(over.signal);
  });
  const late = setTimeout(() => over.abort(), limitMs);
  const ended = new Promise<never>((_, reject) => {
    over.signal.addEventListener('abort', () => reject(new Error(`${moment.what} did not come in ${limitMs} ms`)));
  });
  try {
    await Promise.race([reached, ended]);
  } finally {
    clearTimeout(late);
    ended.catch(() => undefined);
    over.abort();
  }
}

/** How long a replica must have run to be one that waits for the Lease: it starts up in less. */
const settledMs = 4_000;

/** How long a process has run. The kernel counts in hundredths of a second since boot. */
function ageMs({ startTicks }: ProcessId): number {
  const [uptime = '0'] = readFileSync('/proc/uptime', 'utf8').split(' ');
  return Number(uptime) * 1000 - Number(startTicks) * 10;
}

/** Kills the processes of executors, as a failing machine would. */
export class Killer {
  /** How long it took each time until another one led, and whether the other replica was waiting for the Lease. */
  readonly takeovers: { readonly ms: number; readonly waited: boolean }[] = [];
  kills = 0;
  /** How often the other replica took over. */
  moves = 0;
  readonly #look: Look;
  #killed: Leader | undefined;

  constructor(look: Look) {
    this.#look = look;
  }

  /** The one who leads now: another term than that of the last victim, and its process. */
  async #leader() {
    return until(
      'somebody to lead',
      60_000,
      async (saw) => {
        const leader = await this.#look.leader();
        const process = this.#look.executors().get(leader?.pod ?? '');
        saw(`${leader?.holder}, process ${process?.pid}`);
        if (leader === undefined || process === undefined || leader.holder === this.#killed?.holder) return undefined;
        return { leader, process };
      },
      50,
    );
  }

  /** Waits until both replicas run. */
  async bothRun(): Promise<void> {
    await until('both replicas to run', 60_000, async () => (this.#look.executors().size === 2 ? true : undefined));
  }

  /**
   * Kills who leads with SIGKILL as soon as the moment has come, and waits until another one leads: the other replica, when
   * it had been there for long enough to know how old the Lease is.
   */
  async killAt(moment: Moment): Promise<void> {
    const { leader, process } = await this.#leader();
    await untilMoment(this.#look, moment);
    const other = [...this.#look.executors()].find(([pod]) => pod !== leader.pod)?.[1];
    const waited = other !== undefined && ageMs(other) > settledMs;
    await killAll([process], systemClock);
    this.kills += 1;
    this.#killed = leader;
    const began = systemClock.monotonic();
    const { leader: next } = await this.#leader();
    this.takeovers.push({ ms: systemClock.monotonic() - began, waited });
    if (next.pod !== leader.pod) this.moves += 1;
  }

  /** Waits for a moment while somebody leads. */
  async at(moment: Moment): Promise<void> {
    await this.#leader();
    await untilMoment(this.#look, moment);
  }

  /** Kills all replicas at once. */
  async killAllAt(moment: Moment): Promise<void> {
    const { leader } = await this.#leader();
    const victims = [...this.#look.executors().values()];
    await untilMoment(this.#look, moment);
    await killAll(victims, systemClock);
    this.kills += victims.length;
    this.#killed = leader;
    await this.#leader();
  }
}
