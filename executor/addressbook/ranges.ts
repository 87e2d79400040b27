/** Ranges of addresses as classes and pools have them: read for what they mean, joined, counted, and cut into networks. */
import { byFamily, type IPBlock, type IPFamily, ipOf, readIPRange } from '../../constructs/lib/ip.ts';

const widthOf = { IPv4: 32, IPv6: 128 } as const;

const blockText = (family: IPFamily, first: bigint, last: bigint): string =>
  `${ipOf(family, first).text}-${ipOf(family, last).text}`;

/** A network, a range `first-last` or an address, as those who serve it take it; undefined when it means nothing. */
export function readRange(text: string): IPBlock | undefined {
  const read = readIPRange(text);
  const [block] = read === undefined ? [] : byFamily(read);
  if (block === undefined) return undefined;
  const { family, first, last } = block;
  const [network, ...more] = networksOf(block);
  return { ...block, text: network !== undefined && more.length === 0 ? network : blockText(family, first, last) };
}

/** The same addresses in blocks that neither overlap nor touch, IPv4 first. */
export function joined(blocks: readonly IPBlock[]): IPBlock[] {
  const sorted = blocks.toSorted((a, b) =>
    a.family === b.family ? (a.first < b.first ? -1 : a.first > b.first ? 1 : 0) : a.family < b.family ? -1 : 1,
  );
  const whole: IPBlock[] = [];
  for (const block of sorted) {
    const before = whole.at(-1);
    if (before === undefined || before.family !== block.family || block.first > before.last + 1n) whole.push(block);
    else if (block.last > before.last) {
      const { family, first } = before;
      whole[whole.length - 1] = { family, first, last: block.last, text: blockText(family, first, block.last) };
    }
  }
  return whole;
}

/** How many addresses there are in blocks that do not overlap. */
export const countOf = (blocks: readonly IPBlock[]): bigint =>
  blocks.reduce((count, { first, last }) => count + (last - first) + 1n, 0n);

/** The fewest networks that hold exactly the addresses of a block, in order. */
export function networksOf({ family, first, last }: IPBlock): string[] {
  const networks: string[] = [];
  for (let at = first; at <= last; ) {
    let hosts = 0;
    while (hosts < widthOf[family]) {
      const end = at | ((1n << BigInt(hosts + 1)) - 1n);
      if ((at & ((1n << BigInt(hosts + 1)) - 1n)) !== 0n || end > last) break;
      hosts += 1;
    }
    networks.push(`${ipOf(family, at).text}/${widthOf[family] - hosts}`);
    at += 1n << BigInt(hosts);
  }
  return networks;
}
