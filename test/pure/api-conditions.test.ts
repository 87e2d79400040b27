import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  capMessage,
  conditionsFor,
  type FailureMemory,
  type Outcome,
  type OutcomeKind,
  outcomeRows,
  rememberFailure,
  sameConditions,
  timeText,
} from '../../constructs/api/conditions.ts';
import type { Condition } from '../../constructs/api/fields.ts';
import { condition as conditionShape } from '../../constructs/api/fields.ts';
import {
  lastCompleted,
  percent,
  progressMessage,
  pruneHistory,
  recordCompleted,
  recordStart,
} from '../../constructs/api/history.ts';
import type { HistoryEntry } from '../../constructs/api/release.ts';

const outcome = (kind: OutcomeKind, reason = 'SomeReason'): Outcome => ({ kind, reason, message: 'some message' });

const run = (one: Outcome, previous: readonly Condition[] = [], now = 0): Condition[] =>
  conditionsFor({ outcome: one, previous, generation: 3, now });

const show = (list: readonly Condition[]): Record<string, string> =>
  Object.fromEntries(list.map((c) => [c.type, c.status]));

/** Columns: Available, Progressing, Failing, Ready, Reconciling, Stalled; '-' is absent, 'as before' was True. */
const rows: Record<OutcomeKind, string> = {
  applying: 'True True False Unknown True -',
  waiting: 'True True False Unknown True -',
  slow: 'True True Unknown Unknown True -',
  retrying: 'True True True False True -',
  terminal: 'True False True False - True',
  steady: 'True False False True - -',
  unhealthy: 'True False True False - -',
  driftFight: 'True False True False - -',
  paused: 'True False False True - -',
  planOnly: 'True False False False - -',
  gatesBypassed: 'True False False Unknown - -',
};

for (const [kind, expected] of Object.entries(rows) as [OutcomeKind, string][])
  test(`${kind} after a steady time`, () => {
    const steady = run(outcome('steady'));
    const found = show(run(outcome(kind), steady, 5_000));
    const line = ['Available', 'Progressing', 'Failing', 'Ready', 'Reconciling', 'Stalled'].map(
      (type) => found[type] ?? '-',
    );
    assert.is(line.join(' '), expected);
  });

test('before the first full pass Available is False, and paused leaves Ready open', () => {
  const applying = show(run(outcome('applying')));
  assert.is(applying.Available, 'False');
  const paused = run(outcome('paused', 'Paused'));
  assert.is(show(paused).Ready, 'Unknown');
  assert.is(paused.find((c) => c.type === 'Ready')?.reason, 'Paused');
  const availableOf = (kind: OutcomeKind): string => {
    const found = run(outcome(kind, 'GatesBypassed')).find((c) => c.type === 'Available');
    return `${found?.status} ${found?.reason}: ${found?.message}`;
  };
  assert.is(availableOf('waiting'), 'False NeverCompleted: no payload was carried out in full yet');
  // What was carried out is not said to be outstanding.
  assert.match(availableOf('gatesBypassed'), /^False GatesBypassed: the payload was carried out in full, and nothing/);
});

test('a blocked change keeps what was available', () => {
  const found = run({ kind: 'terminal', reason: 'ChangeBlocked', message: 'm' }, run(outcome('steady')));
  assert.is(show(found).Available, 'True');
  assert.is(found.find((c) => c.type === 'Ready')?.reason, 'ChangeBlocked');
});

test('paused keeps the last Ready word for word, its generation included', () => {
  const [steady] = [conditionsFor({ outcome: outcome('steady'), previous: [], generation: 1, now: 0 })];
  const paused = run(outcome('paused'), steady, 60_000);
  assert.equal(
    paused.find((c) => c.type === 'Ready'),
    steady.find((c) => c.type === 'Ready'),
  );
});

const kinds = Object.keys(outcomeRows) as OutcomeKind[];

test('times move exactly when a status does, generations are of the outcome, and every condition fits its schema', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 }), (list) => {
      let previous: Condition[] = [];
      for (const [n, kind] of list.entries()) {
        const now = n * 10_000;
        const next = conditionsFor({
          outcome: { kind, reason: 'SomeReason', message: 'm'.repeat(n * 300) },
          previous,
          generation: n,
          now,
          domain: [{ type: 'WorkloadsReady', status: n % 2 === 0 ? 'True' : 'False', reason: 'X', message: '' }],
        });
        for (const one of next) {
          assert.ok(conditionShape().safeParse(one).success, JSON.stringify(one).slice(0, 200));
          const old = previous.find((c) => c.type === one.type);
          assert.is(one.lastTransitionTime, old?.status === one.status ? old.lastTransitionTime : timeText(now));
          if (!(kind === 'paused' && one.type === 'Ready')) assert.is(one.observedGeneration, n);
        }
        assert.is(new Set(next.map((c) => c.type)).size, next.length);
        previous = next;
      }
    }),
  );
});

