import type { KubeObject } from '../../executor/kube/types.ts';
import { ingressOf, MetallbModel } from '../pure/addresses-metallb-model.ts';
import { ModelServer } from '../pure/addresses-model.ts';
import { seededRandom } from '../pure/virtualClock.ts';
import { until } from './kubeBed.ts';
import type { Controller, MetalLb } from './metallb-bed.ts';
import { pinKey, poolKey, type Services } from './metallb-services.ts';

/**
 * Histories of Services and pools, played to MetalLB's controller and to the model of it. In which order MetalLB looks at those who
 * wait is its own affair: what it ends up with has to be what the model ends up with in some order.
 */

export type Step =
  | {
      readonly type: 'create';
      readonly name: string;
      readonly annotations: Readonly<Record<string, string>>;
      readonly spec: Readonly<Record<string, string | string[]>>;
    }
  | { readonly type: 'annotate'; readonly name: string; readonly annotations: Readonly<Record<string, string | null>> }
  /** A member of the spec; null takes it away. */
  | { readonly type: 'edit'; readonly name: string; readonly spec: Readonly<Record<string, string | null>> }
  | { readonly type: 'remove'; readonly name: string }
  /** Creates the pool, or gives it other networks; none of them removes it. */
  | { readonly type: 'pool'; readonly name: string; readonly addresses: readonly string[]; readonly auto: boolean }
  | { readonly type: 'restart' };

/** Networks that each pool has in turn: of different sizes, so that it shows which it has; they never overlap. Of two pools that choose by themselves nobody knows which one is asked. */
const poolsOfHistory: readonly { name: string; auto: boolean; networks: readonly (readonly string[])[] }[] = [
  {
    name: 'any',
    auto: true,
    networks: [
      ['203.0.113.128/30', '2001:db8:128::/126'],
      ['203.0.113.128/31', '2001:db8:128::/127'],
      ['203.0.113.130/31', '2001:db8:128::2/128'],
    ],
  },
  {
    name: 'named',
    auto: false,
    networks: [['203.0.113.132/31', '2001:db8:128::4/127'], ['203.0.113.132/30', '2001:db8:128::4/126'], []],
  },
];
const oldPrefix = 'metallb.universe.tf/';

const asks = (name: string, ip: string): Step => ({
  type: 'create',
  name,
  annotations: { [pinKey]: ip },
  spec: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'] },
});

/** What every history begins with: who waits sleeps on while another one moves, and is woken when one loses what it had. */
export const beginning: readonly Step[] = [
  ...poolsOfHistory.map(
    ({ name, auto, networks }): Step => ({ type: 'pool', name, auto, addresses: networks[0] ?? [] }),
  ),
  asks('s0', '203.0.113.128'),
  asks('s1', '203.0.113.128'),
  { type: 'annotate', name: 's0', annotations: { [pinKey]: '203.0.113.129' } },
  { type: 'annotate', name: 's1', annotations: { touched: 'once' } },
  asks('s2', '203.0.113.129'),
  { type: 'remove', name: 's0' },
  asks('s3', '203.0.113.129'),
  { type: 'annotate', name: 's2', annotations: { [poolKey]: 'nowhere' } },
];

export class History {
  readonly #random: () => number;
  /** Services and pools as the model has them, at rest. */
  objects: readonly KubeObject[] = [];

  constructor(random: () => number) {
    this.#random = random;
  }

  #pick<T>(list: readonly T[]): T {
    const [found] = list.slice(Math.floor(this.#random() * list.length));
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  }

  #is(chance: number): boolean {
    return this.#random() < chance;
  }

  #ip(family: 'IPv4' | 'IPv6'): string {
    const n = Math.floor(this.#random() * (this.#is(0.8) ? 4 : 9));
    return family === 'IPv4' ? `203.0.113.${128 + n}` : `2001:db8:128::${n}`;
  }

