import { existsSync, readdirSync, readFileSync } from 'node:fs';
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

/** Numbers of the second page, in order; some of the reports teach nothing of their own. */
const reports = [
  1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 32,
].concat([34, 35, 37, 39, 40, 41, 42]);
const situations = Array.from({ length: 24 }, (_, n) => `X${n + 1}`);
const network = readFileSync(join(root, 'docs/lessons-network.md'), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => /^[WX]\d+$/.test(cells[1] ?? ''))
  .map(([, id = '', trouble = '', answer = '', shown = '', ...rest]) => ({ id, trouble, answer, shown, rest }));

test('networks: every report and every situation is there, each once and in order', () => {
  assert.equal(
    network.map(({ id }) => id),
    [...reports.map((n) => `W${n}`), ...situations],
  );
});

test('networks: each has an answer, and tests that exist; a situation is carried by one of its tests', () => {
  const folders = ['pure', 'api', 'ovn', 'cluster/suite'].map((layer) => join(root, 'test', layer));
  for (const { id, trouble, answer, shown, rest } of network) {
    assert.ok(trouble.length > 10 && answer.length > 15, `${id} says too little`);
    assert.equal(rest, [''], `${id} has a cell too many`);
    const named = [...shown.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
    const missing = answer.startsWith('Not built:');
    assert.ok(named.length > 0 || missing, `${id} names no test`);
    for (const file of named) assert.ok(/\.test\.ts$/.test(file) && files.has(file), `${id}: ${file}`);
    if (missing || id === 'X1' || !id.startsWith('X')) continue;
    const texts = named.flatMap((file) =>
      folders
        .filter((folder) => existsSync(join(folder, file)))
        .map((folder) => readFileSync(join(folder, file), 'utf8')),
    );
    assert.ok(
      texts.some((text) => new RegExp(`\\b${id}\\b`).test(text)),
      `${id} is in none of its tests`,
    );
  }
});

test.run();
