import { metallbGroup } from '../../constructs/api/metallb.ts';
import { byFamily, type IPBlock, readIPRange } from '../../constructs/lib/ip.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { member, problemAt, type SourceObject } from '../load/source.ts';
import type { WrittenRange } from './ranges.ts';

/** The ranges of MetalLB's own pools among plain manifests; what can not be read there is MetalLB's to refuse. */
export function poolRanges(manifests: readonly SourceObject[]): WrittenRange[] {
  return manifests.filter(isPool).flatMap((source) => {
    const { addresses } = member(source.value, 'spec');
    const { namespace, name } = source.identity;
    const owner = `pool ${namespace ?? ''}/${name}`;
    return (Array.isArray(addresses) ? addresses : []).flatMap((entry, index): WrittenRange[] => {
      const block = typeof entry === 'string' ? readIPRange(entry) : undefined;
      return block === undefined ? [] : [{ block, owner, source, path: ['spec', 'addresses', index] }];
    });
  });
}

const isPool = ({ identity }: SourceObject): boolean =>
  groupOf(identity.apiVersion) === metallbGroup && identity.kind === 'IPAddressPool';

interface Span {
  readonly range: WrittenRange;
  readonly part: IPBlock;
}

const compare = ({ part: a }: Span, { part: b }: Span): number =>
  a.first < b.first ? -1 : a.first > b.first ? 1 : a.last > b.last ? -1 : 1;

/**
 * Ranges that have addresses in common, in whichever form they are written. MetalLB refuses two such pools, whoever comes
 * second, and within one class an address would count twice. Each range is told once, with one that it meets.
 */
export function overlapProblems(ranges: readonly WrittenRange[]): Problem[] {
  const spans = ranges.flatMap((range) => byFamily(range.block).map((part): Span => ({ range, part })));
  const met = new Map<WrittenRange, WrittenRange>();
  for (const family of ['IPv4', 'IPv6'] as const) {
    let widest: Span | undefined;
    for (const span of spans.filter(({ part }) => part.family === family).sort(compare)) {
      const { range, part } = span;
      if (widest !== undefined && part.first <= widest.part.last && !met.has(range)) met.set(range, widest.range);
      if (widest === undefined || part.last > widest.part.last) widest = span;
    }
  }
  return [...met].map(([range, other]) => overlap(range, other));
}

function overlap(range: WrittenRange, other: WrittenRange): Problem {
  const place = `${other.source.file}:${other.source.locate(other.path).line}`;
  const same = range.owner === other.owner;
  return problemAt(range.source, range.path, {
    reason: 'AddressRangesOverlap',
    message: `${same ? 'another range of it' : other.owner} has addresses of it too: ${other.block.text} (${place})`,
    value: range.block.text,
    remedy: same ? 'write each address once' : 'give each address to one class, or to one pool of MetalLB',
  });
}
