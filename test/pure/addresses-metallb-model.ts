import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { holdsIP, type IPBlock, type IPFamily, ipOf, readIP, readIPRange } from '../../constructs/lib/ip.ts';
import { type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { ModelServer } from './addresses-model.ts';

/**
 * MetalLB's controller as far as the driver rests on it: what it gives to whom, what it keeps, whom it asks again and when.
 * What it holds is in its memory and in the status of Services; a restart leaves it the latter. Beyond it are addresses that are
 * shared, pools that overlap, one family where two are preferred, and pools of a namespace.
 */

interface Pool {
  readonly name: string;
  readonly blocks: readonly IPBlock[];
  readonly autoAssign: boolean;
}

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
export const ingressOf = (service: { readonly status?: JsonObject | undefined } | undefined): string[] =>
  objectsOf(objectOf(service?.status?.loadBalancer).ingress).map(({ ip }) => String(ip));
const familyOf = (ip: string): IPFamily => (ip.includes(':') ? 'IPv6' : 'IPv4');

const note = (service: KubeObject, name: string): string | undefined =>
  service.metadata.annotations?.[`metallb.io/${name}`] ?? service.metadata.annotations?.[`metallb.universe.tf/${name}`];

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one) => b.includes(one));

/** The API server as MetalLB sees it. */
export type MetallbServer = Pick<ModelServer, 'get' | 'list' | 'log'> & {
  updateStatus(object: KubeObject, status: JsonObject): unknown;
};

export class MetallbModel {
  readonly #server: MetallbServer;
  readonly #namespace: string;
  readonly #lbClass: string | undefined;
  readonly #given = new Map<string, readonly string[]>();
  readonly #queue = new Set<string>();
  #cursor = 0;

  constructor(server: MetallbServer, namespace: string, lbClass?: string) {
    this.#server = server;
    this.#namespace = namespace;
    this.#lbClass = lbClass;
  }

