/** Address ranges that a network is rendered with, against one another and against the cluster. Pure. */
import { BlockList, isIP } from 'node:net';
import type { AddressFamily } from '../../constructs/api/evidence/words.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { isObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeObject } from '../kube/types.ts';
import type { LiveNode } from './snapshot.ts';

/** Ranges by what they are for, each in the order of its families. */
export interface NetworkRanges {
  readonly pods: readonly string[];
  readonly services: readonly string[];
  /** Between the nodes and the network. */
  readonly join: readonly string[];
}

const flags = {
  pods: '--default-cidr=',
  services: '--service-cluster-ip-range=',
  join: '--node-switch-cidr=',
} as const;

const list = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);
const member = (value: JsonValue | undefined, key: string): JsonValue | undefined =>
  isObject(value) ? value[key] : undefined;

/** Arguments of all containers of a workload. */
export const argumentsOf = (object: KubeObject): string[] =>
  list(member(member(member(object.spec, 'template'), 'spec'), 'containers')).flatMap((container) =>
    [...list(member(container, 'command')), ...list(member(container, 'args'))].filter(
      (word): word is string => typeof word === 'string',
    ),
  );

/** The ranges that kube-ovn-controller is told; undefined where the payload holds no controller. */
export function rangesOf(objects: readonly KubeObject[]): NetworkRanges | undefined {
  const controller = objects.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'kube-ovn-controller',
  );
  if (controller === undefined) return undefined;
  const words = argumentsOf(controller);
  const told = (flag: string): string[] =>
    (words.find((word) => word.startsWith(flag))?.slice(flag.length) ?? '').split(',').filter((one) => one !== '');
  return { pods: told(flags.pods), services: told(flags.services), join: told(flags.join) };
}

const split = (range: string): { address: string; bits: number } => {
  const [address = '', bits = ''] = range.split('/');
  return { address, bits: /^[0-9]{1,3}$/.test(bits) ? Number(bits) : Number.NaN };
};

const familyOf = (addressOrRange: string): AddressFamily | undefined =>
  (({ 4: 'IPv4', 6: 'IPv6' }) as const)[isIP(split(addressOrRange).address) as 4 | 6];

function isRange(range: string): boolean {
  const { address, bits } = split(range);
  const most = isIP(address) === 4 ? 32 : isIP(address) === 6 ? 128 : -1;
  return bits >= 0 && bits <= most;
}

/** Whether a range holds an address. */
function holds(range: string, address: string): boolean {
  const family = familyOf(range);
  if (family === undefined || family !== familyOf(address)) return false;
  const { address: network, bits } = split(range);
  const type = family === 'IPv4' ? 'ipv4' : 'ipv6';
  const block = new BlockList();
  block.addSubnet(network, bits, type);
  return block.check(address, type);
}

const overlap = (a: string, b: string): boolean => holds(a, split(b).address) || holds(b, split(a).address);
const covers = (outer: string, inner: string): boolean =>
  holds(outer, split(inner).address) && split(outer).bits <= split(inner).bits;

export interface RangeFacts {
  readonly object: string;
  readonly stack: InstallationSpec['networkStack'];
  /** Labels of the nodes that carry the data plane. */
  readonly selector: Readonly<Record<string, string>>;
  readonly ranges: NetworkRanges;
  readonly nodes: readonly LiveNode[];
  /** Ranges from which the API server takes addresses of Services, the primary family first; undefined: not told. */
  readonly serviceCIDRs: readonly string[] | undefined;
}

const remedy = 'choose another networkStack, or a chart whose default ranges fit this cluster';

