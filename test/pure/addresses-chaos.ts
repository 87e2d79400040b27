import type { JsonObject } from '../../constructs/lib/json.ts';
import type { LedgerApi, LedgerRead, LedgerRef, LedgerWrite } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import { type Controllers, type EngineLedger, LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { ledgerKinds, type View } from '../../executor/addresses/objects.ts';
import type { LedgerPatch } from '../../executor/addresses/plan.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { WorkResult } from '../../executor/kube/workqueue.ts';
import { ModelServer, modelApi } from './addresses-model.ts';

/**
 * Workers of the ledger under a scheduler that decides everything: which pass begins, which request arrives, whether its answer does, how
 * late each watch is, when the process dies. A run is its seed.
 */

/** A request on its way. */
interface Call {
  /** Lets the server carry it out. */
  readonly send: () => unknown;
  readonly answer: (value: unknown) => void;
  readonly writes: boolean;
}

/** What a write was, for those who watch over it. */
export interface WorkerWrite {
  readonly by: string;
  readonly what: 'create' | 'patch' | 'status' | 'delete';
  /** Undefined of what was created. */
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An engine, whatever its keys are. */
interface Runner {
  seen(object: KubeObject): void;
  deleted(object: KubeObject): void;
  pass(key: string, signal: AbortSignal): Promise<WorkResult>;
}

interface Surroundings {
  readonly api: LedgerApi;
  readonly now: () => number;
  readonly wake: (key: string) => void;
  readonly tell: () => void;
}

/** A kind of process: what it watches, and how it begins. */
export interface ChaosWorker {
  readonly name: string;
  readonly kinds: readonly string[];
  start(surroundings: Surroundings): Runner;
}

/** A worker of controllers with a ledger of their own. */
export const workerOf = <Key extends string, Any extends View, Known extends EngineLedger<Any>>(
  name: string,
  kinds: readonly string[],
  controllers: Controllers<Key, Any, Known>,
  ledger: () => Known,
): ChaosWorker => ({
  name,
  kinds,
  start(surroundings) {
    const engine = new LedgerEngine<Key, Any, Known>({ ...surroundings, controllers, ledger: ledger() });
    return {
      seen: (object) => engine.seen(object),
      deleted: (object) => engine.deleted(object),
      pass: (key, signal) => engine.pass(key as Key, signal),
    };
  },
});

export const coreOfChaos = workerOf('core', ledgerKinds, coreControllers, () => new LedgerStore());

class Process {
  readonly worker: ChaosWorker;
  readonly queue = new Set<string>();
  readonly running = new Set<string>();
  readonly timers = new Map<string, number>();
  readonly calls: Call[] = [];
  /** Answers on their way back. */
  readonly answers: (() => void)[] = [];
  readonly cursors = new Map<string, number>();
  readonly engine: Runner;
  events = 0;

  constructor(chaos: Chaos, worker: ChaosWorker) {
    this.worker = worker;
    const api = modelApi(chaos.server);
    const call = <T>(writes: boolean, send: () => T): Promise<T> =>
      new Promise((resolve) => this.calls.push({ send, answer: resolve as (value: unknown) => void, writes }));
    const write = (what: WorkerWrite['what'], target: KubeObject, send: () => LedgerWrite): Promise<LedgerWrite> =>
      call(true, () => chaos.carriedOut(worker.name, what, target, send));
    this.engine = worker.start({
      api: {
        create: (object) => write('create', object, () => api.create(object)),
        patch: (target, patch: LedgerPatch) => write('patch', target, () => api.patch(target, patch)),
        status: (target, status: JsonObject) => write('status', target, () => api.status(target, status)),
        remove: (target) => write('delete', target, () => api.remove(target)),
        read: (ref: LedgerRef): Promise<LedgerRead> => call(false, () => api.read(ref)),
        addresses: (): ReturnType<LedgerApi['addresses']> => call(false, () => api.addresses()),
      },
      now: () => chaos.now,
      wake: (key) => this.queue.add(key),
      tell: () => {
        this.events += 1;
      },
    });
    for (const kind of worker.kinds) this.cursors.set(kind, chaos.server.log.length);
    for (const object of chaos.server.list()) if (worker.kinds.includes(object.kind)) this.engine.seen(object);
  }
}

export interface ChaosOptions {
  readonly random: () => number;
  readonly watch: (write: WorkerWrite) => void;
  /** The core alone when absent. */
  readonly workers?: readonly ChaosWorker[];
  /** What else there is: each does one thing, or says that there is none. */
  readonly others?: readonly (() => boolean)[];
  /** Shares of requests that are lost before the server, of answers that are lost, and of deaths of the process. */
  readonly faults: { readonly before: number; readonly after: number; readonly death: number };
}

export class Chaos {
  now = Date.parse('2026-01-01T00:00:00Z');
  readonly server = new ModelServer(() => this.now, false);
  writes = 0;
  readonly #options: ChaosOptions;
  #processes: Process[];

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.#processes = (options.workers ?? [coreOfChaos]).map((worker) => new Process(this, worker));
  }

  get random(): () => number {
    return this.#options.random;
  }

  get events(): number {
    return this.#processes.reduce((sum, { events }) => sum + events, 0);
  }

  carriedOut(by: string, what: WorkerWrite['what'], target: KubeObject, send: () => LedgerWrite): LedgerWrite {
    const { kind, metadata } = target;
    const ref: LedgerRef = {
      kind,
      name: metadata.name ?? '',
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    };
    const before = this.server.get(ref);
    const outcome = send();
    const done = outcome.type === 'written' || outcome.type === 'removed';
    if (done && (before !== undefined || what === 'create')) {
      const after = this.server.get(ref);
      if (after !== before) this.writes += 1;
      this.#options.watch({ by, what, before, after });
    }
    return outcome;
  }

  /** One thing happens; false when there is nothing that could. */
  async step(): Promise<boolean> {
    const { random, faults, others = [] } = this.#options;
    if (random() < faults.death) {
      this.die(Math.floor(random() * this.#processes.length));
      return true;
    }
    const choices = [
      ...this.#processes.flatMap((own): (() => Promise<boolean>)[] => {
        const answer = (): Promise<boolean> => this.#answer(own, random);
        return [async () => this.#deliver(own, random), () => this.#begin(own, random), answer, answer];
      }),
      ...others.map((one) => async () => one()),
    ];
    const first = Math.floor(random() * choices.length);
    for (let n = 0; n < choices.length; n += 1) if (await choices[(first + n) % choices.length]?.()) return true;
    return false;
  }

  #deliver(own: Process, random: () => number): boolean {
    const behind = own.worker.kinds.filter((kind) => this.#next(own, kind) !== undefined);
    const kind = behind[Math.floor(random() * behind.length)];
    if (kind === undefined) return false;
    const at = this.#next(own, kind);
    const event = at === undefined ? undefined : this.server.log[at];
    if (at === undefined || event === undefined) return false;
    own.cursors.set(kind, at + 1);
    if (event.type === 'seen') own.engine.seen(event.object);
    else own.engine.deleted(event.object);
    return true;
  }

  #next(own: Process, kind: string): number | undefined {
    const { log } = this.server;
    for (let at = own.cursors.get(kind) ?? 0; at < log.length; at += 1)
      if (log[at]?.object.kind === kind) {
        own.cursors.set(kind, at);
        return at;
      }
    own.cursors.set(kind, log.length);
    return undefined;
  }

  async #begin(own: Process, random: () => number): Promise<boolean> {
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
  async #answer({ calls, answers }: Process, random: () => number): Promise<boolean> {
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

  /** A process dies; of what it had sent some arrives still. Another one begins with nothing but what it lists. */
  die(nth = 0): void {
    const own = this.#processes[nth];
    if (own === undefined) return;
    for (const call of own.calls) if (this.#options.random() < 0.5) call.send();
    this.#processes[nth] = new Process(this, own.worker);
  }

  /** Every process dies, and what comes after it looks at everything. */
  restart(): void {
    for (const nth of this.#processes.keys()) this.die(nth);
    this.wakeAll();
  }

  /** How long until something is due by time alone; undefined: nothing is. */
  get due(): number | undefined {
    const times = this.#processes.flatMap(({ timers }) => [...timers.values()]);
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
      const key = `${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
      for (const { worker, queue } of this.#processes) if (worker.kinds.includes(object.kind)) queue.add(key);
    }
  }
}
