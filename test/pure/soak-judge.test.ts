import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RequestRecord } from '../faults/plan.ts';
import {
  answeredAgain,
  busiestMinute,
  calledWrong,
  lost,
  type Told,
  trueTooLong,
  trueUnproven,
  unseenWrites,
  writesWithin,
} from '../soak/outages/judge.ts';
import { report, table } from '../soak/outages/report.ts';

/** What a soak of outages calls wrong. */

const objects = 'demo';

function request(verb: 'list' | 'apply' | 'get', at: number, more: Partial<RequestRecord> = {}): RequestRecord {
  const writes = verb === 'apply';
  return {
    ...{ method: writes ? 'PATCH' : 'GET', verb, path: '/x', group: '', version: 'v1', resource: 'configmaps' },
    ...{ namespace: objects, name: 'a', dryRun: false, force: false, mutating: writes, sequence: 1 },
    ...{ status: 200, arrivedAt: at, answeredAt: at + 10, ...more },
  };
}

const told = (at: number, ready: string, more: Partial<Told> = {}): Told => ({
  ...{ at, ready, reason: 'Completed', message: '', failing: 'False', actual: 'one', current: true, ...more },
});

test('a write before a look is called so, whatever the look of another namespace or an earlier time saw', () => {
  const write = request('apply', 120);
  assert.is(unseenWrites([request('list', 100), write], objects, 90).length, 0);
  const { namespace: _every, ...everywhere } = request('list', 100);
  assert.is(unseenWrites([everywhere, write], objects, 90).length, 0, 'a look at all namespaces');
  assert.is(unseenWrites([write], objects, 90).length, 1, 'no look at all');
  assert.is(unseenWrites([request('list', 80), write], objects, 90).length, 1, 'a look before it was back');
  assert.is(unseenWrites([request('list', 100, { namespace: 'other' }), write], objects, 90).length, 1);
  assert.is(unseenWrites([request('list', 100, { status: 503 }), write], objects, 90).length, 1, 'no answer');
  assert.is(unseenWrites([request('list', 115), write], objects, 90).length, 1, 'the answer came after the write');
});

test('True stands for the grace, or as long as a look came in it', () => {
  const before = [told(0, 'True')];
  assert.equal(trueTooLong(before, [request('list', 20_000)], objects, 1_000), []);
  assert.is(trueTooLong(before, [request('list', 40_000)], objects, 1_000).length, 1);
  assert.is(trueTooLong(before, [], objects, 1_000).length, 1);
  assert.equal(trueTooLong([...before, told(32_000, 'Unknown')], [], objects, 1_000), []);
  assert.is(trueTooLong([...before, told(45_000, 'Unknown')], [], objects, 1_000).length, 1, 'too late');
});

test('True without proof, False without a sight of anything wrong', () => {
  assert.equal(trueUnproven([told(0, 'True', { actual: 'two' })], 'two'), []);
  assert.is(trueUnproven([told(0, 'True')], 'two').length, 1);
  assert.equal(trueUnproven([told(0, 'True', { current: false })], 'two'), [], 'it is about an older spec');
  assert.equal(calledWrong([told(0, 'Unknown')]), []);
  assert.is(calledWrong([told(0, 'False')]).length, 1);
  assert.is(calledWrong([told(0, 'Unknown', { failing: 'True' })]).length, 1);
});

test('writes within, the first answer after, the busiest minute, and what became of objects', () => {
  const log = [request('apply', 100), request('apply', 200, { status: 429 }), request('get', 300)];
  assert.is(writesWithin(log, objects, [50, 400]).length, 1);
  assert.is(writesWithin(log, objects, [150, 400]).length, 0);
  assert.is(answeredAgain(log, 120), 310);
  assert.is(answeredAgain(log, 400), undefined);
  const spread = [0, 1_000, 30_000, 59_000, 61_000, 200_000].map((at) => request('get', at));
  assert.is(busiestMinute(spread, [0, 300_000]), 4);
  assert.is(busiestMinute(spread, [150_000, 300_000]), 1);
  const before = new Map([
    ['a', '1'],
    ['b', '2'],
  ]);
  assert.equal(lost(before, before), []);
  assert.equal(lost(before, new Map([['a', '3']])), ['a was made anew', 'b is gone']);
});

test('the table and the report tell what did not hold', () => {
  const outcomes = [
    { scenario: 'one', facts: { seconds: 1.26, words: 'kept' }, problems: [] },
    { scenario: 'two', facts: {}, problems: ['a is gone'] },
  ];
  assert.is(table(outcomes), 'one: held\n  seconds  1.3\n  words    kept\n\ntwo: DID NOT HOLD\n  ! a is gone');
  const { held, scenarios } = JSON.parse(report(outcomes));
  assert.is(held, false);
  assert.equal(scenarios[0], { scenario: 'one', held: true, facts: { seconds: 1.3, words: 'kept' }, problems: [] });
});

test.run();