/** Everything about the ranges that would not work here. */
export function rangeProblems(facts: RangeFacts): Problem[] {
  const { ranges, object } = facts;
  const named = [
    ...ranges.pods.map((range) => ({ what: 'pods', range })),
    ...ranges.services.map((range) => ({ what: 'Services', range })),
    ...ranges.join.map((range) => ({ what: 'the join network', range })),
  ];
  const unreadable = named.filter(({ range }) => !isRange(range));
  if (unreadable.length > 0)
    return unreadable.map(({ what, range }) => ({
      reason: 'RangeUnusable',
      message: `the range of ${what} is none`,
      object,
      value: range,
      remedy,
    }));
  return [
    ...named.flatMap((a, n) =>
      named
        .slice(n + 1)
        .filter((b) => overlap(a.range, b.range))
        .map((b) => overlapProblem(object, `${a.range} of ${a.what}`, `${b.range} of ${b.what}`)),
    ),
    ...named.flatMap(({ what, range }) => nodeOverlaps(facts, what, range)),
    ...serviceProblems(facts),
    ...familyProblems(facts),
  ];
}

const overlapProblem = (object: string, a: string, b: string): Problem => ({
  reason: 'RangesOverlap',
  message: `${a} overlaps ${b}: one of the two could not be reached`,
  object,
  remedy,
});

function nodeOverlaps({ object, nodes }: RangeFacts, what: string, range: string): Problem[] {
  return nodes.flatMap(({ name, internalIPs }) =>
    internalIPs
      .filter((address) => holds(range, address))
      .map((address) => overlapProblem(object, `${range} of ${what}`, `the address ${address} of node ${name}`)),
  );
}

/** OVN takes for a Service what lies in its range of Services: the cluster's own ranges have to be inside, in the same order. */
function serviceProblems({ object, ranges, serviceCIDRs }: RangeFacts): Problem[] {
  if (serviceCIDRs === undefined) return [];
  return ranges.services.flatMap((range, n): Problem[] => {
    const own = serviceCIDRs[n];
    if (own !== undefined && covers(range, own)) return [];
    const found = own === undefined ? 'has no range for this family' : `takes them from ${own}`;
    return [
      {
        reason: 'RangeDiffers',
        message: `Services are expected in ${range}, in place ${n + 1}; the API server ${found}`,
        object,
        path: 'spec.networkStack',
        remedy:
          'choose the networkStack of the cluster, or a chart whose range of Services holds that of the API server',
      },
    ];
  });
}

const families: Readonly<Record<NonNullable<InstallationSpec['networkStack']>, readonly AddressFamily[]>> = {
  ipv4: ['IPv4'],
  ipv6: ['IPv6'],
  dual_stack: ['IPv4', 'IPv6'],
};

/** The families that are asked for: those of the specification, else those that the chart has ranges for. */
function familyProblems({ object, stack, selector, ranges, nodes }: RangeFacts): Problem[] {
  const rendered = ranges.pods.flatMap((range) => familyOf(range) ?? []);
  const wanted = stack === undefined ? rendered : families[stack];
  const path = 'spec.networkStack';
  const problems: Problem[] = [];
  for (const [what, some] of Object.entries({ pods: ranges.pods, Services: ranges.services, join: ranges.join })) {
    const has = some.flatMap((range) => familyOf(range) ?? []);
    if (has.length !== wanted.length || wanted.some((family) => !has.includes(family)))
      problems.push({
        reason: 'FamilyUnavailable',
        message: `ranges of ${what} are of ${has.join(' and ') || 'no family'}, wanted ${wanted.join(' and ')}`,
        object,
        path,
        remedy,
      });
  }
  const selected = Object.entries(selector);
  for (const { name, labels, internalIPs } of nodes) {
    if (selected.some(([key, value]) => labels[key] !== value)) continue;
    const missing = wanted.filter((family) => !internalIPs.some((address) => familyOf(address) === family));
    if (missing.length > 0)
      problems.push({
        reason: 'FamilyUnavailable',
        message: `node ${name} has no internal address of ${missing.join(' and ')}`,
        object,
        path,
        remedy: 'give the kubelet of the node addresses of both families (--node-ip), or choose another networkStack',
      });
  }
  return problems;
}