test('Argo and kstatus read the conditions as the table says', () => {
  // The two readers in short: what Flux waits on, and what our Lua for Argo answers.
  const kstatus = (c: Record<string, string>): string => {
    if (c.Stalled === 'True') return 'Failed';
    if (c.Reconciling === 'True' || c.Ready !== 'True') return 'InProgress';
    return 'Current';
  };
  const argo = (c: Record<string, string>): string => {
    if (c.Stalled === 'True' || c.Ready === 'False') return 'Degraded';
    return c.Ready === 'True' ? 'Healthy' : 'Progressing';
  };
  const expected: Partial<Record<OutcomeKind, [string, string]>> = {
    applying: ['InProgress', 'Progressing'],
    slow: ['InProgress', 'Progressing'],
    retrying: ['InProgress', 'Degraded'],
    terminal: ['Failed', 'Degraded'],
    steady: ['Current', 'Healthy'],
    driftFight: ['InProgress', 'Degraded'],
    waiting: ['InProgress', 'Progressing'],
    planOnly: ['InProgress', 'Degraded'],
    gatesBypassed: ['InProgress', 'Progressing'],
  };
  for (const [kind, words] of Object.entries(expected) as [OutcomeKind, [string, string]][]) {
    const found = show(run(outcome(kind), run(outcome('steady'))));
    assert.equal([kstatus(found), argo(found)], words, kind);
  }
});

test('conditions that say the same are the same, whatever their times', () => {
  const a = run(outcome('steady'), [], 0);
  assert.is(sameConditions(a, run(outcome('steady'), [], 99_000).toReversed()), true);
  assert.is(sameConditions(a, run(outcome('applying'), [], 0)), false);
  assert.is(sameConditions(a, []), false);
});

test('messages are cut at whole characters', () => {
  assert.is(capMessage('short'), 'short');
  const cut = capMessage('ü😀'.repeat(1000));
  assert.is([...cut].length, 1024);
  assert.ok(cut.endsWith('…') && cut.isWellFormed());
});

test('a failure stays visible until the same work gets beyond it', () => {
  const failed: Outcome = { kind: 'retrying', reason: 'ApplyConflict', message: 'object 7' };
  const work = 'sha256:a';
  let memory: FailureMemory | undefined;
  const step = (one: Outcome, position: number, of = work): string => {
    const result = rememberFailure(memory, one, { work: of, position });
    memory = result.memory;
    return `${result.outcome.kind} ${result.outcome.reason}`;
  };
  const applying: Outcome = { kind: 'applying', reason: 'Applying', message: '' };
  assert.is(step(applying, 3), 'applying Applying');
  assert.is(step(failed, 7), 'retrying ApplyConflict');
  assert.is(step(applying, 0), 'retrying ApplyConflict');
  assert.is(step(applying, 7), 'retrying ApplyConflict');
  assert.is(step(applying, 8), 'applying Applying');
  assert.is(step(applying, 2), 'applying Applying');
  step(failed, 7);
  assert.is(step(applying, 0, 'sha256:b'), 'applying Applying');
  step(failed, 7);
  assert.is(step({ kind: 'steady', reason: 'Done', message: '' }, 12), 'steady Done');
  step(failed, 7);
  assert.is(step({ kind: 'terminal', reason: 'ChangeBlocked', message: '' }, 0), 'terminal ChangeBlocked');
  assert.is(memory, undefined);
});

const digestOf = (n: number): string => `sha256:${n.toString(16).padStart(64, '0')}`;

test('history: at most 100, newest first; the first, the newest five and the newest completed stay', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 300 }), (completes) => {
      let history: HistoryEntry[] = [];
      for (const [n, completed] of completes.entries()) {
        history = recordStart(history, digestOf(n), n * 1000);
        if (completed) history = recordCompleted(history, digestOf(n), n * 1000 + 500);
      }
      assert.ok(history.length <= 100);
      assert.equal(
        history.map((h) => h.startedAt),
        history
          .map((h) => h.startedAt)
          .toSorted()
          .toReversed(),
      );
      assert.is(history.at(-1)?.digest, digestOf(0));
      const last = completes.length - 1;
      for (let n = last; n >= Math.max(0, last - 4); n--) assert.is(history[last - n]?.digest, digestOf(n));
      const newest = completes.lastIndexOf(true);
      assert.is(lastCompleted(history)?.digest, newest < 0 ? undefined : digestOf(newest));
    }),
    { numRuns: 60 },
  );
});

test('history: accepted risks and completed entries outlive attempts', () => {
  const entry = (n: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
    digest: digestOf(n),
    state: 'Partial',
    startedAt: timeText(n * 1000),
    ...more,
  });
  const history = Array.from({ length: 12 }, (_, n) => entry(12 - n));
  history[8] = entry(4, { state: 'Completed' });
  history[9] = entry(3, { acceptedRisks: 'replaced one object' });
  const kept = pruneHistory(history, 8).map((h) => h.digest);
  assert.ok(kept.includes(digestOf(4)) && kept.includes(digestOf(3)) && kept.includes(digestOf(1)));
  assert.is(kept.length, 8);
});

test('history: repeating the newest payload adds nothing; the first completion counts', () => {
  let history = recordStart([], digestOf(1), 0);
  history = recordCompleted(history, digestOf(1), 1000, 'a risk');
  const again = recordCompleted(recordStart(history, digestOf(1), 5000), digestOf(1), 9000);
  assert.equal(again, history);
  assert.equal(history, [
    {
      digest: digestOf(1),
      state: 'Completed',
      startedAt: timeText(0),
      completedAt: timeText(1000),
      acceptedRisks: 'a risk',
    },
  ]);
  assert.equal(recordCompleted(history, digestOf(2), 9000), history);
});

test('progress is told in whole numbers', () => {
  assert.is(percent(0, 0), 100);
  assert.is(percent(199, 200), 99);
  assert.is(percent(200, 200), 100);
  assert.is(
    progressMessage('v2', 7, 12, 'gate WorkloadsReady(central)'),
    'Working towards v2: 7 of 12 done (58% complete), waiting on gate WorkloadsReady(central)',
  );
  assert.is(progressMessage('v2', 12, 12), 'Working towards v2: 12 of 12 done (100% complete)');
});

test.run();
