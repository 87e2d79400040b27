import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { recordCompleted, recordStart } from '../../constructs/api/history.ts';
import type { PayloadPhase } from '../../constructs/api/payload.ts';
import type { HistoryEntry } from '../../constructs/api/release.ts';
import { readSpan, type SpanPosition, spanText } from '../../constructs/api/span.ts';
import {
  carried,
  entering,
  leaving,
  queuedProblem,
  spanAround,
  spanMessage,
  transitionOf,
  turned,
  wayThrough,
} from '../../executor/release/spans.ts';
import { digest } from './executor-support.ts';

const since = '2026-01-01T00:00:00Z';
const count = 5;
const names = Array.from({ length: count }, (_, n) => `p${n}`);
const phases = names.map((name): PayloadPhase => ({ name, dir: `10-${name}`, gates: [], objects: [] }));
const pair = fc.tuple(fc.nat(count - 1), fc.nat(count - 1)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
const spansOf = (pairs: readonly (readonly [number, number])[]) =>
  pairs.map(([from, to]) => ({ from: `p${from}`, to: `p${to}` }));

test('a phase lies in the union of all spans that share phases with one another', () => {
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 4 }), fc.nat(count - 1), (pairs, at) => {
      // Phase n and n + 1 hang together when one span covers both.
      const joined = (n: number): boolean => pairs.some(([from, to]) => from <= n && n + 1 <= to);
      const covered = pairs.some(([from, to]) => from <= at && at <= to);
      let [first, last] = [at, at];
      while (first > 0 && joined(first - 1)) first -= 1;
      while (last < count - 1 && joined(last)) last += 1;
      const expected = covered ? { from: `p${first}`, to: `p${last}` } : undefined;
      assert.equal(spanAround({ spans: spansOf(pairs), phases }, `p${at}`), expected);
    }),
  );
  assert.is(spanAround({ spans: spansOf([[0, 4]]), phases }, 'other'), undefined);
});

type Event =
  | { readonly kind: 'step'; readonly writes: boolean; readonly opens: boolean }
  | { readonly kind: 'want'; readonly payload: number }
  | { readonly kind: 'pin'; readonly payload: number | undefined }
  | { readonly kind: 'crash' };

const payloadCount = 4;
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('step' as const), writes: fc.boolean(), opens: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('want' as const), payload: fc.nat(payloadCount - 1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('pin' as const),
      payload: fc.option(fc.nat(payloadCount - 1), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'crash' as const }) },
);

const digestOf = (n: number): string => digest(String(n));

/** What an executor does with the functions under test, and a second opinion on whether it was right. */
class Model {
  readonly #spans: readonly (readonly (readonly [number, number])[])[];
  /** Durable. */
  position: SpanPosition | undefined;
  /** In the status: a crash may take the last of it along. */
  history: HistoryEntry[] = [];
  actual: string | undefined;
  #phase = 0;
  want = 0;
  pin: number | undefined;
  /** The second opinion: between which two payloads the cluster is halfway. */
  halfway: { readonly ends: ReadonlySet<string>; readonly target: string; readonly to: number } | undefined;
  #pinned = new Set<string>();

  constructor(spans: readonly (readonly (readonly [number, number])[])[]) {
    this.#spans = spans;
  }

