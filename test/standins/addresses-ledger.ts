/**
 * A ledger in which everything is done: classes with their pools, claims with their addresses, Services that use them, and
 * placeholders for the rest. Written from what the planners themselves say, so that they find nothing to do.
 */
import { randomUUID } from 'node:crypto';
import {
  addressAnnotations,
  addressesApiVersion,
  addressesGroup,
  addressFinalizers,
  addressName,
} from '../../constructs/api/addresses.ts';
import { timeText } from '../../constructs/api/conditions.ts';
import { metallbAnnotations, metallbProvisioner, poolName } from '../../constructs/api/metallb.ts';
import { type IPAddress, readIP } from '../../constructs/lib/ip.ts';
import { type JsonObject, objectOf } from '../../constructs/lib/json.ts';
import { conditionOf, type NewCondition, withConditions } from '../../executor/addresses/core/conditions.ts';
import { linkTo, placeholder } from '../../executor/addresses/metallb/holds.ts';
import { driverFinalizer, holdName, type MetallbSettings, pins } from '../../executor/addresses/metallb/names.ts';
import type { Planted } from '../apiserver/plant.ts';

export interface LedgerShape {
  readonly classes: number;
  /** Of each class: used by Services, claimed and held, and free. */
  readonly used: number;
  readonly claimed: number;
  readonly free: number;
  /** Where claims and Services are. */
  readonly namespace: string;
  readonly settings: MetallbSettings;
}

export const className = (n: number): string => `class-${String(n).padStart(3, '0')}`;
/** 16,384 addresses for each of up to 256 classes. */
export const networkOf = (n: number): string => `100.${64 + (n >> 2)}.${(n & 3) * 64}.0/18`;
export const ipAt = (n: number, at: number): IPAddress => {
  const found = readIP(`100.${64 + (n >> 2)}.${(n & 3) * 64 + (at >> 8)}.${at & 255}`);
  if (found === undefined) throw new RangeError(`no address ${at} of class ${n}`);
  return found;
};
export const nameAt = (n: number, at: number): string => `${className(n)}-${at}`;

/** Where MetalLB writes which pool an address is from. */
const givenFrom = 'metallb.io/ip-allocated-from-pool';

const since = Date.parse('2026-01-01T00:00:00Z');
const metadata = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  uid: randomUUID(),
  generation: 1,
  creationTimestamp: timeText(since),
  ...more,
});
const conditions = (...all: NewCondition[]): JsonObject[] => withConditions([], all, since);

/** Cluster addresses as the API server would have given them, beginning in the second half of 10.96.0.0/16. */
function* clusterAddresses(): Generator<string> {
  for (let n = 0; n < 128 * 256; n += 1) yield `10.96.${128 + (n >> 8)}.${n & 255}`;
}

class LedgerWriter {
  readonly planted: Planted[] = [];
  readonly #shape: LedgerShape;
  readonly #clusterAddresses = clusterAddresses();

  constructor(shape: LedgerShape) {
    this.#shape = shape;
  }

