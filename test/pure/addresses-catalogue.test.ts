import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

/** Every rule of the ledger by its id, and that a test carries it in its title. What a test asserts of it is for its readers. */

const range = (letter: string, last: number, ...without: readonly number[]): string[] =>
  Array.from({ length: last }, (_, n) => n + 1)
    .filter((n) => !without.includes(n))
    .map((n) => `${letter}${n}`);

/** The whole catalogue; numbers that it leaves out were never given. */
const catalogue: Readonly<Record<string, readonly string[]>> = {
  claims: range('C', 35, 13, 30),
  addresses: range('A', 24, 20),
  classes: range('K', 6, 5),
  provisioning: range('P', 11, 9),
  rendering: range('R', 6),
  holding: range('H', 8),
  use: range('S', 13, 8),
  conflicts: range('X', 8, 3, 7),
  admission: range('V', 3),
  'whole lives': range('E', 10, 5, 8),
  invariants: range('I', 13),
  'defects that are not here': range('D', 42),
  'answers to what was left open': range('Q', 10),
  races: range('race ', 11),
};

const root = new URL('..', import.meta.url);

/** Titles in the sources of tests, before values are put in. */
const titles = ['pure', 'api'].flatMap((layer) =>
  readdirSync(new URL(`${layer}/`, root))
    .filter((name) => /^addresses.*\.ts$/.test(name))
    .flatMap((name) => {
      const text = readFileSync(new URL(`${layer}/${name}`, root), 'utf8');
      const found = [...text.matchAll(/\b(?:test|scenario)\(\s*(['"`])((?:(?!\1)[^\\]|\\.)*)\1/g)];
      const named = [...text.matchAll(/^const ids = '(.*)';$/gm)];
      return [...found.map(([, , title = '']) => title), ...named.map(([, ids = '']) => ids)];
    }),
);

/** Ids stand before the first colon of a title. */
const carried = new Set(
  titles
    .flatMap((title) => /^([^:]*):/.exec(title)?.[1]?.split(/, | and /) ?? [])
    .concat(titles.filter((title) => !title.includes(':')).flatMap((title) => title.split(', '))),
);

for (const [what, ids] of Object.entries(catalogue))
  test(`the tests of ${what} are there, each under its id`, () => {
    assert.equal(
      ids.filter((id) => !carried.has(id)),
      [],
    );
  });

test('no test carries an id that there is none of', () => {
  const known = new Set(Object.values(catalogue).flat());
  // Outside the catalogue: what a restart of MetalLB may do.
  known.add('E8');
  assert.equal(
    [...carried].filter((id) => /^([A-Z]\d+|race \d+)$/.test(id) && !known.has(id)),
    [],
  );
});

test('what became of every defect, and of what was left open, is on record', () => {
  const record = ['0030-the-address-ledger', '0032-the-driver-for-metallb']
    .map((name) => readFileSync(new URL(`../docs/decisions/${name}.md`, root), 'utf8'))
    .join('\n');
  const told = (id: string): boolean => new RegExp(`^\\| (D\\d+, )*${id}(, D\\d+)* \\|`, 'm').test(record);
  assert.equal(
    [...(catalogue['defects that are not here'] ?? []), ...(catalogue['answers to what was left open'] ?? [])].filter(
      (id) => !told(id),
    ),
    [],
  );
});

test.run();
