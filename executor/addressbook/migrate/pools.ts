/** Pools of MetalLB as they are configured, and how they are announced. Pure. */
import type { IPBlock } from '../../../constructs/lib/ip.ts';
import { isObject, type JsonObject, objectOf, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../kube/types.ts';
import { joined, readRange } from '../ranges.ts';

export interface Pool {
  readonly namespace: string;
  readonly name: string;
  readonly blocks: readonly IPBlock[];
  /** Ranges that can not be read. */
  readonly unread: readonly string[];
  /** What a class of the driver does otherwise, in words for people. */
  readonly notes: readonly string[];
}

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

/** Whether an advertisement is of a pool; one that chooses by labels may be. */
function isOf(advertisement: KubeObject, pool: KubeObject): boolean {
  const spec = objectOf(advertisement.spec);
  if (advertisement.metadata.namespace !== pool.metadata.namespace) return false;
  const named = textsOf(spec.ipAddressPools);
  const chosen = objectsOf(spec.ipAddressPoolSelectors);
  return (named.length === 0 && chosen.length === 0) || named.includes(pool.metadata.name ?? '') || chosen.length > 0;
}

const namesOf = (objects: readonly KubeObject[]): string => objects.map(({ metadata }) => metadata.name).join(', ');
const isNarrow = ({ spec = {} }: KubeObject): boolean =>
  [spec.interfaces, spec.nodeSelectors].some((one) => Array.isArray(one) && one.length > 0);

function notesOf(pool: KubeObject, advertisements: readonly KubeObject[]): string[] {
  const spec: JsonObject = objectOf(pool.spec);
  const own = advertisements.filter((one) => isOf(one, pool));
  const bgp = own.filter(({ kind }) => kind === 'BGPAdvertisement');
  const narrow = own.filter((one) => one.kind === 'L2Advertisement' && isNarrow(one));
  return [
    ...(spec.autoAssign === false
      ? []
      : ['MetalLB takes addresses of it by itself; of a class it takes none: new Services need a claim']),
    ...(spec.avoidBuggyIPs === true ? ['it keeps .0 and .255 back, which a class does not'] : []),
    ...(isObject(spec.serviceAllocation) ? ['it is kept for some namespaces or Services, which a class is not'] : []),
    ...(bgp.length === 0
      ? []
      : [
          `BGPAdvertisement ${namesOf(bgp)} announces it, or may: a class is announced by layer 2 unless you name its pool there`,
        ]),
    ...(narrow.length === 0
      ? []
      : [`L2Advertisement ${namesOf(narrow)} is narrowed to nodes or interfaces: set the same on that of the class`]),
  ];
}

export function readPool(pool: KubeObject, advertisements: readonly KubeObject[]): Pool {
  const { namespace = '', name = '' } = pool.metadata;
  const read = textsOf(objectOf(pool.spec).addresses).map((text) => ({ text, block: readRange(text) }));
  return {
    namespace,
    name,
    blocks: joined(read.flatMap(({ block }) => block ?? [])),
    unread: read.flatMap(({ text, block }) => (block === undefined ? [text] : [])),
    notes: notesOf(pool, advertisements),
  };
}
