import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { forcedApplies } from '../runner/api.ts';
import { readCounts, runFile, timeLimit } from '../runner/file.ts';
import type { Layer } from '../runner/layers.ts';
import { allowance, latestEnds, layers } from '../runner/layers.ts';
import { parseOptions } from '../runner/options.ts';
import { createReport, failedTests } from '../runner/report.ts';
import { runSuite, type SuiteOptions } from '../runner/suite.ts';

const top = fileURLToPath(new URL('../../', import.meta.url));
const env = { PATH: process.env.PATH };
const fixture = (name: string): string => `test/runner/fixtures/${name}.ts`;

/** False also for a process that has ended and that nobody has collected yet. */
function running(output: string): boolean {
  const [, pid] = /started ([0-9]+)/.exec(output) ?? [];
  assert.ok(pid, `no process id in ${output}`);
  return existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
}

test('a good file is counted, a failing one by its tests', async () => {
  const good = await runFile(fixture('good'), { top, env });
  assert.equal([good.passed, good.failed, good.problems], [1, 0, []]);
  const failing = await runFile(fixture('failing'), { top, env });
  assert.equal([failing.passed, failing.failed, failing.problems], [1, 2, []]);
  assert.match(failing.output, 'as it should');
});

test('a file that runs no test, or dies before, fails', async () => {
  const empty = await runFile(fixture('empty'), { top, env });
  assert.equal([empty.passed, empty.failed], [0, 1]);
  assert.match(empty.problems[0] ?? '', 'test.run()');
  const stuck = await runFile(fixture('stuck'), { top, env });
  assert.equal([stuck.passed, stuck.failed], [0, 1]);
  assert.match(stuck.problems[0] ?? '', 'waits for what never comes');
  const crashing = await runFile(fixture('crashing'), { top, env });
  assert.equal([crashing.passed, crashing.failed], [0, 1]);
  assert.match(crashing.output, 'as it should');
});

test('what a hook around the whole file throws is told', async () => {
  const result = await runFile(fixture('unprepared'), { top, env });
  assert.equal([result.passed, result.failed], [0, 2]);
  assert.match(result.output, /thrown by before\(\):.*the bed is broken/s);
});

test('a hanging file is killed at its own limit, with what it started', async () => {
  const result = await runFile(fixture('hanging'), { top, env });
  assert.is(result.failed, 1);
  assert.match(result.problems[0] ?? '', 'killed at its limit of 1s');
  assert.ok(result.durationMs < 10_000);
  assert.not(running(result.output));
});

test("what is left of the layer's budget shortens a file's limit", async () => {
  const result = await runFile(fixture('hanging'), { top, env, budgetMs: 300 });
  assert.match(result.problems.join(), 'killed at its limit of 300ms');
});

test('a program that outlives its file is ended and counts as a failure', async () => {
  const result = await runFile(fixture('leaving'), { top, env });
  assert.equal([result.passed, result.failed], [1, 1]);
  assert.match(result.problems[0] ?? '', 'left running: sleep 60');
  assert.not(running(result.output));
});

test('time limits and totals are read as they are written', () => {
  assert.is(timeLimit("import 'x';\n"), 120_000);
  assert.is(timeLimit('// time limit: 5m\n'), 300_000);
  assert.equal(readCounts('  Total:     3\n  Passed:    2\n  Skipped:   1\n'), { total: 3, passed: 2, skipped: 1 });
  assert.equal(readCounts('nothing'), { total: 0, passed: 0, skipped: 0 });
});

const layer: Layer = {
  name: 'pure',
  folder: 'test/pure',
  jobs: 2,
  budgetMs: 60_000,
  readyByMs: 60_000,
  tools: [],
  definitions: [],
  packages: [],
  sharedServer: false,
  named: false,
};

async function play(
  options: Partial<SuiteOptions> & Pick<SuiteOptions, 'runs'>,
): Promise<{ good: boolean; lines: string[] }> {
  let text = '';
  const report = createReport((part) => {
    text += part;
  });
  const good = await runSuite({
    top,
    env,
    gates: [],
    repeat: 1,
    jobs: undefined,
    signal: new AbortController().signal,
    report,
    prepare: async () => undefined,
    open: async () => ({ env: {}, end: async () => [] }),
    ...options,
  });
  return { good, lines: text.trimEnd().split('\n') };
}

test('the counts stand alone on the last line', async () => {
  const { good, lines } = await play({ runs: [{ layer, files: [fixture('good')] }], repeat: 2 });
  assert.is(lines.at(-1), '2 passed, 0 failed');
  assert.ok(good);
});

test('a failed gate, a failing file and an empty layer all count', async () => {
  const gates = [
    { name: 'bad', check: async () => 'this is wrong' },
    { name: 'worse', check: () => Promise.reject(new Error('it broke')) },
    { name: 'good', check: async () => '' },
  ];
  const runs = [
    { layer, files: [fixture('good'), fixture('failing')] },
    { layer: { ...layer, name: 'ovn' as const }, files: [] },
  ];
  const { good, lines } = await play({ gates, runs });
  assert.is(lines.at(-1), '2 passed, 5 failed');
  assert.not(good);
  assert.ok(lines.some((line) => line.includes('this is wrong')));
  assert.ok(lines.some((line) => line.includes('it broke')));
});

