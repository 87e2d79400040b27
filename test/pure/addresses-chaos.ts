import type { JsonObject } from '../../constructs/lib/json.ts';
import type { LedgerApi, LedgerRead, LedgerRef, LedgerWrite } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import type { PassKey } from '../../executor/addresses/core/wake.ts';
import { LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { LedgerPatch } from '../../executor/addresses/plan.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { ModelServer, modelApi } from './addresses-model.ts';

/**
 * The core under a scheduler that decides everything: which pass begins, which request arrives, whether its answer does, how
 * late each watch is, when the process dies. A run is its seed.
 */

/** A request on its way. */
interface Call {
  /** Lets the server carry it out. */
  readonly send: () => unknown;
  readonly answer: (value: unknown) => void;
  readonly writes: boolean;
}

/** What a write of the core was, for those who watch over it. */
export interface CoreWrite {
  readonly what: 'patch' | 'status' | 'delete';
  readonly before: KubeObject;
  readonly after: KubeObject | undefined;
}

const kinds: readonly LedgerKind[] = ['IPAddressClass', 'IPAddress', 'IPAddressClaim'];
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Process {
  readonly queue = new Set<PassKey>();
  readonly running = new Set<PassKey>();
  readonly timers = new Map<PassKey, number>();
  readonly calls: Call[] = [];
  /** Answers on their way back. */
  readonly answers: (() => void)[] = [];
  readonly cursors = new Map<LedgerKind, number>();
  readonly engine: LedgerEngine<PassKey>;
  events = 0;

  constructor(chaos: Chaos) {
    const api = modelApi(chaos.server);
    const call = <T>(writes: boolean, send: () => T): Promise<T> =>
      new Promise((resolve) => this.calls.push({ send, answer: resolve as (value: unknown) => void, writes }));
    const write = (what: CoreWrite['what'], target: KubeObject, send: () => LedgerWrite): Promise<LedgerWrite> =>
      call(true, () => chaos.carriedOut(what, target, send));
    this.engine = new LedgerEngine<PassKey>({
      api: {
        create: (object) => call(true, () => api.create(object)),
        patch: (target, patch: LedgerPatch) => write('patch', target, () => api.patch(target, patch)),
        status: (target, status: JsonObject) => write('status', target, () => api.status(target, status)),
        remove: (target) => write('delete', target, () => api.remove(target)),
        read: (ref: LedgerRef): Promise<LedgerRead> => call(false, () => api.read(ref)),
        addresses: (): ReturnType<LedgerApi['addresses']> => call(false, () => api.addresses()),
      },
      ledger: new LedgerStore(),
      controllers: coreControllers,
      now: () => chaos.now,
      wake: (key) => this.queue.add(key),
      tell: () => {
        this.events += 1;
      },
    });
    for (const kind of kinds) this.cursors.set(kind, chaos.server.log.length);
    for (const object of chaos.server.list()) this.engine.seen(object);
  }
}

export interface ChaosOptions {
  readonly random: () => number;
  readonly watch: (write: CoreWrite) => void;
  /** Shares of requests that are lost before the server, of answers that are lost, and of deaths of the process. */
  readonly faults: { readonly before: number; readonly after: number; readonly death: number };
}

export class Chaos {
  now = Date.parse('2026-01-01T00:00:00Z');
  readonly server = new ModelServer(() => this.now, false);
  writes = 0;
  readonly #options: ChaosOptions;
  #process: Process;

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.#process = new Process(this);
  }

  get random(): () => number {
    return this.#options.random;
  }

  get events(): number {
    return this.#process.events;
  }

  carriedOut(what: CoreWrite['what'], target: KubeObject, send: () => LedgerWrite): LedgerWrite {
    const { kind, metadata } = target;
    const ref: LedgerRef = {
      kind: kind as LedgerKind,
      name: metadata.name ?? '',
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    };
    const before = this.server.get(ref);
    const outcome = send();
    const done = outcome.type === 'written' || outcome.type === 'removed';
    if (done && before !== undefined) {
      const after = this.server.get(ref);
      if (after !== before) this.writes += 1;
      this.#options.watch({ what, before, after });
    }
    return outcome;
  }

  /** One thing happens; false when there is nothing that could. */
  async step(): Promise<boolean> {
    const { random, faults } = this.#options;
    if (random() < faults.death) {
      this.die();
      return true;
    }
    const answer = (): Promise<boolean> => this.#answer(random);
    const choices = [async () => this.#deliver(random), () => this.#begin(random), answer, answer];
    const first = Math.floor(random() * choices.length);
    for (let n = 0; n < choices.length; n += 1) if (await choices[(first + n) % choices.length]?.()) return true;
    return false;
  }

  #deliver(random: () => number): boolean {
    const behind = kinds.filter((kind) => this.#next(kind) !== undefined);
    const kind = behind[Math.floor(random() * behind.length)];
    if (kind === undefined) return false;
    const at = this.#next(kind);
    const event = at === undefined ? undefined : this.server.log[at];
    if (at === undefined || event === undefined) return false;
    this.#process.cursors.set(kind, at + 1);
    if (event.type === 'seen') this.#process.engine.seen(event.object);
    else this.#process.engine.deleted(event.object);
    return true;
  }

  #next(kind: LedgerKind): number | undefined {
    const { log } = this.server;
    for (let at = this.#process.cursors.get(kind) ?? 0; at < log.length; at += 1)
      if (log[at]?.object.kind === kind) return at;
    this.#process.cursors.set(kind, log.length);
    return undefined;
  }

  async #begin(random: () => number): Promise<boolean> {
    const own = this.#process;
    for (const [key, at] of own.timers)
      if (at <= this.now) {
        own.timers.delete(key);
        own.queue.add(key);
      }
    const ready = [...own.queue].filter((key) => !own.running.has(key));
    const key = ready[Math.floor(random() * ready.length)];
    if (key === undefined || own.running.size >= 4) return false;
    own.queue.delete(key);
    own.running.add(key);
    own.engine.pass(key, new AbortController().signal).then(
      (result) => {
        own.running.delete(key);
        if (result.type === 'failed') own.queue.add(key);
        if (result.type === 'again') own.timers.set(key, this.now + result.afterMs);
        else own.timers.delete(key);
      },
      (error: unknown) => {
        this.failure = error;
      },
    );
    await turn();
    if (this.failure !== undefined) throw this.failure;
    return true;
  }

  failure: unknown;

  /** A request arrives, or the answer of one that has arrived does: between the two anything may happen. */
  async #answer(random: () => number): Promise<boolean> {
    const { calls, answers } = this.#process;
    const nth = Math.floor(random() * (calls.length + answers.length));
    const [call] = calls.splice(nth, 1);
    if (call === undefined) {
      const [answer] = answers.splice(nth - calls.length, 1);
      if (answer === undefined) return false;
      answer();
    } else {
      const { before, after } = this.#options.faults;
      const fate = random();
      const failed = { type: 'failed', message: 'no answer' };
      if (fate < before) call.answer(failed);
      else {
        const value = call.send();
        answers.push(() => call.answer(fate < before + after ? failed : value));
      }
    }
    await turn();
    if (this.failure !== undefined) throw this.failure;
    return true;
  }

  /** The process dies; of what it had sent some arrives still. Another one begins with nothing but what it lists. */
  die(): void {
    for (const call of this.#process.calls) if (this.#options.random() < 0.5) call.send();
    this.#process = new Process(this);
  }

  /** How long until something is due by time alone; undefined: nothing is. */
  get due(): number | undefined {
    const times = [...this.#process.timers.values()];
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Everything that can happen without time passing happens. */
  async settle(limit = 50_000): Promise<void> {
    for (let n = 0; n < limit; n += 1) if (!(await this.step())) return;
    throw new Error('it does not settle');
  }

  /** Looks at everything again. */
  wakeAll(): void {
    for (const object of this.server.list()) {
      const { namespace, name = '' } = object.metadata;
      this.#process.queue.add(`${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`}` as PassKey);
    }
  }
}
