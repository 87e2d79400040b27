/** The address ledger in `keelson status`. */
import { addressPhases, claimPhases } from '../../constructs/api/ledger-words.ts';
import { visibleInLine } from '../../constructs/lib/visible.ts';
import type { ClassSummary, LedgerSummary } from '../../executor/addressbook/summary.ts';
import { bar } from '../../executor/addressbook/usage.ts';
import { table } from '../output.ts';
import { usageJson } from './listing.ts';

const cells = 16;

/** The ranges of a class, one for each family. */
const rangesText = ({ families }: ClassSummary): string =>
  families.map((usage) => `${usage.family} [${bar(usage, cells)}] ${usage.free} free of ${usage.size}`).join('  ');

const nameOf = ({ name, provisioner }: ClassSummary): string => {
  if (name === '') return '(no class yet)';
  return provisioner === '' ? `${name} (gone)` : name;
};

/** Classes in numbers, and whatever is in conflict or lost. */
export function summaryText({ classes, troubles }: LedgerSummary): string {
  const all = classes.reduce((sum, { addresses }) => sum + addressPhases.reduce((n, one) => n + addresses[one], 0), 0);
  const rows = classes.map((one) => [
    nameOf(one),
    ...addressPhases.map((phase) => String(one.addresses[phase])),
    claimPhases.map((phase) => one.claims[phase]).join('/'),
    rangesText(one),
  ]);
  const head = ['CLASS', ...addressPhases.map((phase) => phase.toUpperCase()), 'CLAIMS', 'RANGES'];
  const named = claimPhases.join('/').toLowerCase();
  return [
    `addresses ${all} in ${classes.length} ${classes.length === 1 ? 'class' : 'classes'}; claims ${named}; keelson addresses tells more`,
    ...(rows.length === 0 ? [] : ['', table(head, rows)]),
    ...(troubles.length === 0
      ? []
      : ['', ...troubles.map(({ phase, object, what }) => visibleInLine(`${phase}: ${object}: ${what}`))]),
  ].join('\n');
}

/** As programs read it. */
export const summaryJson = ({ classes, troubles }: LedgerSummary): unknown => ({
  classes: classes.map(({ families, ...one }) => ({ ...one, usage: families.map(usageJson) })),
  troubles,
});
