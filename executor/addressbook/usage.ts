/** How much of the ranges of a class is taken, and by what. Exact, however large they are. */
import { holdsIP, type IPBlock, type IPFamily } from '../../constructs/lib/ip.ts';
import type { AddressView, ClassView } from '../addresses/objects.ts';
import { type Book, rangesOf } from './book.ts';
import { countOf, joined } from './ranges.ts';

/**
 * What an address is to who looks for a free one. `used`: a claim has it; `held`: it is released, and a person holds it back;
 * `ready`: recorded, and there to be claimed; `pending`: recorded, and not settled yet.
 */
export const standings = ['used', 'released', 'held', 'ready', 'pending'] as const;
export type Standing = (typeof standings)[number];

export interface FamilyUsage {
  readonly family: IPFamily;
  /** Addresses in the ranges of the class. */
  readonly size: bigint;
  readonly counts: Readonly<Record<Standing, number>>;
  /** Those that nobody has recorded. */
  readonly free: bigint;
}

export interface ClassUsage {
  /** One for each family that the class has a range of. */
  readonly families: readonly FamilyUsage[];
  /** Addresses of the class that lie in none of its ranges. */
  readonly outside: number;
}

function standingOf({ phase, held }: AddressView): Standing {
  if (phase === 'Bound' || phase === 'Conflict' || phase === 'Lost') return 'used';
  if (phase === 'Released') return held ? 'held' : 'released';
  return phase === 'Available' ? 'ready' : 'pending';
}

/** Objects by the addresses that they mean: one that is recorded twice is taken once. */
function byIP(addresses: readonly AddressView[]): Map<string, AddressView> {
  const found = new Map<string, AddressView>();
  for (const one of addresses) {
    const key = one.ip?.text ?? '';
    const before = found.get(key);
    const better = before === undefined || standings.indexOf(standingOf(one)) < standings.indexOf(standingOf(before));
    if (one.ip !== undefined && better) found.set(key, one);
  }
  return found;
}

function familyUsage(family: IPFamily, blocks: readonly IPBlock[], inside: readonly AddressView[]): FamilyUsage {
  const counts = { used: 0, released: 0, held: 0, ready: 0, pending: 0 };
  const own = inside.filter(({ ip }) => ip?.family === family);
  for (const address of own) counts[standingOf(address)] += 1;
  const size = countOf(blocks.filter((block) => block.family === family));
  return { family, size, counts, free: size - BigInt(own.length) };
}

function usageOf(found: ClassView, addresses: readonly AddressView[]): ClassUsage {
  const blocks = joined(rangesOf(found).blocks);
  const own = addresses.filter(({ className }) => className === found.name);
  const inside = [...byIP(own).values()].filter(({ ip }) =>
    blocks.some((block) => ip !== undefined && holdsIP(block, ip)),
  );
  const outside = own.filter(({ ip }) => ip === undefined || !blocks.some((block) => holdsIP(block, ip))).length;
  const families = (['IPv4', 'IPv6'] as const).filter((family) => blocks.some((block) => block.family === family));
  return { families: families.map((family) => familyUsage(family, blocks, inside)), outside };
}

const signs: Readonly<Record<Standing, string>> = { used: '#', released: '~', held: '!', ready: '+', pending: '?' };

/** What the signs of a bar mean. */
export const barLegend = '# used  ~ released  ! held  + recorded and free  ? not settled  . free';

/**
 * Usage as a line of signs. What there is shows, however little of the whole it is, and so does what is left; beyond that
 * every part has its share, rounded down.
 */
export function bar({ size, counts, free }: FamilyUsage, width: number): string {
  const share = (count: bigint): number => {
    if (count === 0n) return 0;
    return Math.max(1, Number((count * BigInt(width)) / (size === 0n ? 1n : size)));
  };
  const parts = standings.map((standing) => ({ sign: signs[standing], cells: share(BigInt(counts[standing])) }));
  const spare = free > 0n ? 1 : 0;
  const total = (): number => parts.reduce((sum, { cells }) => sum + cells, 0);
  while (total() > width - spare) {
    const largest = parts.reduce((a, b) => (b.cells > a.cells ? b : a));
    if (largest.cells <= 1) break;
    largest.cells -= 1;
  }
  // Rounded down, the parts of a full range leave cells over that are not free.
  const first = parts.find(({ cells }) => cells > 0);
  if (free === 0n && first !== undefined) first.cells += Math.max(0, width - total());
  return parts
    .map(({ sign, cells }) => sign.repeat(cells))
    .join('')
    .padEnd(width, '.');
}

/** The usage of each class by its name. Addresses are sorted out once, however many classes there are. */
export function usageByClass({ classes, addresses }: Book): ReadonlyMap<string, ClassUsage> {
  const own = Map.groupBy(addresses, ({ className }) => className);
  return new Map(classes.map((one) => [one.name, usageOf(one, own.get(one.name) ?? [])]));
}
