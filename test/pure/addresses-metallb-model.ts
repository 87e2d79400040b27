import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { holdsIP, type IPBlock, type IPFamily, ipOf, readIP, readIPRange } from '../../constructs/lib/ip.ts';
import { type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { ModelServer } from './addresses-model.ts';

/**
 * MetalLB's controller as far as the driver rests on it: what it gives to whom, what it keeps, whom it asks again and when.
 * What it holds is in its memory and in the status of Services; a restart leaves it the latter.
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
      if (ingressOf(service).length > 0) this.#given.set(keyOf(service), ingressOf(service));
    for (const key of order(services.map(keyOf))) this.#queue.add(key);
  }

  /** Takes in what happened since. */
  deliver(): void {
    for (const { type, object } of this.#server.log.slice(this.#cursor)) {
      if (object.kind === 'IPAddressPool') this.#all();
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

  #all(): void {
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
    if (service === undefined) return;
    const before = this.#given.get(key) ?? [];
    const after = this.#wanted(service, before);
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
    if (before.length > 0 && after.length === 0) this.#waiting();
  }

  #wanted(service: KubeObject, before: readonly string[]): readonly string[] {
    const spec = objectOf(service.spec);
    if (spec.type !== 'LoadBalancer' || spec.loadBalancerClass !== this.#lbClass) return [];
    const families = texts(spec.ipFamilies);
    const pools = this.#pools();
    const poolName = note(service, 'address-pool');
    const pin = (note(service, 'loadBalancerIPs') ?? '')
      .split(',')
      .map((one) => readIP(one.trim())?.text ?? one.trim())
      .filter((one) => one !== '');
    const fits = (ips: readonly string[]): boolean => same(ips.map(familyOf), families);
    if (pin.length > 0 && (spec.loadBalancerIP !== undefined || !fits(pin)))
      return spec.loadBalancerIP === undefined ? [] : before;
    const isIn = (pool: Pool, ip: string): boolean => {
      const read = readIP(ip);
      return read !== undefined && pool.blocks.some((block) => holdsIP(block, read));
    };
    const allowed = poolName === undefined ? pools : pools.filter((pool) => pool.name === poolName);
    const all = (ips: readonly string[]): boolean =>
      ips.length > 0 && allowed.some((pool) => ips.every((ip) => isIn(pool, ip)));
    if (before.length > 0 && (pin.length === 0 || same(pin, before)) && fits(before) && all(before)) return before;
    const used = new Set([...this.#given].flatMap(([other, ips]) => (other === keyOf(service) ? [] : ips)));
    if (pin.length > 0) return all(pin) && pin.every((ip) => !used.has(ip)) ? pin : [];
    for (const pool of poolName === undefined ? pools.filter(({ autoAssign }) => autoAssign) : allowed) {
      const found = families.map((family) => free(pool, family as IPFamily, used));
      if (found.every((one) => one !== undefined)) return found;
    }
    return [];
  }
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
