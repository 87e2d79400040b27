/** Ranges of addresses as classes and pools have them: read for what they mean, joined, counted, and cut into networks. */
import { type IPBlock, type IPFamily, ipOf, parseIPRange, readIP } from '../../constructs/lib/ip.ts';

const widthOf = { IPv4: 32, IPv6: 128 } as const;

const blockText = (family: IPFamily, first: bigint, last: bigint): string =>
  `${ipOf(family, first).text}-${ipOf(family, last).text}`;

/** A network whose address may have bits of a host, or be written in another form: those who serve it cut them off. */
function readNetwork(text: string): IPBlock | undefined {
  const [address = '', bits = '', ...more] = text.split('/');
  const start = readIP(address);
  if (start === undefined || more.length > 0 || !/^[0-9]{1,3}$/.test(bits)) return undefined;
  const { family, value } = start;
  if (Number(bits) > widthOf[family]) return undefined;
  const hosts = (1n << BigInt(widthOf[family] - Number(bits))) - 1n;
  const first = value & ~hosts;
  return { family, first, last: value | hosts, text: `${ipOf(family, first).text}/${Number(bits)}` };
}

/** A network, or a range `first-last`, as it is meant; undefined when it means nothing. */
export function readRange(text: string): IPBlock | undefined {
  if (text.includes('/')) return readNetwork(text.trim());
  const ends = text.split('-').map((end) => readIP(end.trim())?.text ?? '');
  const range = parseIPRange(ends.join('-'));
  return range.ok ? range.value : undefined;
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
