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