  /** It remembers nothing but what Services show, and looks at all of them. */
  restart(order: (keys: readonly string[]) => readonly string[] = (keys) => keys): void {
    this.#given.clear();
    this.#queue.clear();
    this.#cursor = this.#server.log.length;
    const services = this.#server.list('Service');
    for (const service of services)
      if (ingressOf(service).length > 0 && this.#serves(service)) this.#given.set(keyOf(service), ingressOf(service));
    for (const key of order(services.map(keyOf))) this.#queue.add(key);
  }

  /** Takes in what happened since. */
  deliver(): void {
    const events = this.#server.log.slice(this.#cursor);
    if (events.some(({ object }) => object.kind === 'IPAddressPool')) this.#poolsChanged();
    for (const { type, object } of events) {
      if (object.kind !== 'Service') continue;
      this.#queue.add(keyOf(object));
      if (type === 'deleted' && this.#given.delete(keyOf(object))) this.#waiting();
    }
    this.#cursor = this.#server.log.length;
  }

  get busy(): boolean {
    return this.#queue.size > 0 || this.#server.log.length > this.#cursor;
  }

  /** Looks at one Service; false: at none. */
  step(choose: (keys: readonly string[]) => string | undefined = ([first]) => first): boolean {
    this.deliver();
    const key = choose([...this.#queue]);
    if (key === undefined) return false;
    this.#queue.delete(key);
    this.#converge(key);
    return true;
  }

  /** Services of another class are none of its business, whatever they have. */
  #serves(service: KubeObject): boolean {
    return objectOf(service.spec).loadBalancerClass === this.#lbClass;
  }

  /** It forgets at once what no pool holds any more, and looks at all Services. */
  #poolsChanged(): void {
    const pools = this.#pools();
    for (const [key, ips] of this.#given)
      if (!pools.some((pool) => ips.every((ip) => isIn(pool, ip)))) this.#given.delete(key);
    for (const service of this.#server.list('Service')) this.#queue.add(keyOf(service));
  }

  #waiting(): void {
    for (const service of this.#server.list('Service'))
      if (!this.#given.has(keyOf(service))) this.#queue.add(keyOf(service));
  }

  #pools(): Pool[] {
    return this.#server
      .list('IPAddressPool')
      .filter(({ metadata }) => metadata.namespace === this.#namespace && metadata.deletionTimestamp === undefined)
      .map(({ metadata, spec }) => ({
        name: metadata.name ?? '',
        blocks: texts(spec?.addresses)
          .map(readIPRange)
          .filter((one) => one !== undefined),
        autoAssign: spec?.autoAssign !== false,
      }));
  }

  #converge(key: string): void {
    const [namespace = '', name = ''] = key.split('/');
    const service = this.#server.get({ kind: 'Service', namespace, name });
    if (service === undefined || !this.#serves(service)) return;
    const given = this.#given.get(key);
    // What it has forgotten stands in the status, until it looks.
    const after = this.#wanted(service, given ?? ingressOf(service));
    if (after.length === 0) this.#given.delete(key);
    else this.#given.set(key, after);
    if (!same(ingressOf(service), after)) {
      const status = {
        ...service.status,
        loadBalancer: after.length === 0 ? {} : { ingress: after.map((ip) => ({ ip })) },
      };
      this.#server.updateStatus(service, status);
    }
    // A Service that only moves wakes nobody.
    if (given !== undefined && after.length === 0) this.#waiting();
  }

  /** Addresses that a Service is to have, by what it asks for and what it has: MetalLB's own order of questions. */
  #wanted(service: KubeObject, before: readonly string[]): readonly string[] {
    const spec = objectOf(service.spec);
    const families = texts(spec.ipFamilies);
    const pools = this.#pools();
    if (spec.type !== 'LoadBalancer' || pools.length === 0) return [];
    const used = new Set([...this.#given].flatMap(([other, ips]) => (other === keyOf(service) ? [] : ips)));
    const poolName = note(service, 'address-pool') || undefined;
    const wish = wishOf(service);
    const fits = (ips: readonly string[]): boolean => same(ips.map(familyOf), families);
    const poolOf = (ips: readonly string[]): Pool | undefined =>
      pools.find((pool) => ips.every((ip) => isIn(pool, ip)) && !ips.some((ip) => used.has(ip)));
    const isHome = (ips: readonly string[]): boolean => {
      const pool = poolOf(ips);
      return pool !== undefined && (poolName === undefined || pool.name === poolName);
    };
    const has = before.length > 0 && fits(before) && isHome(before) ? before : [];
    // What can not be read takes nothing away.
    if (wish.type === 'wrong') return has;
    if (wish.type === 'pinned') {
      if (same(has, wish.ips)) return has;
      return fits(wish.ips) && isHome(wish.ips) ? wish.ips : [];
    }
    if (has.length > 0) return has;
    for (const pool of pools.filter(({ name, autoAssign }) =>
      poolName === undefined ? autoAssign : name === poolName,
    )) {
      const found = families.map((family) => free(pool, family as IPFamily, used));
      if (found.every((one) => one !== undefined)) return found;
    }
    return [];
  }
}

type Wish = { readonly type: 'none' | 'wrong' } | { readonly type: 'pinned'; readonly ips: readonly string[] };

/** Which addresses a Service asks for by name. */
function wishOf(service: KubeObject): Wish {
  const [pin, field] = [note(service, 'loadBalancerIPs') ?? '', String(objectOf(service.spec).loadBalancerIP ?? '')];
  if (pin === '' && field === '') return { type: 'none' };
  const ips = (pin === '' ? field : pin).split(',').map((one) => readIP(one.trim())?.text);
  const read = ips.filter((one) => one !== undefined);
  const isRead = read.length === ips.length && new Set(read.map(familyOf)).size === read.length;
  return (pin === '' || field === '') && isRead ? { type: 'pinned', ips: read } : { type: 'wrong' };
}

function isIn({ blocks }: Pool, ip: string): boolean {
  const read = readIP(ip);
  return read !== undefined && blocks.some((block) => holdsIP(block, read));
}

function free({ blocks }: Pool, family: IPFamily, used: ReadonlySet<string>): string | undefined {
  for (const block of blocks) {
    if (block.family !== family) continue;
    for (let value = block.first; value <= block.last; value += 1n) {
      const { text } = ipOf(family, value);
      if (!used.has(text)) return text;
    }
  }
  return undefined;
}

/** What the garbage collector would take: whatever has owners, and none of them is there any more. */
export function collectGarbage(server: ModelServer): boolean {
  const present = new Set(server.list().map(({ metadata }) => metadata.uid));
  const garbage = server.list().filter(({ metadata }) => {
    const owners = objectsOf(metadata.ownerReferences);
    return (
      owners.length > 0 &&
      metadata.deletionTimestamp === undefined &&
      owners.every(({ uid }) => !present.has(String(uid)))
    );
  });
  for (const object of garbage) server.remove(object);
  return garbage.length > 0;
}

export const classSpec = (addresses: readonly string[], more: Record<string, string> = {}) => ({
  provisioner: metallbProvisioner,
  reclaimPolicy: 'Retain',
  parameters: { addresses: [...addresses] },
  ...more,
});