test('the end of a run names the tests that failed, and the first of a file with what was found', async () => {
  const { lines } = await play({ runs: [{ layer, files: [fixture('failing')] }] });
  const end = lines.slice(lines.indexOf('failed:') + 1, -1).map((line) => line.trim());
  assert.equal(end, [`${fixture('failing')}: 2 tests`, '"fails"', 'as it should  (ok)', '"throws"']);
  const long = Array.from({ length: 40 }, (_, line) => `    line ${line} ${'x'.repeat(600)}`).join('\n');
  const told = failedTests(
    `\n   FAIL  "a"\n${long}\n    at here (file:1:2)\n\n   FAIL  "b"\n    b\n\n  Total:     2\n`,
  );
  assert.equal(
    told.map((line) => line.slice(0, 9).trimEnd()),
    ['"a"', '  line 0', '  line 1', '  line 2', ...[34, 35, 36, 37, 38, 39].map((line) => `  line ${line}`), '"b"'],
  );
  assert.ok(told.every((line) => line.length < 510));
});

test('no layer at all is a failure', async () => {
  assert.is((await play({ runs: [] })).lines.at(-1), '0 passed, 1 failed');
});

test('a used-up budget fails the files that it stops and those that never start', async () => {
  const runs = [{ layer: { ...layer, jobs: 1, budgetMs: 500 }, files: [fixture('hanging'), fixture('good')] }];
  const { lines } = await play({ runs });
  assert.is(lines.at(-1), '0 passed, 2 failed');
  assert.ok(lines.some((line) => line.includes("the layer's budget is used up")));
});

test('a layer whose preparation fails does not run; the next one does', async () => {
  const next: Layer = { ...layer, name: 'api' };
  const { lines } = await play({
    runs: [
      { layer, files: [fixture('good')] },
      { layer: next, files: [fixture('good')] },
    ],
    prepare: async ({ name }) => {
      if (name === 'pure') throw new Error('no compiler');
    },
  });
  assert.is(lines.at(-1), '1 passed, 1 failed');
  assert.ok(lines.some((line) => line.includes('no compiler')));
});

test('a refused forced apply fails the run although every test passed', async () => {
  const { lines } = await play({ runs: [{ layer, files: [fixture('violating')] }] });
  assert.is(lines.at(-1), '1 passed, 1 failed');
});

test('what the shared part of a layer reports at its end fails the run', async () => {
  const { lines } = await play({
    runs: [{ layer, files: [fixture('good')] }],
    open: async () => ({ env: {}, end: async () => ['force was seen'] }),
  });
  assert.is(lines.at(-1), '1 passed, 1 failed');
});

test('a forced apply of ours is found in an audit log, those of others are not', () => {
  const entry = (query: string): string => JSON.stringify({ requestURI: `/api/v1/namespaces/a/configmaps/b?${query}` });
  const log = [
    entry('fieldManager=keelson'),
    entry('fieldManager=kubectl&force=true'),
    entry('force=true&fieldManager=keelson'),
  ];
  assert.is(forcedApplies(log.join('\n')).length, 1);
});

test('options are read or refused by name', () => {
  const options = parseOptions(['--layers', 'pure,api', '--files', 'lib', '--repeat', '3', '--jobs', '4', '--list']);
  assert.equal(options, { layers: ['pure', 'api'], files: 'lib', repeat: 3, jobs: 4, list: true, gates: false });
  assert.ok(parseOptions([]).gates);
  assert.throws(
    () => parseOptions(['--layers', 'pur']),
    /--layers: 'pur' is none of pure, browser, api, ovn, cluster, faults/,
  );
  assert.throws(() => parseOptions(['--repeat', '0']), /--repeat/);
  assert.throws(() => parseOptions(['--quick']), /--quick/);
});

test('a cold run that uses all of its budgets stays under 45 minutes', () => {
  const of = (budgetMs: number, readyByMs: number) => ({ budgetMs, readyByMs });
  assert.equal(latestEnds([of(1, 0), of(2, 5), of(4, 6)]), [1, 7, 11], 'waits for tools, then for the layer before');
  assert.equal(latestEnds([of(1, 0), of(2, 5), of(4, 20)]), [1, 7, 24], 'waits for tools alone');
  const longest = latestEnds(layers.filter(({ named }) => !named)).at(-1) ?? Number.POSITIVE_INFINITY;
  assert.ok(longest < 45 * 60_000, String(longest / 60_000));
});

test('a layer may use what those before it left, and ends no later than it might have without', () => {
  assert.is(allowance(10, 0, 30, 5), 10, 'nothing was saved, though it begins early');
  assert.is(allowance(10, 3, 30, 5), 13);
  assert.is(allowance(10, 30, 30, 5), 25, 'up to its latest end');
  assert.is(allowance(10, 3, 30, 25), 10, 'its own budget in any case');
});

test('what a layer leaves of its budget is there for the next', async () => {
  const one = { layer, files: [fixture('good')] };
  const next = { layer: { ...layer, name: 'api' as const, budgetMs: 1, readyByMs: 0 }, files: [fixture('good')] };
  assert.is((await play({ runs: [one, next] })).lines.at(-1), '2 passed, 0 failed');
  assert.is((await play({ runs: [next] })).lines.at(-1), '0 passed, 1 failed');
});

test.run();