  #pin(): string {
    const what = this.#random();
    if (what < 0.05) return 'no address';
    if (what < 0.8) return this.#ip('IPv4');
    return what < 0.9 ? this.#ip('IPv6') : `${this.#ip('IPv4')},${this.#ip('IPv6')}`;
  }

  #create(name: string): Step {
    const annotations: Record<string, string> = {};
    if (this.#is(0.3)) annotations[poolKey] = this.#pick(['any', 'named', 'named']);
    if (this.#is(0.3)) annotations[this.#is(0.8) ? pinKey : `${oldPrefix}loadBalancerIPs`] = this.#pin();
    const families = this.#pick([['IPv4'], ['IPv4'], ['IPv4'], ['IPv4'], ['IPv6'], ['IPv4', 'IPv6']]);
    const spec: Record<string, string | string[]> = {
      ipFamilyPolicy: families.length === 2 ? 'RequireDualStack' : 'SingleStack',
      ipFamilies: families,
    };
    if (this.#is(0.05)) spec.loadBalancerIP = this.#ip('IPv4');
    if (this.#is(0.05)) spec.loadBalancerClass = 'example.com/other';
    return { type: 'create', name, annotations, spec };
  }

  /** Something that happens next. */
  next(): Step {
    const what = this.#random();
    if (what < 0.1) {
      const { name, auto, networks } = this.#pick(poolsOfHistory);
      return { type: 'pool', name, auto, addresses: this.#pick(networks) };
    }
    const name = `s${Math.floor(this.#random() * 8)}`;
    const service = this.objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name);
    if (service === undefined) return this.#create(name);
    if (what < 0.3) return { type: 'remove', name };
    if (what < 0.62) return { type: 'annotate', name, annotations: { [pinKey]: this.#is(0.45) ? null : this.#pin() } };
    if (what < 0.84) {
      const pool = this.#pick(['any', 'named', 'nowhere', null, null, null]);
      return { type: 'annotate', name, annotations: { [poolKey]: pool } };
    }
    if (what < 0.9) return { type: 'annotate', name, annotations: { touched: String(this.#random()) } };
    if (what < 0.94) return { type: 'edit', name, spec: { loadBalancerIP: this.#is(0.7) ? null : this.#ip('IPv4') } };
    // Who is of another class stays of it, and of its type: the server lets nobody change either.
    if (service.spec?.loadBalancerClass !== undefined) return { type: 'remove', name };
    return { type: 'edit', name, spec: { type: service.spec?.type === 'LoadBalancer' ? 'ClusterIP' : 'LoadBalancer' } };
  }
}

const sizeOf = (networks: readonly string[]): number | undefined =>
  networks.length === 0
    ? undefined
    : networks.reduce(
        (sum, network) => sum + 2 ** ((network.includes(':') ? 128 : 32) - Number(network.split('/')[1])),
        0,
      );

/** What each Service has. */
export const outcome = (objects: readonly KubeObject[]): string =>
  objects
    .filter(({ kind }) => kind === 'Service')
    .map((service) => `${service.metadata.name}: ${ingressOf(service).sort().join(' ')}`)
    .sort()
    .join('\n');

/** Lines that were not there before. */
export const linesAfter = (before: string, after: string): string[] => {
  const known = new Set(before.split('\n'));
  return after.split('\n').filter((line) => !known.has(line));
};

function without<T>(members: Readonly<Record<string, T | null>>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).flatMap(([key, value]) => (value === null ? [] : [[key, value]])));
}

/** Which Service is looked at next. */
type First = (keys: readonly string[]) => string | undefined;

interface Ways {
  readonly first?: First;
  /** All Services are looked at once more, before the step or after it. */
  readonly again?: { readonly before: boolean; readonly after: boolean };
}

/** The step taken by the model. */
function modelled(objects: readonly KubeObject[], step: Step, { first, again }: Ways = {}): readonly KubeObject[] {
  const server = new ModelServer(() => 0, false);
  for (const object of objects) server.plant(object);
  const model = new MetallbModel(server, 'metallb');
  const work = (): void => {
    while (model.step(first));
  };
  // At rest it has nothing to look at.
  model.restart(again?.before === true ? undefined : () => []);
  work();
  change(server, step);
  if (step.type === 'restart') model.restart();
  work();
  if (again?.after === true) model.restart();
  work();
  return server.list();
}

function change(server: ModelServer, step: Step): void {
  if (step.type === 'restart') return;
  const isPool = step.type === 'pool';
  const place = { namespace: isPool ? 'metallb' : 'tenant', name: step.name };
  const found = server.get({ kind: isPool ? 'IPAddressPool' : 'Service', ...place });
  const metadata = found?.metadata ?? place;
  switch (step.type) {
    case 'create':
      server.create({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { ...place, annotations: { ...step.annotations } },
        spec: { type: 'LoadBalancer', ...step.spec },
      });
      return;
    case 'pool': {
      const spec = { addresses: [...step.addresses], autoAssign: step.auto };
      if (found === undefined) {
        if (step.addresses.length > 0)
          server.create({ apiVersion: 'metallb.io/v1beta1', kind: 'IPAddressPool', metadata, spec });
      } else if (step.addresses.length === 0) server.remove(found);
      else server.update({ ...found, spec });
      return;
    }
    default:
  }
  if (found === undefined) return;
  if (step.type === 'remove') server.remove(found);
  else if (step.type === 'annotate')
    server.update({
      ...found,
      metadata: { ...metadata, annotations: without({ ...found.metadata.annotations, ...step.annotations }) },
    });
  else server.update({ ...found, spec: without({ ...found.spec, ...step.spec } as Record<string, string | null>) });
}

/** The step taken by the server that MetalLB looks at. */
export async function taken(
  step: Exclude<Step, { type: 'restart' }>,
  at: { services: Services; metallb: MetalLb; controller: Controller; objects: readonly KubeObject[] },
): Promise<void> {
  const { services, metallb, controller, objects } = at;
  switch (step.type) {
    case 'create':
      return services.create(step.name, step);
    case 'annotate':
      return services.annotate(step.name, step.annotations);
    case 'edit': {
      const { type } = step.spec;
      const ports = type === undefined ? {} : { allocateLoadBalancerNodePorts: type === 'LoadBalancer' ? false : null };
      return services.patch(step.name, { spec: { ...step.spec, ...ports } });
    }
    case 'remove':
      return services.remove(step.name);
    case 'pool': {
      const isThere = objects.some(({ kind, metadata }) => kind === 'IPAddressPool' && metadata.name === step.name);
      if (isThere && step.addresses.length === 0) await metallb.removePool(step.name);
      else if (isThere) await metallb.setAddresses(step.name, step.addresses);
      else if (step.addresses.length > 0) await metallb.pool(step.name, step.addresses, step.auto);
      // It looks at pools beside its work on Services.
      const size = sizeOf(step.addresses);
      return until(`pool ${step.name} to be known`, async () => (await controller.capacity(step.name)) === size);
    }
  }
}

/** So many orders are tried, at the most. */
const orders = 300;

/** What the model ends up with in different orders, by what each Service has. */
function outcomes(objects: readonly KubeObject[], step: Step, again: boolean): Map<string, readonly KubeObject[]> {
  const random = seededRandom(1);
  const found = new Map<string, readonly KubeObject[]>();
  for (let n = 0; n < orders; n += 1) {
    const ranks = new Map<string, number>();
    const rank = (key: string): number => {
      const known = ranks.get(key) ?? random();
      ranks.set(key, known);
      return known;
    };
    const first: First = (keys) => [...keys].sort((a, b) => rank(a) - rank(b))[0];
    const ways = again ? { first, again: { before: random() < 0.5, after: random() < 0.5 } } : { first };
    const after = modelled(objects, step, ways);
    found.set(outcome(after), after);
  }
  return found;
}

/**
 * How often MetalLB has to be waited for. Who is given an address wakes nobody: to see it is enough. Otherwise others may be looked
 * at in a pass of their own, which a first wait may come before; and MetalLB writes no more than 20 statuses a second.
 */
function looksNeeded(objects: readonly KubeObject[], step: Step, after: string): number {
  const before = outcome(objects);
  const [first, ...others] = linesAfter(before, after);
  if (step.type === 'pool' || step.type === 'restart') return 2;
  const own = `${step.name}: `;
  if (others.length > 0 || (first !== undefined && !first.startsWith(own))) return 2;
  const had = before.split('\n').find((line) => line.startsWith(own)) ?? own;
  return first !== undefined && had === own ? 0 : 1;
}

interface Look {
  readonly objects: readonly KubeObject[];
  readonly step: Step;
  /** Services as MetalLB has left them. */
  readonly look: () => Promise<readonly KubeObject[]>;
  /** Waits until MetalLB has looked at everything that was written. */
  readonly settled: () => Promise<void>;
}

interface Agreement {
  readonly objects: readonly KubeObject[];
  /** `again`: MetalLB has looked at all Services once more than it had to. */
  readonly how: 'first' | 'order' | 'again';
}

/**
 * Waits until MetalLB has carried out the step, and returns what the model has then. Where it looked at all Services and a status
 * that it wrote was refused, since its cache was behind, it does so again some time later: those who wait may be served then.
 * @throws when MetalLB has ended up with what the model never does.
 */
export async function agreed({ objects, step, look, settled }: Look): Promise<Agreement> {
  const first = modelled(objects, step);
  const found = new Map<string, Agreement>([[outcome(first), { objects: first, how: 'first' }]]);
  let seen = '';
  const agrees = async (): Promise<boolean> => {
    seen = outcome(await look());
    if (!found.has(seen) && found.size === 1)
      for (const how of ['order', 'again'] as const)
        for (const [key, after] of outcomes(objects, step, how === 'again'))
          if (!found.has(key)) found.set(key, { objects: after, how });
    return found.has(seen);
  };
  for (let n = looksNeeded(objects, step, outcome(first)); n >= 0; n -= 1) {
    if (n > 0) await settled();
    await until('both to agree', agrees, 5_000).catch(() => {
      const told = { step, before: outcome(objects), model: [...found.keys()].slice(0, 4), metallb: seen };
      throw new Error(JSON.stringify(told, undefined, 2));
    });
  }
  return found.get(seen) ?? { objects: first, how: 'first' };
}
