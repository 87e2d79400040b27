/**
 * Keeps a copy of a selection of objects by list and watch. The watch is a hint that saves time; the copy is made whole
 * again by a list after every doubt, and now and then without one.
 */
import { backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { KubeClient } from './client.ts';
import type { Rejection } from './outcome.ts';
import { defaultReflectorTimings, type ReflectorTimings } from './reflector-timings.ts';
import { ObjectStore, type StoreChange } from './store.ts';
import { TransportError } from './transport.ts';
import type { KubeObject } from './types.ts';
import { describeSelection, type Selection } from './verbs/list.ts';
import { decodeEvent, linesOf, type WatchEvent } from './watchstream.ts';

export type { ReflectorTimings } from './reflector-timings.ts';

/** What a handler is told. `synced` comes once, after the first whole list. */
export type ReflectorEvent = StoreChange | { readonly type: 'synced' };

/** Something that went wrong and is being mended; for logs and metrics. */
export interface ReflectorProblem {
  readonly reason: 'List' | 'Watch' | 'Expired' | 'Undecodable' | 'Truncated' | 'Idle' | 'Handler';
  readonly message: string;
}

export interface ReflectorOptions {
  readonly client: KubeClient;
  readonly selection: Selection;
  /** Called for each change, in order. It should only queue a key; what it throws is reported and changes nothing. */
  readonly handler: (event: ReflectorEvent) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly timings?: Partial<ReflectorTimings>;
  /** Applied before an object is stored, to drop what nobody reads. It must keep apiVersion, kind, name, namespace, UID and version. */
  readonly transform?: (object: KubeObject) => KubeObject;
  readonly onProblem?: (problem: ReflectorProblem) => void;
  /** Told after each whole list that was taken in, its changes having been told. */
  readonly onListed?: () => void;
}

export interface ReflectorHealth {
  /** A whole list was taken in since the start. */
  readonly synced: boolean;
  /** The last exchange with the API server went well. */
  readonly connected: boolean;
  /** Milliseconds since anything was heard; undefined before the first list. */
  readonly lastHeardAgeMs: number | undefined;
  readonly lists: number;
  readonly watches: number;
  readonly failures: number;
  /** What is wrong while it is not connected. */
  readonly problem: ReflectorProblem | undefined;
}

/** What comes after a list or a watch: go on from a version, list again, or wait and try. */
type Next =
  | { readonly type: 'listed' | 'watched'; readonly version: string }
  | { readonly type: 'relist' }
  | {
      readonly type: 'failed';
      readonly problem: ReflectorProblem;
      readonly version: string | undefined;
      readonly retryAfterMs?: number;
    };

export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #timings: ReflectorTimings;
  readonly #store = new ObjectStore();
  #synced = false;
  #connected = false;
  #heardAt: number | undefined;
  #relistAt = 0;
  #lists = 0;
  #watches = 0;
  #failures = 0;
  #inARow = 0;
  #problem: ReflectorProblem | undefined;
  #interrupt: AbortController | undefined;
  #relistWanted = false;

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#timings = { ...defaultReflectorTimings, ...options.timings };
  }

  /** Objects by `<namespace>/<name>`, as last seen. */
  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#store.objects;
  }

  get synced(): boolean {
    return this.#synced;
  }

  health(): ReflectorHealth {
    return {
      synced: this.#synced,
      connected: this.#connected,
      lastHeardAgeMs: this.#heardAt === undefined ? undefined : this.#options.clock.monotonic() - this.#heardAt,
      lists: this.#lists,
      watches: this.#watches,
      failures: this.#failures,
      problem: this.#connected ? undefined : this.#problem,
    };
  }

  /** Gives up the running watch for a whole list, now. */
  relist(): void {
    this.#relistWanted = true;
    this.#interrupt?.abort();
  }

  /** Runs until the signal aborts; then nothing of it is left: no request, no timer, no further call of the handler. */
  async run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    while (!signal.aborted) {
      const next = await this.#step(version, signal);
      if (signal.aborted) return;
      if (next.type === 'failed') {
        version = this.#failed(next);
        await this.#pause(next.retryAfterMs ?? 0, signal);
      } else {
        version = this.#succeeded(next);
      }
    }
  }

  async #step(version: string | undefined, signal: AbortSignal): Promise<Next> {
    try {
      return await (version === undefined ? this.#list(signal) : this.#watch(version, signal));
    } catch (error) {
      // Only an abort gets here, or a defect: which must not end the reflector either.
      return {
        type: 'failed',
        version: undefined,
        problem: { reason: 'Watch', message: error instanceof Error ? error.message : String(error) },
      };
    }
  }

  #isRelistDue(): boolean {
    return this.#relistWanted || this.#options.clock.monotonic() >= this.#relistAt;
  }

  /** A list alone ends no row of failures: a watch that breaks at once would else mean a list per second. */
  #succeeded(next: Exclude<Next, { type: 'failed' }>): string | undefined {
    if (next.type === 'watched') this.#inARow = 0;
    this.#connected = true;
    return next.type === 'relist' || this.#isRelistDue() ? undefined : next.version;
  }

  #failed(next: Extract<Next, { type: 'failed' }>): string | undefined {
    this.#failures += 1;
    this.#inARow += 1;
    this.#connected = false;
    this.#report(next.problem);
    const placeLost = this.#relistWanted || this.#inARow >= this.#timings.failuresBeforeRelist;
    return placeLost ? undefined : next.version;
  }

  async #pause(atLeastMs: number, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    const ms = Math.max(atLeastMs, backoff(this.#timings.backoff, this.#inARow - 1, random));
    try {
      await clock.sleep(ms, signal);
    } catch {
      // Aborted: the loop's condition sees it.
    }
  }

  #report(problem: ReflectorProblem): void {
    this.#problem = problem;
    this.#options.onProblem?.(problem);
  }

  #heard(): void {
    this.#heardAt = this.#options.clock.monotonic();
  }

  #emit(events: readonly ReflectorEvent[]): void {
    for (const event of events) {
      try {
        this.#options.handler(event);
      } catch (error) {
        this.#report({ reason: 'Handler', message: error instanceof Error ? error.message : String(error) });
      }
    }
  }

  async #list(signal: AbortSignal): Promise<Next> {
    const { client, selection, clock, random, transform, onListed } = this.#options;
    this.#lists += 1;
    this.#relistWanted = false;
    const answer = await client.list(selection, {
      signal,
      timeoutMs: this.#timings.listTimeoutMs,
      // One attempt per page: the reflector's own pause is the one that grows.
      attempts: 1,
      ...(transform === undefined ? {} : { transform }),
    });
    if (answer.type === 'kindAbsent') this.#emit(this.#store.replace([]));
    if (answer.type === 'expired')
      return { type: 'failed', version: undefined, problem: { reason: 'List', message: answer.message } };
    if (answer.type !== 'listed') return failure('List', answer, undefined);
    this.#heard();
    const spread = 1 + this.#timings.relistJitter * (2 * random() - 1);
    this.#relistAt = clock.monotonic() + this.#timings.relistMs * spread;
    this.#emit(this.#store.replace(answer.items));
    if (!this.#synced) {
      this.#synced = true;
      this.#emit([{ type: 'synced' }]);
    }
    onListed?.();
    return { type: 'listed', version: answer.resourceVersion };
  }

  #watchSeconds(): number {
    const [shortest, longest] = this.#timings.watchSeconds;
    const wanted = shortest + (longest - shortest) * this.#options.random();
    const untilRelist = (this.#relistAt - this.#options.clock.monotonic()) / 1000;
    return Math.max(1, Math.ceil(Math.min(wanted, untilRelist)));
  }

  async #watch(version: string, signal: AbortSignal): Promise<Next> {
    const { client, selection, clock } = this.#options;
    const interrupt = new AbortController();
    this.#interrupt = interrupt;
    const forward = (): void => interrupt.abort();
    signal.addEventListener('abort', forward, { once: true });
    const seconds = this.#watchSeconds();
    const started = clock.monotonic();
    const seen = { version, events: 0 };
    this.#watches += 1;
    try {
      const start = await client.watch(selection, {
        signal: interrupt.signal,
        resourceVersion: version,
        timeoutSeconds: seconds,
        timeoutMs: seconds * 1000 + this.#timings.graceMs,
      });
      if (start.type === 'expired') return this.#expired(start.message);
      if (start.type !== 'stream') return failure('Watch', start, version);
      this.#connected = true;
      const broken = await this.#consume(start.body, seen, interrupt);
      if (broken !== undefined) return broken;
      const tooShort = seen.events === 0 && clock.monotonic() - started < this.#timings.shortestWatchMs;
      if (!tooShort) return { type: 'watched', version: seen.version };
      return {
        type: 'failed',
        version,
        problem: { reason: 'Watch', message: `watch of ${describeSelection(selection)}: it ended at once` },
      };
    } catch (error) {
      if (this.#relistWanted && !signal.aborted) return { type: 'relist' };
      if (!(error instanceof TransportError)) throw error;
      return { type: 'failed', version: seen.version, problem: { reason: 'Watch', message: error.message } };
    } finally {
      if (clock.monotonic() - started >= this.#timings.stableWatchMs) this.#inARow = 0;
      signal.removeEventListener('abort', forward);
      interrupt.abort();
      this.#interrupt = undefined;
    }
  }

  #expired(message: string): Next {
    return { type: 'failed', version: undefined, problem: { reason: 'Expired', message } };
  }

  /** Takes in a stream until it ends; what it answers is the reason when that was no proper end. */
  async #consume(
    body: AsyncIterable<Uint8Array>,
    seen: { version: string; events: number },
    interrupt: AbortController,
  ): Promise<Next | undefined> {
    const guard = this.#guardIdle(interrupt);
    try {
      for await (const item of linesOf(guard.watched(body))) {
        if (interrupt.signal.aborted) break;
        if (item.type === 'truncated') {
          this.#report({
            reason: 'Truncated',
            message: `the watch ended inside a line, after ${item.length} characters of it`,
          });
          return undefined;
        }
        if (item.type === 'tooLong') return this.#undecodable(`a line of more than ${item.length} characters`);
        const next = this.#take(decodeEvent(item.text), seen);
        if (next !== undefined) return next;
      }
    } catch (error) {
      if (guard.idle() && !this.#relistWanted) {
        this.#report({ reason: 'Idle', message: `nothing arrived on the watch for ${this.#timings.idleMs} ms` });
        return { type: 'watched', version: seen.version };
      }
      throw error;
    } finally {
      guard.end();
    }
    return this.#relistWanted ? { type: 'relist' } : undefined;
  }

  /** Aborts the watch when nothing arrives for `idleMs`. */
  #guardIdle(interrupt: AbortController): {
    watched: (body: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;
    idle: () => boolean;
    end: () => void;
  } {
    const { clock } = this.#options;
    const { idleMs } = this.#timings;
    const over = new AbortController();
    let last = clock.monotonic();
    let idle = false;
    const wait = async (): Promise<void> => {
      for (let left = idleMs; left > 0; left = idleMs - (clock.monotonic() - last))
        await clock.sleep(left, over.signal);
      idle = true;
      interrupt.abort();
    };
    // Its only failure is the end of the watch.
    wait().catch(() => undefined);
    const heard = (): void => {
      last = clock.monotonic();
      this.#heard();
    };
    return {
      async *watched(body) {
        for await (const chunk of body) {
          heard();
          yield chunk;
        }
      },
      idle: () => idle,
      end: () => over.abort(),
    };
  }

  #undecodable(why: string): Next {
    const message = `watch of ${describeSelection(this.#options.selection)}: ${why}; listing again`;
    return { type: 'failed', version: undefined, problem: { reason: 'Undecodable', message } };
  }

  #take(event: WatchEvent, seen: { version: string; events: number }): Next | undefined {
    seen.events += 1;
    switch (event.type) {
      case 'undecodable':
        return this.#undecodable(event.why);
      case 'error':
        if (event.code === 410) return this.#expired(`410 ${event.reason}`);
        return {
          type: 'failed',
          version: seen.version,
          problem: { reason: 'Watch', message: `the watch answered ${event.code} ${event.reason}` },
          ...(event.retryAfterMs === undefined ? {} : { retryAfterMs: event.retryAfterMs }),
        };
      case 'bookmark':
        seen.version = event.resourceVersion;
        return undefined;
      default: {
        const { transform } = this.#options;
        const object = transform === undefined ? event.object : transform(event.object);
        seen.version = event.resourceVersion;
        this.#emit(event.type === 'deleted' ? this.#store.drop(object) : this.#store.put(object));
        return undefined;
      }
    }
  }
}

function failure(reason: 'List' | 'Watch', rejection: Rejection, version: string | undefined): Next {
  const retryAfterMs = rejection.type === 'unavailable' ? rejection.retryAfterMs : undefined;
  return {
    type: 'failed',
    version,
    problem: { reason, message: rejection.message },
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}