  get #desired(): string {
    return digestOf(this.pin ?? this.want);
  }

  #content(payload: string) {
    const n = [...Array(payloadCount).keys()].find((each) => digestOf(each) === payload) ?? 0;
    return { spans: spansOf(this.#spans[n] ?? []), phases };
  }

  #begin(payload: string): void {
    this.actual = payload;
    this.history = recordStart(this.history, payload, 0);
    this.#phase = 0;
  }

  step(writes: boolean, opens: boolean): void {
    const { position } = this;
    const way = wayThrough(position, { digest: this.#desired, pinned: this.pin !== undefined });
    if (position !== undefined && this.actual !== carried(position) && way !== 'turn') this.#begin(carried(position));
    if ((way === 'open' || way === 'turn') && this.actual !== this.#desired) this.#begin(this.#desired);
    const { actual = '' } = this;
    if (this.position !== undefined) this.position = turned(this.position, actual);
    this.#work(actual, writes, opens);
  }

  #work(actual: string, writes: boolean, opens: boolean): void {
    const content = this.#content(actual);
    const name = `p${this.#phase}`;
    if (writes) {
      const entered = entering(this.position, content, name, transitionOf(this.history, actual), since);
      if (entered !== undefined) {
        if (actual !== this.#desired) return;
        this.position = entered;
      }
      this.#wrote(actual);
    }
    if (!opens) return;
    if (leaving(this.position, actual, name)) this.position = undefined;
    if (this.halfway?.target === actual && this.#phase === this.halfway.to) this.halfway = undefined;
    this.#phase += 1;
    if (this.#phase < count) return;
    this.#phase = 0;
    this.position = undefined;
    this.halfway = undefined;
    this.history = recordCompleted(this.history, actual, 0);
  }

  /** The second opinion judges a write by itself. */
  #wrote(actual: string): void {
    const { halfway } = this;
    if (halfway !== undefined) {
      assert.ok(halfway.ends.has(actual), `${actual} was written inside a span of ${[...halfway.ends].join(' to ')}`);
      if (actual !== halfway.target) assert.ok(this.#pinned.has(actual), 'nobody asked to go back');
      return;
    }
    const complete = this.history.find(({ state }) => state === 'Completed');
    const [newest] = this.history;
    const covered = this.#spans
      .at([...Array(payloadCount).keys()].find((n) => digestOf(n) === actual) ?? 0)
      ?.some(([from, to]) => from <= this.#phase && this.#phase <= to);
    if (complete === undefined) {
      assert.is(this.position, undefined, 'a first install has no spans');
      return;
    }
    if (newest?.state === 'Completed' || covered !== true) return;
    assert.ok(this.position !== undefined, 'a span is entered before its first write');
    this.#pinned = new Set(this.pin === undefined ? [] : [digestOf(this.pin)]);
    this.halfway = {
      ends: new Set([actual, complete.digest]),
      target: actual,
      to: names.indexOf(this.position?.to ?? ''),
    };
  }

  pinTo(payload: number | undefined): void {
    this.pin = payload;
    if (payload !== undefined) this.#pinned.add(digestOf(payload));
  }

  /** Only what is durable is left; the status may not know yet that the newest payload was begun. */
  crash(): void {
    const [newest, ...older] = this.history;
    if (newest?.state === 'Partial') this.history = older;
    this.actual = this.history[0]?.digest;
    this.#phase = 0;
    const text = this.position === undefined ? undefined : spanText(this.position);
    const read = readSpan(text, 'ConfigMap x');
    assert.ok(read.ok);
    assert.equal(read.ok ? read.value : 'unread', this.position);
  }
}

test('whatever happens when, inside a span nothing is written but its target, or the payload before when a person pins it', () => {
  let entered = 0;
  let queued = 0;
  fc.assert(
    fc.property(
      fc.array(fc.array(pair, { maxLength: 3 }), { minLength: payloadCount, maxLength: payloadCount }),
      fc.array(event, { minLength: 20, maxLength: 120 }),
      (spans, events) => {
        const model = new Model(spans);
        // Without something in place first, most runs would never see a span.
        for (let n = 0; n < count; n += 1) model.step(true, true);
        for (const each of events) {
          if (each.kind === 'step') model.step(each.writes, each.opens);
          else if (each.kind === 'want') model.want = each.payload;
          else if (each.kind === 'pin') model.pinTo(each.payload);
          else model.crash();
          if (model.position !== undefined) entered += 1;
          const wanted = { digest: digestOf(model.pin ?? model.want), pinned: model.pin !== undefined };
          if (wayThrough(model.position, wanted) === 'queued') queued += 1;
        }
        // Left alone with gates that open, the executor comes to what is wanted, with no span left open.
        model.pinTo(undefined);
        for (let n = 0; n < 4 * count; n += 1) model.step(true, true);
        assert.is(model.position, undefined);
        assert.is(model.actual, digestOf(model.want));
        assert.is(model.history[0]?.state, 'Completed');
      },
    ),
    { numRuns: 500 },
  );
  assert.ok(entered > 2000 && queued > 500, `the runs were too tame: ${entered} inside, ${queued} queued`);
});

const position: SpanPosition = {
  payload: digest('2'),
  back: digest('1'),
  from: 'central',
  to: 'data-plane',
  direction: 'forward',
  since,
};

test('only repair, and a rollback that is pinned, go through', () => {
  const way = (wanted: string, pinned = false, of = position) => wayThrough(of, { digest: digest(wanted), pinned });
  assert.is(wayThrough(undefined, { digest: digest('3'), pinned: false }), 'open');
  assert.is(way('2'), 'on');
  assert.is(way('2', true), 'on');
  assert.is(way('1'), 'queued', 'a revert in Git is no authorisation');
  assert.is(way('1', true), 'turn');
  assert.is(way('3'), 'queued');
  assert.is(way('3', true), 'queued', 'a pin leads back, and nowhere else');
  const back = turned(position, digest('1'));
  assert.is(back.direction, 'back');
  assert.is(carried(back), digest('1'));
  assert.is(way('1', false, back), 'on');
  assert.is(way('2', false, back), 'turn', 'the way forward stays open');
  assert.is(way('3', true, back), 'queued');
  assert.equal(turned(back, digest('2')), position);
});

test('a first install, and a payload that is in place, have no spans', () => {
  const entry = (n: string, state: HistoryEntry['state']): HistoryEntry => ({
    digest: digest(n),
    state,
    startedAt: since,
  });
  assert.is(transitionOf([], digest('1')).back, undefined);
  assert.is(transitionOf([entry('2', 'Partial'), entry('1', 'Partial')], digest('2')).back, undefined);
  assert.is(transitionOf([entry('2', 'Completed'), entry('1', 'Completed')], digest('2')).back, undefined);
  assert.is(transitionOf([entry('2', 'Partial'), entry('1', 'Completed')], digest('2')).back, digest('1'));
  assert.is(
    transitionOf([entry('3', 'Partial'), entry('2', 'Partial'), entry('1', 'Completed')], digest('3')).back,
    digest('1'),
    'a payload that was replaced on its way takes nothing of that away',
  );
  const own = (...history: ReturnType<typeof entry>[]) => transitionOf(history, digest('3'), 'keelson').back;
  assert.is(own(entry('3', 'Partial'), entry('1', 'Completed')), undefined, 'the same daemons on either side');
  assert.is(own(entry('3', 'Partial'), entry('2', 'Partial'), entry('1', 'Completed')), digest('1'));
  assert.is(own(entry('3', 'Partial'), entry('2', 'Partial'), entry('3', 'Completed')), undefined, 'the way back');
});

test('what is told names the payloads, the phases, what is waited for and the way out', () => {
  const problem = queuedProblem(position, digest('3'), 'WorkloadsReady(data-plane) RolloutInProgress: DaemonSet x');
  assert.match(problem.message, /payload 333333333333 waits: payload 222222222222 is inside the one-way span/);
  assert.match(
    problem.message,
    /phases central to data-plane since 2026-01-01T00:00:00Z, which waits on WorkloadsReady/,
  );
  assert.match(problem.remedy ?? '', `keelson.dev/pin=${digest('1')}`);
  assert.match(spanMessage(turned(position, digest('1'))), /the rollback to payload 111111111111/);
});

test('a position that can not be read stops everything', () => {
  for (const text of ['{', '{}', spanText({ ...position, since: 'yesterday' })]) {
    const read = readSpan(text, 'ConfigMap x');
    assert.not.ok(read.ok);
    assert.is(read.ok ? '' : read.problems[0]?.reason, 'LedgerUnreadable');
  }
  const none = readSpan(undefined, 'ConfigMap x');
  assert.ok(none.ok && none.value === undefined);
});

test.run();
