/**
 * IP addresses, networks and ranges as texts. A text has one meaning or it is refused: octets with leading zeros are octal
 * to some readers, a zone means something on one machine alone, and an IPv4 address written as IPv6 is the same address twice.
 */
import { isIP } from 'node:net';

export type IPFamily = 'IPv4' | 'IPv6';

export interface IPAddress {
  readonly family: IPFamily;
  readonly value: bigint;
  /** The one way in which the address is written (RFC 5952). */
  readonly text: string;
}

/** Addresses from `first` to `last`, both included. */
export interface IPBlock {
  readonly family: IPFamily;
  readonly first: bigint;
  readonly last: bigint;
  readonly text: string;
}

/** What was read, or why nothing was, in words that follow the text. */
export type ReadIP<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string };

const bitsOf = { IPv4: 32, IPv6: 128 } as const;
/** What IPv6 sets aside for addresses of IPv4: ::ffff:0:0/96. */
const mapped = 0xffffn;

const valueOfParts = (parts: readonly number[], bits: bigint): bigint =>
  parts.reduce((value, part) => (value << bits) | BigInt(part), 0n);

const octets = (text: string): number[] => text.split('.').map(Number);

/** The groups of an IPv6 text that is known to be one; a dotted end counts as two. */
function groups(text: string): number[] {
  const side = (part: string): number[] =>
    part === ''
      ? []
      : part.split(':').flatMap((group) => {
          if (!group.includes('.')) return [Number.parseInt(group, 16)];
          const [a = 0, b = 0, c = 0, d = 0] = octets(group);
          return [a * 256 + b, c * 256 + d];
        });
  const [left = '', right] = text.split('::');
  if (right === undefined) return side(left);
  const [before, after] = [side(left), side(right)];
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function formatIPv6(value: bigint): string {
  const parts = Array.from({ length: 8 }, (_, n) => Number((value >> BigInt(16 * (7 - n))) & 0xffffn));
  const longest = { at: 0, length: 0 };
  for (let at = 0; at < 8; at += 1) {
    let end = at;
    while (parts[end] === 0) end += 1;
    if (end - at > longest.length) Object.assign(longest, { at, length: end - at });
  }
  const words = parts.map((part) => part.toString(16));
  if (longest.length < 2) return words.join(':');
  return `${words.slice(0, longest.at).join(':')}::${words.slice(longest.at + longest.length).join(':')}`;
}

const formatIPv4 = (value: bigint): string =>
  [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.');

/** The address of a value, which must be within the family. */
export const ipOf = (family: IPFamily, value: bigint): IPAddress => ({
  family,
  value,
  text: family === 'IPv4' ? formatIPv4(value) : formatIPv6(value),
});

/**
 * Reads an address in any form that has one meaning; an IPv4 address written as IPv6 is that IPv4 address. For what is stored
 * already; what is new must be in the canonical form ({@link parseIP}).
 */
export function readIP(text: string): IPAddress | undefined {
  if (text.includes('%')) return undefined;
  const version = isIP(text);
  if (version === 4) return ipOf('IPv4', valueOfParts(octets(text), 8n));
  if (version !== 6) return undefined;
  const value = valueOfParts(groups(text), 16n);
  return value >> 32n === mapped ? ipOf('IPv4', value & 0xffffffffn) : ipOf('IPv6', value);
}

const refused = (why: string): { readonly ok: false; readonly why: string } => ({ ok: false, why });

/** Reads an address in its canonical form. */
export function parseIP(text: string): ReadIP<IPAddress> {
  const read = readIP(text);
  if (read?.text === text) return { ok: true, value: read };
  if (read !== undefined) return refused(`is written as ${read.text}`);
  if (text.includes('%')) return refused('has a zone, which means something on one machine alone');
  if (/(^|\.)0[0-9]+(\.|$)/.test(text)) return refused('has an octet with a leading zero, which some read as octal');
  return refused('is not an IP address');
}

/** Reads a network: a canonical address without bits of hosts, and the number of its bits. */
export function parseCIDR(text: string): ReadIP<IPBlock> {
  const [address = '', bits, ...more] = text.split('/');
  if (bits === undefined || more.length > 0) return refused('is not a network such as 203.0.113.0/24');
  const start = parseIP(address);
  if (!start.ok) return refused(`starts with ${address}, which ${start.why}`);
  const { family, value } = start.value;
  const width = bitsOf[family];
  if (!/^(0|[1-9][0-9]{0,2})$/.test(bits) || Number(bits) > width) return refused(`needs a prefix from 0 to ${width}`);
  const hosts = (1n << BigInt(width - Number(bits))) - 1n;
  if ((value & hosts) !== 0n)
    return refused(`has bits of a host: the network is ${ipOf(family, value & ~hosts).text}/${bits}`);
  return { ok: true, value: { family, first: value, last: value | hosts, text } };
}

/** Reads a network, a range `first-last`, or a single address. */
export function parseIPRange(text: string): ReadIP<IPBlock> {
  if (text.includes('/')) return parseCIDR(text);
  const [from = '', to = from, ...more] = text.split('-');
  if (more.length > 0) return refused('is not a range such as 203.0.113.10-203.0.113.20');
  const [first, last] = [parseIP(from), parseIP(to)];
  if (!first.ok) return refused(from === text ? first.why : `starts with ${from}, which ${first.why}`);
  if (!last.ok) return refused(`ends with ${to}, which ${last.why}`);
  if (first.value.family !== last.value.family) return refused('starts and ends in different families');
  if (first.value.value > last.value.value) return refused('ends before it starts');
  const { family, value } = first.value;
  return { ok: true, value: { family, first: value, last: last.value.value, text } };
}

/** Whether a block holds an address. */
export const holdsIP = (block: IPBlock, { family, value }: IPAddress): boolean =>
  block.family === family && block.first <= value && value <= block.last;

/** Whether two blocks have an address in common. */
export const blocksOverlap = (a: IPBlock, b: IPBlock): boolean =>
  a.family === b.family && a.first <= b.last && b.first <= a.last;

/** Reads a network, a range or an address as other programs do, bits of hosts included; for what others wrote. */
export function readIPRange(text: string): IPBlock | undefined {
  const [base = '', prefix, ...more] = text.trim().split('/');
  if (more.length > 0) return undefined;
  const [from = '', to = from, ...rest] = base.split('-').map((part) => part.trim());
  const [first, last] = [numberOf(from), numberOf(to)];
  if (first === undefined || last === undefined || rest.length > 0 || first.family !== last.family) return undefined;
  const { family } = first;
  if (prefix === undefined)
    return first.value > last.value ? undefined : { family, first: first.value, last: last.value, text };
  const width = bitsOf[family];
  if (from !== base || !/^[0-9]{1,3}$/.test(prefix) || Number(prefix) > width) return undefined;
  const hosts = (1n << BigInt(width - Number(prefix))) - 1n;
  return { family, first: first.value & ~hosts, last: first.value | hosts, text };
}

/** The number of an address as it is written: one of IPv4 that is written as IPv6 counts as IPv6 here. */
function numberOf(text: string): { readonly family: IPFamily; readonly value: bigint } | undefined {
  const version = text.includes('%') ? 0 : isIP(text);
  if (version === 4) return { family: 'IPv4', value: valueOfParts(octets(text), 8n) };
  return version === 6 ? { family: 'IPv6', value: valueOfParts(groups(text), 16n) } : undefined;
}

const mappedFirst = mapped << 32n;

/** What a block holds, by family: the part of IPv6 in which addresses of IPv4 are written holds those. */
export function byFamily(block: IPBlock): IPBlock[] {
  const { family, first, last, text } = block;
  const mappedLast = mappedFirst | 0xffffffffn;
  if (family === 'IPv4' || last < mappedFirst || first > mappedLast) return [block];
  const inside: IPBlock = {
    family: 'IPv4',
    first: (first < mappedFirst ? mappedFirst : first) & 0xffffffffn,
    last: (last > mappedLast ? mappedLast : last) & 0xffffffffn,
    text,
  };
  return first >= mappedFirst && last <= mappedLast ? [inside] : [block, inside];
}

/** What is left of blocks once others are taken out of them. */
export function withoutBlocks(blocks: readonly IPBlock[], taken: readonly IPBlock[]): IPBlock[] {
  const parts = taken.flatMap(byFamily);
  return blocks.flatMap(byFamily).flatMap((block) => {
    const inside = parts
      .filter((part) => blocksOverlap(part, block))
      .sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
    const gaps: IPBlock[] = [];
    let next = block.first;
    for (const part of inside) {
      if (part.first > next) gaps.push({ ...block, first: next, last: part.first - 1n });
      if (part.last >= next) next = part.last + 1n;
    }
    return next <= block.last ? [...gaps, { ...block, first: next }] : gaps;
  });
}
