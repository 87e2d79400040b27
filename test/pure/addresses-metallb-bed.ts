import { test } from 'uvu';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbLabels } from '../../constructs/api/metallb.ts';
import { isObject, type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { LedgerRef } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import { type Controllers, type EngineLedger, LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { metallbControllers } from '../../executor/addresses/metallb/controllers.ts';
import { MetallbLedger } from '../../executor/addresses/metallb/ledger.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import { isLedgerView, type View } from '../../executor/addresses/objects.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { classSpec, collectGarbage, ingressOf, MetallbModel } from './addresses-metallb-model.ts';
import { ledgerObject, type ModelApi, ModelServer, modelApi } from './addresses-model.ts';

export const settings: MetallbSettings = {
  metallbNamespace: 'metallb-system',
  placeholderNamespace: 'metallb-iad-system',
  forcedRelease: 'deleted',
};

/** A worker over the model: its engine, what it is to look at, and what it wrote and said. */
class ModelWorker<Key extends string, Any extends View, Known extends EngineLedger<Any>> {
  readonly writes: string[] = [];
  readonly events: { about: string; type: string; reason: string; note: string }[] = [];
  readonly reads: string[] = [];
  readonly problems: string[] = [];
  passes = 0;
  /** Fails every write from now on. */
  refuses: string | undefined;
  /** Why the server finds an object invalid; those that were sent all the same. */
  invalid: (object: KubeObject) => string | undefined = () => undefined;
  readonly foundInvalid: string[] = [];
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

  #start(): LedgerEngine<Key, Any, Known> {
    const model = modelApi(this.#server);
    const noted =
      <Args extends unknown[], T>(what: string, call: (...args: Args) => T) =>
      async (...args: Args): Promise<T | { type: 'refused'; message: string; invalid?: true }> => {
        const [first] = args as unknown as [KubeObject];
        if (this.refuses === first.kind) return { type: 'refused', message: 'no' };
        const why = this.invalid(first);
        if (why !== undefined) this.foundInvalid.push(first.metadata.name ?? '');
        if (why !== undefined) return { type: 'refused', message: why, invalid: true };
        this.writes.push(`${what} ${first.kind} ${first.metadata.name}`);
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
      tell: ({ about, type, reason, note }) => this.events.push({ about: about.name, type, reason, note }),
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

/** Core, driver and MetalLB over one model: whoever has something to do does it, until nobody has. */
export class MetallbBed {
  now = Date.parse('2026-01-01T00:00:00Z');
  readonly server: ModelServer;
  readonly settings: MetallbSettings;
  readonly metallb: MetallbModel;
  readonly core;
  readonly driver;
  /** Who takes part. */
  readonly runs = { core: true, driver: true, metallb: true };

  constructor(own: Partial<MetallbSettings> = {}, strict = true) {
    this.settings = { ...settings, ...own };
    this.server = new ModelServer(() => this.now, strict);
    this.metallb = new MetallbModel(this.server, this.settings.metallbNamespace, this.settings.lbClass);
    const now = (): number => this.now;
    this.core = new ModelWorker(this.server, now, () => new LedgerStore(), coreControllers);
    this.driver = new ModelWorker(this.server, now, () => new MetallbLedger(this.settings), metallbControllers);
  }

  async settle(limit = 1_000): Promise<void> {
    for (let n = 0; n < limit; n += 1) {
      if (this.runs.driver && (await this.driver.step())) continue;
      if (this.runs.core && (await this.core.step())) continue;
      if (this.runs.metallb && this.metallb.step()) continue;
      if (collectGarbage(this.server)) continue;
      return;
    }
    throw new Error(`it does not settle: ${this.driver.writes.slice(-12).join(', ')}`);
  }

  async wait(ms: number): Promise<void> {
    this.now += ms;
    await this.settle();
  }

  make(object: KubeObject): KubeObject {
    const outcome = this.server.create(object);
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
    return outcome.object;
  }

  class(addresses = ['203.0.113.0/29', '2001:db8::/126'], more: Record<string, string> = {}, name = 'public'): void {
    this.make(ledgerObject('IPAddressClass', name, classSpec(addresses, more)));
  }

  claim(name = 'web', spec: JsonObject = {}): KubeObject {
    return this.make(ledgerObject('IPAddressClaim', name, { className: 'public', ...spec }));
  }

  address(name: string, address: string, spec: JsonObject = {}): KubeObject {
    return this.make(
      ledgerObject('IPAddress', name, { className: 'public', address, source: { fromClass: {} }, ...spec }),
    );
  }

  /** A Service of a tenant; `claim` is what it is annotated with. */
  service(
    name: string,
    {
      claim,
      pin,
      spec,
      labels,
    }: { claim?: string; pin?: string; spec?: JsonObject; labels?: Record<string, string> } = {},
  ): KubeObject {
    const annotations = {
      ...(claim === undefined ? {} : { [addressAnnotations.claim]: claim }),
      ...(pin === undefined ? {} : { 'metallb.io/loadBalancerIPs': pin }),
    };
    return this.make({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name,
        namespace: 'tenant-a',
        ...(labels === undefined ? {} : { labels }),
        ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      },
      spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [{ port: 80 }], ...spec },
    });
  }

  ref(kind: string, name: string): LedgerRef {
    if (kind === 'IPAddressClaim' || kind === 'Service') return { kind, namespace: 'tenant-a', name };
    if (kind === 'IPAddressPool' || kind === 'L2Advertisement')
      return { kind, namespace: this.settings.metallbNamespace, name };
    return { kind, name };
  }

  find(kind: string, name: string): KubeObject | undefined {
    return this.server.get(this.ref(kind, name));
  }

  live(kind: string, name: string): KubeObject {
    const found = this.find(kind, name);
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found;
  }

  /** Names of placeholders. */
  holds(): string[] {
    return this.placeholders()
      .map(({ metadata }) => metadata.name ?? '')
      .sort();
  }

  placeholders(): KubeObject[] {
    return this.server
      .list('Service')
      .filter(
        ({ metadata }) =>
          metadata.namespace === this.settings.placeholderNamespace &&
          metadata.labels?.[metallbLabels.placeholder] === 'true',
      );
  }

  placeholder(name: string): KubeObject {
    const found = this.server.get({ kind: 'Service', namespace: this.settings.placeholderNamespace, name });
    if (found === undefined) throw new Error(`no placeholder ${name}: ${this.holds().join(', ')}`);
    return found;
  }

  ingress(name: string): string[] {
    return ingressOf(this.live('Service', name));
  }

  pin(name: string): string | undefined {
    return this.live('Service', name).metadata.annotations?.['metallb.io/loadBalancerIPs'];
  }

  marked(name: string): boolean {
    return (
      this.live('Service', name).metadata.annotations?.['metallb.drivers.local.sdn.cozystack.io/pinned'] === 'true'
    );
  }

  user(address: string): string | undefined {
    const user = this.live('IPAddress', address).status?.associatedTo;
    return isObject(user) ? `${user.namespace}/${user.name}` : undefined;
  }

  phase(kind: string, name: string): unknown {
    return this.live(kind, name).status?.phase;
  }

  condition(name: string, type: string): string {
    const found = objectsOf(this.live('IPAddress', name).status?.conditions).find((one) => one.type === type);
    return found === undefined ? '' : `${found.status}/${found.reason}`;
  }

  edit(kind: string, name: string, change: (object: KubeObject) => KubeObject): void {
    const outcome = this.server.update(change(structuredClone(this.live(kind, name))));
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
  }

  editSpec(kind: string, name: string, spec: JsonObject): void {
    this.edit(kind, name, (object) => ({
      ...object,
      spec: Object.fromEntries(Object.entries({ ...object.spec, ...spec }).filter(([, value]) => value !== undefined)),
    }));
  }

  annotate(kind: string, name: string, key: string, value: string | undefined): void {
    this.edit(kind, name, (object) => ({ ...object, metadata: withAnnotation(object.metadata, key, value) }));
  }

  /** The Service names another claim, or none. */
  names(service: string, claim: string | undefined): void {
    this.annotate('Service', service, addressAnnotations.claim, claim);
  }

  delete(kind: string, name: string): void {
    this.server.remove(this.live(kind, name));
  }

  claimRef(name: string): JsonObject {
    return objectOf(this.live('IPAddress', name).spec?.claimRef);
  }

  /** Looking at everything again, twice, writes and says nothing. */
  async quiet(): Promise<void> {
    const [writes, events] = [this.driver.writes.length, this.driver.events.length];
    for (const object of this.server.list()) {
      const { namespace, name = '' } = object.metadata;
      const key = `${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
      if (object.kind === 'IPAddressPool' || object.kind === 'L2Advertisement') continue;
      await this.driver.pass(key as Parameters<typeof this.driver.pass>[0]);
      await this.driver.pass(key as Parameters<typeof this.driver.pass>[0]);
    }
    if (this.driver.writes.length !== writes)
      throw new Error(`written: ${this.driver.writes.slice(writes).join(', ')}`);
    if (this.driver.events.length !== events)
      throw new Error(`said: ${JSON.stringify(this.driver.events.slice(events))}`);
  }

  /** I9: one placeholder pinned to each address that nobody uses, none for the others. */
  checkHolds(): void {
    for (const object of this.server.list('IPAddress')) {
      const view = this.driver.ledger.address(object.metadata.name ?? '');
      if (view === undefined || !isLedgerView(view) || view.deleting || view.ip === undefined) continue;
      const found = this.server.list('IPAddressClass').find(({ metadata }) => metadata.name === view.className);
      if (objectOf(found?.spec).provisioner !== 'metallb.drivers.local.sdn.cozystack.io') continue;
      const ip = view.ip.text;
      const holds = this.placeholders().filter(
        ({ metadata }) => metadata.annotations?.['metallb.io/loadBalancerIPs'] === ip,
      );
      const wanted = view.associatedTo === undefined ? 1 : 0;
      if (holds.length !== wanted) throw new Error(`I9 ${view.name}: ${holds.length} holds, wanted ${wanted}`);
    }
  }
}

function withAnnotation(metadata: ObjectMeta, key: string, value: string | undefined): ObjectMeta {
  const { [key]: _, ...others } = metadata.annotations ?? {};
  return { ...metadata, annotations: { ...others, ...(value === undefined ? {} : { [key]: value }) } };
}

/** A test on a bed of its own; after it everything comes to rest, and nothing is left to write or to say. */
export const scenario = (
  name: string,
  run: (bed: MetallbBed) => Promise<void>,
  own: Partial<MetallbSettings> = {},
): void => {
  test(name, async () => {
    const bed = new MetallbBed(own);
    await run(bed);
    await bed.settle();
    bed.checkHolds();
    await bed.quiet();
  });
};

export const one = 'ip-203-0-113-0';
export const ip = '203.0.113.0';

/** Claim `web` has the first address of class `public`. */
export async function provisioned(
  bed: MetallbBed,
  claim: JsonObject = {},
  classMore: Record<string, string> = {},
): Promise<KubeObject> {
  bed.class(undefined, classMore);
  const made = bed.claim('web', claim);
  await bed.settle();
  return made;
}

/** Service `a` uses the address of claim `web`. */
export async function associated(bed: MetallbBed, classMore: Record<string, string> = {}): Promise<void> {
  await provisioned(bed, {}, classMore);
  bed.service('a', { claim: 'web' });
  await bed.settle();
}

/** A free address that a person made, with its hold. */
export async function stock(bed: MetallbBed, name = one, address = ip): Promise<void> {
  bed.class();
  bed.address(name, address);
  await bed.settle();
}
