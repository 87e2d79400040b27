import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { holdAnnotation, is, payloadMutations, pinAnnotation, type StatusView, withBed } from './slice-bed.ts';
import { inPlace, mapValue, ready, spanPayload, want, writtenMaps } from './spans-bed.ts';

const insideSpan = (status: StatusView): boolean => status.condition('InSpan')?.status === 'True';
/** Inside, and the gate of its first phase is waited for. */
const atGate = (status: StatusView): boolean =>
  insideSpan(status) &&
  status.raw.phases?.some((p: { name: string; state: string }) => p.name === 'two' && p.state === 'Waiting');

test('inside a span a newer payload is queued, over a hand-over too, and taken up when the span is left', () =>
  withBed(async (bed) => {
    const first = bed.executor();
    const a = await spanPayload(bed, { value: 'A', replicas: 1 });
    await want(bed, a);
    await inPlace(bed, a, 1);
    const b = await spanPayload(bed, { value: 'B', replicas: 2 });
    await want(bed, b);
    await bed.untilStatus('it is inside and waits', atGate);
    const c = await spanPayload(bed, { value: 'C', replicas: 3 });
    await want(bed, c);
    const queued = await bed.untilStatus(
      'the newer one is queued',
      (s) =>
        s.condition('Accepted')?.reason === 'SpanOpen' &&
        s.condition('Accepted')?.message.includes('waits on') === true,
    );
    assert.is(queued.raw.desired, c.digest);
    assert.is(queued.raw.actual, b.digest);
    assert.is(queued.condition('Ready')?.status, 'Unknown');
    assert.is(queued.condition('Ready')?.reason, 'SpanOpen');
    assert.is(queued.raw.sync.blocker.reason, 'SpanOpen');
    assert.match(queued.raw.sync.blocker.message, /phases two to three .* waits on WorkloadsReady\(two\)/);
    assert.match(queued.condition('Accepted')?.message ?? '', `keelson.dev/pin=${a.digest}`);

    // A process that knows nothing but what is stored, and a status that lost its memory.
    await first.stop();
    await bed.server.admin.expect(
      'PATCH',
      `/apis/keelson.dev/v1alpha1/namespaces/${bed.system}/releases/${bed.names.release}/status`,
      { body: { status: { actual: a.digest, history: null } }, type: 'application/merge-patch+json' },
    );
    const second = bed.executor();
    await bed.untilStatus(
      'it carries on',
      (s) => s.raw.actual === b.digest && s.condition('Accepted')?.reason === 'SpanOpen',
    );
    assert.equal(writtenMaps(second.plan, bed.system), []);
    await ready(bed, 2);
    // The newer payload has a span of its own, of which the very same is true.
    await bed.untilStatus('the newer one is taken up', (s) => s.raw.actual === c.digest && atGate(s));
    assert.equal(
      writtenMaps(second.plan, bed.system),
      ['c=B', 'a=C', 'b=C'],
      'and nothing beyond the span of the one before',
    );
    await inPlace(bed, c, 3);
    assert.is((await bed.status()).condition('InSpan'), undefined);
    assert.is(await mapValue(bed, 'd'), 'C');
  }));

test('a first install, what lies before a span, and approval: a newer payload takes over within a second', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const bad = await spanPayload(bed, { value: 'bad', replicas: 9 });
    await want(bed, bad);
    await bed.untilStatus('the first install waits for its gate', (s) => s.raw.phases?.[1]?.state === 'Waiting');
    const a = await spanPayload(bed, { value: 'A', replicas: 1 });
    await bed.deliver(a);
    let asked = performance.now();
    await bed.applyRelease(a);
    await bed.untilStatus('a first install is in no span', (s) => s.raw.actual === a.digest);
    assert.ok(performance.now() - asked < 1_000, `${performance.now() - asked} ms`);
    await inPlace(bed, a, 1);

    const before = await spanPayload(bed, { value: 'before', replicas: 2, early: true });
    await want(bed, before);
    await bed.untilStatus('it waits before the span', (s) => s.raw.phases?.[0]?.state === 'Waiting');
    assert.not.ok(insideSpan(await bed.status()));
    const asks = await spanPayload(bed, { value: 'asks', replicas: 3 });
    await bed.deliver(asks);
    asked = performance.now();
    await bed.applyRelease(asks, { approval: { mode: 'always' } });
    await bed.untilStatus(
      'approval is asked before the span',
      (s) => s.condition('Accepted')?.reason === 'ApprovalRequired',
    );
    assert.ok(performance.now() - asked < 1_500, `${performance.now() - asked} ms`);
    const b = await spanPayload(bed, { value: 'B', replicas: 4 });
    executor.plan.resetLog();
    await want(bed, b, { paused: true });
    await bed.untilStatus('a pause acts before the span', (s) => s.condition('Progressing')?.reason === 'Paused');
    await systemClock.sleep(400);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    await bed.applyRelease(b);
    await bed.untilStatus('released, it enters the span', atGate);
    assert.equal(writtenMaps(executor.plan, bed.system), ['a=B', 'b=B']);
  }));

