import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { LedgerRef } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import type { PassKey } from '../../executor/addresses/core/wake.ts';
import { LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { LedgerEvent } from '../../executor/addresses/plan.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { ledgerObject, type ModelApi, ModelServer, modelApi, provisioner } from './addresses-model.ts';

/** The core over the model: every change is seen at once, and every pass runs until nothing is left to do. */
export class LedgerBed {
  now = Date.parse('2026-01-01T00:00:00Z');
  readonly server: ModelServer;
  readonly events: { about: string; type: string; reason: string; note: string }[] = [];
  writes: string[] = [];
  passes = 0;
  /** Kinds that were read uncached. */
  reads: string[] = [];
  engine: LedgerEngine<PassKey>;
  readonly #queue = new Set<PassKey>();
  readonly #timers = new Map<PassKey, number>();
  #cursor = 0;

  constructor(strict = true) {
    this.server = new ModelServer(() => this.now, strict);
    this.engine = this.#start();
  }

  #start(): LedgerEngine<PassKey> {
    const model = modelApi(this.server);
    const noted =
      <Args extends unknown[], T>(what: string, call: (...args: Args) => T) =>
      async (...args: Args): Promise<T> => {
        const [first] = args as unknown as [KubeObject];
        this.writes.push(`${what} ${first.kind} ${first.metadata.name}`);
        return call(...args);
      };
    return new LedgerEngine<PassKey>({
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
      ledger: new LedgerStore(),
      controllers: coreControllers,
      now: () => this.now,
      wake: (key) => this.#queue.add(key),
      tell: (event) => this.#told(event),
      onProblem: (key, message) => {
        throw new Error(`${key}: ${message}`);
      },
    });
  }

  #told({ about, type, reason, note }: LedgerEvent): void {
    this.events.push({ about: about.name, type, reason, note });
  }

  /** A new process: nothing is remembered, everything is listed and looked at. */
  restart(): void {
    this.#queue.clear();
    this.#timers.clear();
    this.#cursor = this.server.log.length;
    this.engine = this.#start();
    for (const object of this.server.list()) this.engine.seen(object);
  }

  /** Works until nothing is left; the delays that are over by now are over. */
  async settle(limit = 500): Promise<void> {
    for (let n = 0; n < limit; n += 1) {
      this.deliver();
      for (const [key, at] of this.#timers)
        if (at <= this.now) {
          this.#timers.delete(key);
          this.#queue.add(key);
        }
      const [key] = this.#queue;
      if (key === undefined) return;
      this.#queue.delete(key);
      await this.pass(key);
    }
    throw new Error('it does not settle');
  }

  deliver(): void {
    for (const event of this.server.log.slice(this.#cursor))
      if (event.type === 'seen') this.engine.seen(event.object);
      else this.engine.deleted(event.object);
    this.#cursor = this.server.log.length;
  }

  async pass(key: PassKey): Promise<void> {
    this.passes += 1;
    const result = await this.engine.pass(key, new AbortController().signal);
    if (result.type === 'again') this.#timers.set(key, this.now + result.afterMs);
    else this.#timers.delete(key);
    if (result.type === 'failed') throw new Error(`${key} failed`);
  }

  /** Lets time pass, and works. */
  async wait(ms: number): Promise<void> {
    this.now += ms;
    await this.settle();
  }

  create(kind: LedgerKind, name: string, spec: JsonObject, metadata: ObjectMeta = {}): KubeObject {
    const outcome = this.server.create(ledgerObject(kind, name, spec, metadata));
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
    return outcome.object;
  }

  refusal(kind: LedgerKind, name: string, spec: JsonObject): string {
    const outcome = this.server.create(ledgerObject(kind, name, spec));
    return outcome.type === 'refused' ? outcome.message : outcome.type;
  }

  class(name = 'public', spec: JsonObject = {}, metadata: ObjectMeta = {}): KubeObject {
    return this.create('IPAddressClass', name, { provisioner, ...spec }, metadata);
  }

  claim(name = 'web', spec: JsonObject = { className: 'public' }, metadata: ObjectMeta = {}): KubeObject {
    return this.create('IPAddressClaim', name, spec, metadata);
  }

  /** An address named by convention, of class public unless it says otherwise. */
  address(text: string, spec: JsonObject = {}, metadata: ObjectMeta = {}): KubeObject {
    const name = `ip-${text.replaceAll(/[.:]/g, '-')}`;
    return this.create(
      'IPAddress',
      name,
      { className: 'public', address: text, source: { fromClass: {} }, ...spec },
      metadata,
    );
  }

  ref(kind: LedgerKind, name: string): LedgerRef {
    return kind === 'IPAddressClaim' ? { kind, namespace: 'tenant-a', name } : { kind, name };
  }

  find(kind: LedgerKind, name: string): KubeObject | undefined {
    return this.server.get(this.ref(kind, name));
  }

  live(kind: LedgerKind, name: string): KubeObject {
    const found = this.find(kind, name);
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found;
  }

  /** What somebody else makes of an object. */
  edit(kind: LedgerKind, name: string, change: (object: KubeObject) => KubeObject): void {
    const outcome = this.server.update(change(structuredClone(this.live(kind, name))));
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
  }

  editSpec(kind: LedgerKind, name: string, spec: JsonObject): void {
    this.edit(kind, name, (object) => ({
      ...object,
      spec: Object.fromEntries(Object.entries({ ...object.spec, ...spec }).filter(([, value]) => value !== undefined)),
    }));
  }

  annotate(kind: LedgerKind, name: string, key: string, value: string | undefined): void {
    this.edit(kind, name, (object) => {
      const annotations = { ...object.metadata.annotations };
      if (value === undefined) delete annotations[key];
      else annotations[key] = value;
      return { ...object, metadata: { ...object.metadata, annotations } };
    });
  }

  /** What a driver writes into a status. */
  editStatus(kind: LedgerKind, name: string, status: JsonObject): void {
    const object = this.live(kind, name);
    const outcome = this.server.updateStatus(object, { ...object.status, ...status });
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
  }

  delete(kind: LedgerKind, name: string): void {
    const outcome = this.server.remove(this.live(kind, name));
    if (outcome.type !== 'removed') throw new Error(JSON.stringify(outcome));
  }

  /** Takes every finalizer off, as people do. */
  strip(kind: LedgerKind, name: string): void {
    this.edit(kind, name, (object) => ({ ...object, metadata: { ...object.metadata, finalizers: [] } }));
  }

  phase(kind: LedgerKind, name: string): JsonValue | undefined {
    return this.live(kind, name).status?.phase;
  }

  /** `<status>/<reason>` of a condition. */
  condition(kind: LedgerKind, name: string, type: string): string {
    const found = this.conditionOf(kind, name, type);
    return found === undefined ? '' : `${found.status}/${found.reason}`;
  }

  conditionOf(kind: LedgerKind, name: string, type: string): JsonObject | undefined {
    const { status } = this.live(kind, name);
    const list = Array.isArray(status?.conditions) ? status.conditions.filter(isObject) : [];
    return list.find((one) => one.type === type);
  }

  claimRef(name: string): JsonValue | undefined {
    return this.live('IPAddress', name).spec?.claimRef;
  }

  /** Addresses in the status of a claim. */
  got(name = 'web'): string[] {
    const { status } = this.live('IPAddressClaim', name);
    return Array.isArray(status?.addresses) ? status.addresses.filter(isObject).map((one) => String(one.name)) : [];
  }

  reasons(about: string): string[] {
    return this.events.filter((event) => event.about === about).map(({ reason }) => reason);
  }

  /** Nothing is written or said when nothing changed, whatever is looked at. */
  async quiet(): Promise<void> {
    const [writes, events] = [this.writes.length, this.events.length];
    for (const object of this.server.list()) {
      const { namespace, name = '' } = object.metadata;
      const key = `${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`}` as PassKey;
      await this.pass(key);
      await this.pass(key);
    }
    if (this.writes.length !== writes) throw new Error(`written: ${this.writes.slice(writes).join(', ')}`);
    if (this.events.length !== events) throw new Error(`said: ${JSON.stringify(this.events.slice(events))}`);
  }
}

/** A test on a bed of its own; after it everything comes to rest, and nothing is left to write or to say. */
export const scenario = (name: string, run: (bed: LedgerBed) => Promise<void>): void => {
  test(name, async () => {
    const bed = new LedgerBed();
    await run(bed);
    await bed.settle();
    await bed.quiet();
  });
};

const one = 'ip-203-0-113-7';

/** Claim `web` has the only address of class `public`. */
export async function held(bed: LedgerBed, spec: JsonObject = {}, classSpec: JsonObject = {}): Promise<void> {
  bed.class('public', classSpec);
  bed.claim();
  bed.address('203.0.113.7', spec);
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.phase('IPAddress', one)], ['Bound', 'Bound']);
}

/** The claim is gone, and the address kept. */
export async function released(bed: LedgerBed, classSpec: JsonObject = {}): Promise<void> {
  await held(bed, {}, classSpec);
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.phase('IPAddress', one), 'Released');
}
