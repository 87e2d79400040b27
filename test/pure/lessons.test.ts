import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const root = join(import.meta.dirname, '../..');
const rows = readFileSync(join(root, 'docs/lessons.md'), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => /^\d+$/.test(cells[1] ?? ''))
  .map(([, number = '', trouble = '', answer = '', shown = '', ...rest]) => ({
    number: Number(number),
    trouble,
    answer,
    shown,
    rest,
  }));

const files = new Set(
  ['pure', 'api', 'ovn', 'cluster/suite'].flatMap((layer) => readdirSync(join(root, 'test', layer))),
);

test('all forty are there, each once and in order', () => {
  assert.equal(
    rows.map(({ number }) => number),
    Array.from({ length: 40 }, (_, n) => n + 1),
  );
});

test('each has an answer, and tests that exist', () => {
  for (const { number, trouble, answer, shown, rest } of rows) {
    assert.ok(trouble.length > 15 && answer.length > 40, `row ${number} says too little`);
    assert.equal(rest, [''], `row ${number} has a cell too many`);
    const named = [...shown.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
    assert.ok(named.length > 0 || answer.startsWith('Does not apply:'), `row ${number} names no test`);
    for (const file of named) assert.ok(/\.test\.ts$/.test(file) && files.has(file), `row ${number}: ${file}`);
  }
});

test.run();
