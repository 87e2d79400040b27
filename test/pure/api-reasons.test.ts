import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { outcomeRows } from '../../constructs/api/conditions.ts';
import { explainReason, findReason, reasonMessage, reasons } from '../../constructs/api/reasons.ts';
import { acceptanceSteps } from '../../constructs/api/release.ts';

const root = new URL('../../', import.meta.url);

test('every reason stands once, in UpperCamel, with words for each of its parts', () => {
  const names = reasons.map((r) => r.reason);
  assert.equal(
    names.filter((name, n) => names.indexOf(name) !== n),
    [],
  );
  for (const reason of reasons) {
    assert.match(reason.reason, /^[A-Z][A-Za-z0-9]{2,62}$/);
    assert.ok(reason.template.length > 5 && reason.template.length < 200, reason.reason);
    assert.match(reason.remedy, /^[A-Z].*[.…]$/, reason.reason);
    assert.match(explainReason(reason), reason.remedy);
    // Anchors are made of lower-case letters; two that fall together would lead astray.
    assert.is(reasons.filter((r) => r.runbook === reason.runbook).length, 1, reason.runbook);
  }
});

test('each acceptance step is a reason, since a condition names the step that it is in', () => {
  for (const step of acceptanceSteps) assert.ok(findReason(step), step);
});

test('messages are filled from values, and a value that is not given is a defect', () => {
  assert.is(
    reasonMessage('Applying', { phase: 'central', done: 3, total: 12 }),
    'phase central: 3 of 12 objects applied',
  );
  assert.throws(() => reasonMessage('Applying', { phase: 'central' }), 'needs a value for done');
  assert.throws(() => reasonMessage('NoSuchReason'), 'not in the table');
});

/** Internal words of streams and clients that no person gets to see. */
const internal = new Set(['Handler', 'List', 'Watch', 'Truncated', 'Undecodable', 'Expired', 'TypedPatch']);

/** Words after `reason:` and first words of the helpers that make problems. */
function saidIn(text: string): string[] {
  const lines = [...text.matchAll(/\breason: ([^\n]*)/g)].map(([, rest]) => (rest ?? '').split(/\w+: /)[0] ?? '');
  const named = lines.flatMap((line) => [...line.matchAll(/'([A-Z][A-Za-z]+)'/g)]);
  const helped = [
    ...text.matchAll(/\b(?:say|refuse|failure|failed|waiting|problem|breach)\(\s*(?:[\w.]+,\s*)?'([A-Z][A-Za-z]+)'/g),
  ];
  return [...named, ...helped].flatMap(([, word]) => (word === undefined ? [] : [word]));
}

function sources(dir: URL): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => readFileSync(`${entry.parentPath}/${entry.name}`, 'utf8'));
}

test('every reason that the code says is in the table', () => {
  const unknown = new Set<string>();
  for (const area of ['constructs', 'renderer', 'gitops', 'executor', 'bin'])
    for (const text of sources(new URL(`${area}/`, root)))
      for (const reason of saidIn(text))
        if (findReason(reason) === undefined && !internal.has(reason)) unknown.add(reason);
  assert.equal([...unknown].sort(), []);
});

test('there is a row of conditions for every outcome', () => {
  for (const cells of Object.values(outcomeRows)) assert.is(Object.keys(cells).length, 6);
});

test.run();
