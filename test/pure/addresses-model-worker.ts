import { type Controllers, type EngineLedger, LedgerEngine } from '../../executor/addresses/engine.ts';
import type { View } from '../../executor/addresses/objects.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { checkEvent } from './addresses-events.ts';
import { type ModelApi, type ModelServer, modelApi } from './addresses-model.ts';

/** A worker over the model: its engine, what it is to look at, and what it wrote and said. */
export class ModelWorker<Key extends string, Any extends View, Known extends EngineLedger<Any>> {
  readonly writes: string[] = [];
  readonly events: { about: string; type: string; reason: string; note: string }[] = [];
  readonly reads: string[] = [];
  readonly problems: string[] = [];
  passes = 0;
  /** Kind of which every write is refused. */
  refuses: string | undefined;
  /** Why the server finds an object invalid; those that were sent all the same. */
  invalid: (object: KubeObject) => string | undefined = () => undefined;
  readonly foundInvalid: string[] = [];
  /** Called right before a write is sent, with its line; what it throws ends the process. */
  before: ((line: string) => void) | undefined;
  #engine: LedgerEngine<Key, Any, Known>;
  readonly #queue = new Set<Key>();
  readonly #timers = new Map<Key, number>();
  #cursor = 0;
  readonly #server: ModelServer;
  readonly #now: () => number;
  readonly #make: () => Known;
  readonly #controllers: Controllers<Key, Any, Known>;

  constructor(server: ModelServer, now: () => number, make: () => Known, controllers: Controllers<Key, Any, Known>) {
    this.#server = server;
    this.#now = now;
    this.#make = make;
    this.#controllers = controllers;
    this.#engine = this.#start();
  }

  get ledger(): Known {
    return this.#engine.ledger;
  }

  /** Takes in an object before the log is read. */
  seen(object: KubeObject): void {
    this.#engine.seen(object);
  }

  /** Works until nothing is left. */
  async settle(limit: number): Promise<void> {
    for (let n = 0; n < limit; n += 1) if (!(await this.step())) return;
    throw new Error(`it does not settle: ${this.writes.slice(-12).join(', ')}`);
  }

  /** Looking at everything twice more writes and says nothing. */
  async quiet(objects: readonly KubeObject[]): Promise<void> {
    const [writes, events] = [this.writes.length, this.events.length];
    for (const { kind, metadata } of objects) {
      const { namespace, name = '' } = metadata;
      const key = `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
      for (let n = 0; n < 2; n += 1) await this.pass(key as Key);
    }
    if (this.writes.length !== writes) throw new Error(`written: ${this.writes.slice(writes).join(', ')}`);
    if (this.events.length !== events) throw new Error(`said: ${JSON.stringify(this.events.slice(events))}`);
  }

  #start(): LedgerEngine<Key, Any, Known> {
    const model = modelApi(this.#server);
    const noted =
      <Args extends unknown[], T>(what: string, call: (...args: Args) => T) =>
      async (...args: Args): Promise<T | { type: 'refused'; message: string; invalid?: true }> => {
        const [first] = args as unknown as [KubeObject];
        if (this.refuses === first.kind) return { type: 'refused', message: 'no' };
        const why = this.invalid(first);
        if (why !== undefined) {
          this.foundInvalid.push(first.metadata.name ?? '');
          return { type: 'refused', message: why, invalid: true };
        }
        const line = `${what} ${first.kind} ${first.metadata.name}`;
        this.before?.(line);
        this.writes.push(line);
        return call(...args);
      };
    return new LedgerEngine<Key, Any, Known>({
      api: {
        create: noted('create', (...[object]: Parameters<ModelApi['create']>) => model.create(object)),
        patch: noted('patch', (...[target, patch]: Parameters<ModelApi['patch']>) => model.patch(target, patch)),
        status: noted('status', (...[target, status]: Parameters<ModelApi['status']>) => model.status(target, status)),
        remove: noted('delete', (...[target]: Parameters<ModelApi['remove']>) => model.remove(target)),
        read: async (ref) => {
          this.reads.push(ref.kind);
          return model.read(ref);
        },
        addresses: async () => model.addresses(),
      },
      ledger: this.#make(),
      controllers: this.#controllers,
      now: this.#now,
      wake: (key) => this.#queue.add(key),
      tell: ({ about, type, reason, note }) => {
        checkEvent(about.kind, type, reason);
        this.events.push({ about: about.name, type, reason, note });
      },
      onProblem: (key, message) => {
        if (this.refuses === undefined && this.foundInvalid.length === 0) throw new Error(`${key}: ${message}`);
        this.problems.push(`${key}: ${message}`);
      },
    });
  }

  /** A new process: nothing is remembered, everything is listed and looked at. */
  restart(): void {
    this.#queue.clear();
    this.#timers.clear();
    this.#cursor = this.#server.log.length;
    this.#engine = this.#start();
    for (const object of this.#server.list()) this.#engine.seen(object);
  }

  deliver(): void {
    for (const event of this.#server.log.slice(this.#cursor))
      if (event.type === 'seen') this.#engine.seen(event.object);
      else this.#engine.deleted(event.object);
    this.#cursor = this.#server.log.length;
    for (const [key, at] of this.#timers)
      if (at <= this.#now()) {
        this.#timers.delete(key);
        this.#queue.add(key);
      }
  }

  /** One pass; false: there is nothing to look at. */
  async step(): Promise<boolean> {
    this.deliver();
    const [key] = this.#queue;
    if (key === undefined) return false;
    this.#queue.delete(key);
    await this.pass(key);
    return true;
  }

  async pass(key: Key): Promise<void> {
    this.passes += 1;
    const result = await this.#engine.pass(key, new AbortController().signal);
    const ms = result.type === 'again' ? result.afterMs : result.type === 'failed' ? result.atLeastMs : undefined;
    if (ms === undefined) this.#timers.delete(key);
    else this.#timers.set(key, this.#now() + ms);
  }

  reasons(about: string): string[] {
    return this.events.filter((event) => event.about === about).map(({ reason }) => reason);
  }
}
