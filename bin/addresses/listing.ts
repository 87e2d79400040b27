/** Who holds what, as people read it: no colours, and as narrow as the terminal is. */
import { formatDuration } from '../../constructs/lib/duration.ts';
import { visibleInLine } from '../../constructs/lib/visible.ts';
import type { ClassHoldings, Holding, Holdings, WaitingClaim } from '../../executor/addressbook/holdings.ts';
import type { AddressReturn } from '../../executor/addressbook/returns.ts';
import { bar, barLegend, type FamilyUsage, standings } from '../../executor/addressbook/usage.ts';
import { table } from '../output.ts';

/** Width of a terminal in columns; absent: as wide as it takes. */
export type Width = number | undefined;

/** Whole minutes from an hour on: whoever waits for days does not count seconds. */
const roughly = (ms: number): string => formatDuration(ms < 3_600_000 ? ms : Math.ceil(ms / 60_000) * 60_000);
const leftText = (ms: number): string => (ms === 0 ? 'its delay is over' : `${roughly(ms)} of its delay left`);

const returnTexts: { readonly [T in AddressReturn['type']]: (one: Extract<AddressReturn, { type: T }>) => string } = {
  none: () => '',
  byHand: () => 'returns by hand alone',
  counting: ({ leftMs }) => (leftMs === 0 ? 'returns now' : `returns in ${roughly(leftMs)}`),
  held: ({ leftMs }) => `held by annotation, ${leftText(leftMs)}`,
  inUse: ({ leftMs }) => `in use, ${leftText(leftMs)}`,
};
const returnText = (one: AddressReturn): string => (returnTexts[one.type] as (given: AddressReturn) => string)(one);

const noteOf = ({ returns, deleting, why = '' }: Holding): string =>
  [returnText(returns), deleting ? 'is being deleted' : '', why].filter((part) => part !== '').join('; ');

const workloadText = ({ workload }: Holding): string => {
  if (workload === undefined) return '-';
  const { kind, namespace, name } = workload;
  return `${kind === 'Service' ? '' : `${kind} `}${namespace}/${name}`;
};

const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));

/** A table, or where it does not fit a paragraph for each row. */
function fitted(head: readonly string[], rows: readonly (readonly string[])[], width: Width): string {
  const whole = table(head, rows);
  if (width === undefined || widest(whole) <= width) return whole;
  return rows
    .map(([first = '', ...cells]) => [
      visibleInLine(first),
      ...cells.flatMap((cell, n) =>
        cell === '' || cell === '-' ? [] : [`  ${(head[n + 1] ?? '').toLowerCase()}: ${visibleInLine(cell)}`],
      ),
    ])
    .map((lines) => lines.join('\n'))
    .join('\n');
}

const holdingTable = (addresses: readonly Holding[], width: Width): string =>
  fitted(
    ['ADDRESS', 'CLASS', 'FAMILY', 'PHASE', 'CLAIM', 'SERVICE', 'NOTE'],
    addresses.map((one) => [
      one.address,
      one.className,
      one.family ?? '-',
      one.phase,
      one.claim ?? '-',
      workloadText(one),
      noteOf(one),
    ]),
    width,
  );

const waitingTable = (waiting: readonly WaitingClaim[], width: Width): string =>
  fitted(
    ['CLAIM', 'CLASS', 'FAMILY', 'PHASE', 'REASON', 'MESSAGE'],
    waiting.map(({ claim, className, family, phase, reason, message }) => [
      claim,
      className === '' ? '-' : className,
      family,
      phase,
      reason,
      message,
    ]),
    width,
  );

const words = { used: 'used', released: 'released', held: 'held', ready: 'recorded and free', pending: 'not settled' };

/** `3 used, 1 held, 4 free of 8`. */
function usageWords({ counts, free, size }: FamilyUsage): string {
  const taken = standings.flatMap((one) => (counts[one] === 0 ? [] : [`${counts[one]} ${words[one]}`]));
  return `${[...taken, `${free} free`].join(', ')} of ${size}`;
}

function classLines(one: ClassHoldings, width: Width): string[] {
  const cells = width !== undefined && width < 72 ? 12 : 24;
  const marks = [one.isDefault ? 'default' : '', one.deleting ? 'is being deleted' : ''].filter((mark) => mark !== '');
  const delay = one.releaseDelayMs === undefined ? '' : `, gives back after ${formatDuration(one.releaseDelayMs)}`;
  return [
    `${one.name} (${[one.provisioner, ...marks].join(', ')})${delay}`,
    ...one.families.map((usage) => `  ${usage.family} [${bar(usage, cells)}] ${usageWords(usage)}`),
    ...(one.families.length === 0 ? ['  its ranges are not told by the class'] : []),
    ...(one.outside === 0 ? [] : [`  ${one.outside} of its addresses lie outside of its ranges`]),
    ...one.unread.map((text) => `  range ${JSON.stringify(text)} can not be read`),
  ];
}

/** Usage of the classes, with what the signs mean. */
export const classText = (classes: readonly ClassHoldings[], width: Width): string =>
  [...classes.flatMap((one) => classLines(one, width)), barLegend].join('\n');

export function holdingsText({ classes, addresses, waiting }: Holdings, width: Width): string {
  const parts = [
    addresses.length === 0 ? 'no address is recorded' : holdingTable(addresses, width),
    ...(waiting.length === 0 ? [] : [`claims that wait:\n${waitingTable(waiting, width)}`]),
    ...(classes.length === 0 ? [] : [classText(classes, width)]),
  ];
  return parts.join('\n\n');
}

/** As programs read it: sizes of ranges may be beyond what numbers hold, and are texts. */
export const usageJson = ({ family, size, counts, free }: FamilyUsage): unknown => ({
  family,
  size: `${size}`,
  ...counts,
  free: `${free}`,
});

export const holdingsJson = ({ classes, ...rest }: Holdings): unknown => ({
  classes: classes.map(({ families, ...one }) => ({ ...one, usage: families.map(usageJson) })),
  ...rest,
});