  #ledger(kind: string, plural: string, made: JsonObject, more: JsonObject): JsonObject {
    const object = { apiVersion: addressesApiVersion, kind, metadata: made, ...more };
    const place = typeof made.namespace === 'string' ? `${made.namespace}/` : '';
    this.planted.push({ key: `${addressesGroup}/${plural}/${place}${String(made.name)}`, object });
    return object;
  }

  #owner({ kind, metadata: made }: JsonObject): JsonObject {
    const { name, uid } = objectOf(made);
    return { apiVersion: addressesApiVersion, kind: kind ?? '', name: name ?? '', uid: uid ?? '' };
  }

  class(n: number): void {
    const name = className(n);
    const addresses = [networkOf(n)];
    const found = this.#ledger(
      'IPAddressClass',
      'ipaddressclasses',
      metadata(name, { finalizers: [addressFinalizers.class] }),
      { spec: { provisioner: metallbProvisioner, reclaimPolicy: 'Retain', parameters: { addresses } } },
    );
    const namespace = this.#shape.settings.metallbNamespace;
    const rendered = (kind: string, plural: string, spec: JsonObject): void => {
      const made = metadata(poolName(name), { namespace, ownerReferences: [this.#owner(found)] });
      const object = { apiVersion: 'metallb.io/v1beta1', kind, metadata: made, spec };
      this.planted.push({ key: `metallb.io/${plural}/${namespace}/${poolName(name)}`, object });
    };
    rendered('IPAddressPool', 'ipaddresspools', { addresses, autoAssign: false, avoidBuggyIPs: false });
    rendered('L2Advertisement', 'l2advertisements', { ipAddressPools: [poolName(name)] });
  }

  address(n: number, at: number): void {
    const { used, claimed, namespace } = this.#shape;
    const [ip, name] = [ipAt(n, at), addressName(ipAt(n, at))];
    const isClaimed = at < used + claimed;
    const user = { kind: 'Service', namespace, name: nameAt(n, at) };
    const claim = isClaimed ? this.#claim(n, at, ip) : undefined;
    const bound = isClaimed
      ? conditionOf('Bound', 'True', 'Bound', { what: `${namespace}/${nameAt(n, at)}` })
      : conditionOf('Bound', 'False', 'Available');
    const held =
      at < used
        ? conditionOf('Held', 'True', 'InUse', { user: `Service ${namespace}/${nameAt(n, at)}` })
        : conditionOf('Held', 'True', 'Reserved', { placeholder: holdName(name) });
    const address = this.#ledger(
      'IPAddress',
      'ipaddresses',
      metadata(name, { finalizers: [driverFinalizer, addressFinalizers.address] }),
      {
        spec: {
          className: className(n),
          address: ip.text,
          reclaimPolicy: 'Retain',
          ...(claim === undefined ? {} : { claimRef: claim }),
          source: { fromClass: {} },
        },
        status: {
          phase: isClaimed ? 'Bound' : 'Available',
          ...(at < used ? { associatedTo: user } : {}),
          conditions: conditions(bound, held),
        },
      },
    );
    if (at < used) this.#user(n, at, ip);
    else this.#hold(n, name, ip, address);
  }

  #claim(n: number, at: number, ip: IPAddress): JsonObject {
    const { namespace } = this.#shape;
    const name = nameAt(n, at);
    const resolved = conditionOf('ClassResolved', 'True', 'Resolved', { class: className(n) });
    const bound = conditionOf('Bound', 'True', 'Bound', { what: ip.text });
    const made = metadata(name, {
      namespace,
      finalizers: [addressFinalizers.claim],
      annotations: { [addressAnnotations.provisioner]: metallbProvisioner },
    });
    this.#ledger('IPAddressClaim', 'ipaddressclaims', made, {
      spec: { className: className(n), family: 'IPv4' },
      status: {
        phase: 'Bound',
        className: className(n),
        addresses: [{ name: addressName(ip), address: ip.text }],
        conditions: conditions({ ...resolved, observedGeneration: 1 }, { ...bound, observedGeneration: 1 }),
      },
    });
    return { namespace, name, uid: made.uid ?? '' };
  }

  #user(n: number, at: number, ip: IPAddress): void {
    const { namespace, settings } = this.#shape;
    const name = nameAt(n, at);
    const annotations = {
      [addressAnnotations.claim]: name,
      [pins.own]: ip.text,
      [metallbAnnotations.pinned]: 'true',
      [givenFrom]: poolName(className(n)),
    };
    const port = { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 };
    const spec = { type: 'LoadBalancer', ports: [port], selector: { app: name }, ...lbClass(settings) };
    this.#service(metadata(name, { namespace, annotations }), spec, ip);
  }

  #hold(n: number, name: string, ip: IPAddress, address: JsonObject): void {
    const link = linkTo(name, ip.text);
    const annotations = Object.fromEntries(
      Object.entries(link.annotations).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
    );
    const { settings } = this.#shape;
    const wanted = { name: holdName(name), family: 'IPv4', className: className(n), labels: link.labels } as const;
    const object = placeholder(settings, {
      ...wanted,
      annotations: { ...annotations, [givenFrom]: poolName(className(n)) },
    });
    const { labels = {}, annotations: all = {}, namespace = '' } = object.metadata;
    const made = metadata(holdName(name), { namespace, labels, annotations: all });
    this.#service({ ...made, ownerReferences: [this.#owner(address)] }, objectOf(object.spec), ip);
  }

  /** With the fields that the API server fills in, and the object by which it remembers whose cluster address it is. */
  #service(made: JsonObject, spec: JsonObject, ip: IPAddress): void {
    const { value: clusterIP } = this.#clusterAddresses.next();
    if (typeof clusterIP !== 'string') throw new RangeError('too many Services');
    const [namespace, name] = [String(made.namespace), String(made.name)];
    const ports = (spec.ports as JsonObject[]).map((port) => ({ targetPort: port.port ?? 0, ...port }));
    const object = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: made,
      spec: {
        allocateLoadBalancerNodePorts: false,
        clusterIP,
        clusterIPs: [clusterIP],
        externalTrafficPolicy: 'Cluster',
        internalTrafficPolicy: 'Cluster',
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        sessionAffinity: 'None',
        ...spec,
        ports,
      },
      status: { loadBalancer: { ingress: [{ ip: ip.text, ipMode: 'VIP' }] } },
    };
    this.planted.push({ key: `services/specs/${namespace}/${name}`, object });
    const labels = {
      'ipaddress.kubernetes.io/ip-family': 'IPv4',
      'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
    };
    const parentRef = { group: '', resource: 'services', namespace, name };
    this.planted.push({
      key: `ipaddresses/${clusterIP}`,
      object: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IPAddress',
        metadata: metadata(clusterIP, { labels }),
        spec: { parentRef },
      },
    });
  }
}

const lbClass = ({ lbClass: loadBalancerClass }: MetallbSettings): JsonObject =>
  loadBalancerClass === undefined ? {} : { loadBalancerClass };

/** All objects of such a ledger. */
export function ledgerOf(shape: LedgerShape): readonly Planted[] {
  const writer = new LedgerWriter(shape);
  for (let n = 0; n < shape.classes; n += 1) {
    writer.class(n);
    for (let at = 0; at < shape.used + shape.claimed + shape.free; at += 1) writer.address(n, at);
  }
  return writer.planted;
}
