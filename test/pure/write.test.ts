import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { Judged } from '../../executor/apply/dryrun.ts';
import { type WriteDeps, type WriteOutcome, writeItem } from '../../executor/apply/write.ts';
import { createClient } from '../../executor/kube/client.ts';
import type { ObjectMeta } from '../../executor/kube/types.ts';
import { item, liveMeta } from './executor-support.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, VirtualClock } from './virtualClock.ts';

const one = item({ recreate: true });
const judged: Judged = { item: one, intent: one.object, verdict: { verdict: 'replace', uid: 'uid-1' }, partial: false };

const live = (uid: string, version: number, marks: Record<string, string> = {}): Scripted => {
  const metadata = {
    ...one.object.metadata,
    ...liveMeta(one, { uid, annotations: marks }),
    resourceVersion: `${version}`,
  };
  return { status: 200, body: { ...one.object, metadata } };
};
const conflict = statusOf(409, 'Conflict', 'the precondition failed');

/** Writes an object under answers that come in this order; answers the outcome and the requests, with their preconditions. */
async function write(
  judged: Judged,
  answers: readonly Scripted[],
  more: Partial<WriteDeps> = {},
): Promise<{ outcome: WriteOutcome; asked: string[] }> {
  const rest = [...answers];
  const clock = new VirtualClock();
  const { transport, requests } = scriptedTransport(
    (request) => discoveryAnswer(request.path) ?? rest.shift() ?? statusOf(500, 'InternalError', 'one too many'),
  );
  const client = createClient({ transport, clock, random: seededRandom(1) });
  const signal = new AbortController().signal;
  const outcome = await writeItem(judged, { client, clock, signal, check: () => undefined, replaceMs: 1_000, ...more });
  const asked = requests
    .filter(({ path }) => path.includes('/configmaps/'))
    .map(({ method, body }) => {
      const [version] = /(?<="resourceVersion":")\d+/.exec(String(body ?? '')) ?? [];
      return version === undefined ? method : `${method} ${version}`;
    });
  return { outcome, asked };
}

const replace = (answers: readonly Scripted[]) => write(judged, answers);

test('what is to be replaced is looked at right before it is deleted, and stays when it is held or quiesced by then', async () => {
  for (const mark of [annotations.hold, annotations.quiesce]) {
    const { outcome, asked } = await replace([live('uid-1', 5, { [mark]: 'by hand' })]);
    assert.equal(asked, ['GET']);
    assert.is(outcome.ok ? '' : outcome.held, 'by hand');
  }
});

test('a mark that comes between the look and the delete is seen by another look', async () => {
  const { outcome, asked } = await replace([live('uid-1', 5), conflict, live('uid-1', 6, { [annotations.hold]: 'x' })]);
  assert.equal(asked, ['GET', 'DELETE 5', 'GET']);
  assert.is(outcome.ok ? '' : outcome.held, 'x');
});

test('an object that only changed meanwhile is replaced all the same; another object is not, and neither is one that can not be read', async () => {
  const created = { ...live('uid-2', 9), status: 201 };
  const gone = statusOf(404, 'NotFound', 'no such object', { name: one.entry.name, kind: 'configmaps' });
  const deleted: Scripted = { status: 200, body: { kind: 'Status', status: 'Success' } };
  const changed = await replace([live('uid-1', 5), conflict, live('uid-1', 6), deleted, gone, created]);
  assert.equal(changed.asked, ['GET', 'DELETE 5', 'GET', 'DELETE 6', 'GET', 'PATCH']);
  assert.equal(changed.outcome.ok ? changed.outcome.result : changed.outcome.problem, 'replaced');
  const other = await replace(Array.from({ length: 4 }, () => [live('uid-9', 7), conflict]).flat());
  assert.is(other.outcome.ok ? '' : other.outcome.problem.reason, 'ObjectReplaced');
  const unread = await replace([statusOf(403, 'Forbidden', 'may not')]);
  assert.equal([unread.asked, unread.outcome.ok ? '' : unread.outcome.problem.reason], [['GET'], 'Forbidden']);
});

/** Updates an object that was decided on in version 5 (or was not seen at all) under answers that come in this order. */
async function update(
  answers: readonly Scripted[],
  before: ObjectMeta | undefined = liveMeta(one, { resourceVersion: '5' }),
  more: Partial<WriteDeps> = {},
): Promise<{ outcome: WriteOutcome; asked: string[] }> {
  const verdict = { verdict: 'ours', uid: 'uid-1', version: '5' } as const;
  return write({ ...judged, verdict }, answers, { seen: () => before, ...more });
}

test('an update holds for the version that was decided on, and takes no request more', async () => {
  const { outcome, asked } = await update([live('uid-1', 6)]);
  assert.equal(asked, ['PATCH 5']);
  assert.is(outcome.ok && outcome.result, 'configured');
});

test('what was marked since it was decided on is not written; what only changed is, in the version that it has now', async () => {
  for (const mark of [annotations.hold, annotations.quiesce]) {
    const { outcome, asked } = await update([conflict, live('uid-1', 6, { [mark]: 'by hand' })]);
    assert.equal(asked, ['PATCH 5', 'GET']);
    assert.is(outcome.ok ? '' : outcome.held, 'by hand');
  }
  const changed = await update([conflict, live('uid-1', 6), conflict, live('uid-1', 7), live('uid-1', 8)]);
  assert.equal(changed.asked, ['PATCH 5', 'GET', 'PATCH 6', 'GET', 'PATCH 7']);
  assert.is(changed.outcome.ok && changed.outcome.result, 'configured');
});

test('what another controller took as its own since it was decided on is not written, and neither is a field of it taken back', async () => {
  const owner = { apiVersion: 'v1', kind: 'Operator', name: 'other', uid: 'uid-o', controller: true };
  const owned = live('uid-1', 6);
  const body = owned.body as { metadata: object };
  const theirs = { ...owned, body: { ...body, metadata: { ...body.metadata, ownerReferences: [owner] } } };
  const taken = statusOf(409, 'Conflict', 'a conflict', {
    causes: [
      {
        reason: 'FieldManagerConflict',
        message: 'conflict with "other" with apiVersion v1 using Update',
        field: '.data.a',
      },
    ],
  });
  for (const answer of [conflict, taken]) {
    const changed = await update([answer, theirs, live('uid-1', 7)], undefined, { takeBack: true });
    assert.equal(changed.asked, ['PATCH 5', 'GET']);
    assert.is(changed.outcome.ok ? '' : changed.outcome.problem.reason, 'OwnedByAnother');
  }
});

test('what was quiesced before it was decided on is written', async () => {
  const quiesced = { [annotations.quiesce]: 'upgrade' };
  const before = liveMeta(one, { resourceVersion: '5', annotations: quiesced });
  const { outcome, asked } = await update([conflict, live('uid-1', 6, quiesced), live('uid-1', 7)], before);
  assert.equal([asked, outcome.ok], [['PATCH 5', 'GET', 'PATCH 6'], true]);
});

test('what the listing did not show is looked at first; another object, none and endless change are not written', async () => {
  const unseen = await update([live('uid-1', 6), live('uid-1', 7)], {});
  assert.equal([unseen.asked, unseen.outcome.ok], [['GET', 'PATCH 6'], true]);
  const told = ({ outcome }: { outcome: WriteOutcome }): unknown[] =>
    outcome.ok ? [] : [outcome.problem.reason, outcome.retry];
  assert.equal(told(await update([conflict, live('uid-2', 6)])), ['ObjectReplaced', true]);
  const gone = statusOf(404, 'NotFound', 'no such object', { name: one.entry.name, kind: 'configmaps' });
  assert.equal(told(await update([conflict, gone])), ['ObjectChanged', true]);
  const busy = await update(Array.from({ length: 20 }, () => [conflict, live('uid-1', 6)]).flat());
  assert.equal(told(busy), ['ObjectChanged', true]);
  assert.is(busy.asked.filter((asked) => asked.startsWith('PATCH')).length, 8);
});

test.run();