test('inside: a pause waits for the end of the span, a suspended phase and a hold stop where they stand', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const a = await spanPayload(bed, { value: 'A', replicas: 1 });
    await want(bed, a);
    await inPlace(bed, a, 1);
    const b = await spanPayload(bed, { value: 'B', replicas: 2 });
    await want(bed, b);
    await bed.untilStatus('it is inside', atGate);
    await bed.applyRelease(b, { suspendPhases: ['three'] });
    await ready(bed, 2);
    const suspended = await bed.untilStatus(
      'it is suspended',
      (s) => s.condition('Ready')?.reason === 'PhaseSuspended',
    );
    assert.ok(insideSpan(suspended), 'which leaves the span open');
    const c = await spanPayload(bed, { value: 'C', replicas: 3 });
    await want(bed, c, { suspendPhases: ['three'] });
    await bed.untilStatus('a newer one is queued all the same', (s) => s.condition('Accepted')?.reason === 'SpanOpen');

    await bed.annotate(holdAnnotation, 'incident 7');
    await bed.applyRelease(b);
    await bed.untilStatus(
      'a hold stops at once',
      (s) => s.condition('Progressing')?.reason === 'ReleaseHeld' && insideSpan(s),
    );
    await systemClock.sleep(400);
    assert.is(await mapValue(bed, 'c'), 'A');

    executor.plan.resetLog();
    await bed.applyRelease(b, { paused: true });
    await bed.annotate(holdAnnotation, null);
    await bed.untilStatus('then it pauses', (s) => s.condition('Progressing')?.reason === 'Paused' && !insideSpan(s));
    assert.equal(writtenMaps(executor.plan, bed.system), ['c=B'], 'the span was finished, and nothing beyond it');
    await bed.applyRelease(b);
    await inPlace(bed, b);
    assert.is(await mapValue(bed, 'd'), 'B');
  }));

test('a payload that can not get through is left by a pinned rollback, and by nothing else', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const a = await spanPayload(bed, { value: 'A', replicas: 1 });
    await want(bed, a);
    await inPlace(bed, a, 1);
    const b = await spanPayload(bed, { value: 'B', replicas: 2 });
    await want(bed, b);
    await bed.untilStatus('it is inside', atGate);
    await bed.applyRelease(a);
    await bed.untilStatus(
      'a revert in Git is queued',
      (s) => s.raw.desired === a.digest && s.condition('Accepted')?.reason === 'SpanOpen',
    );
    executor.plan.resetLog();
    await bed.annotate(pinAnnotation, a.digest);
    const back = await bed.untilStatus('the rollback is under way', (s) => s.raw.actual === a.digest && atGate(s));
    assert.match(back.condition('InSpan')?.message ?? '', /the rollback to payload/);
    assert.equal(writtenMaps(executor.plan, bed.system), ['a=A', 'b=A']);
    await bed.applyRelease(await spanPayload(bed, { value: 'C' }));
    await inPlace(bed, a, 1);
    assert.is((await bed.status()).condition('InSpan'), undefined);
    assert.equal(await Promise.all(['a', 'b', 'c', 'd'].map((name) => mapValue(bed, name))), ['A', 'A', 'A', 'A']);
    assert.equal(executor.plan.violations, []);
    assert.ok(is(await bed.status(), 'Ready', 'True'));
  }));

test.run();
