import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { Fights } from '../../executor/apply/drift/fights.ts';
import { defaultDriftOptions } from '../../executor/apply/drift/keeper.ts';
import { type DriftEvent, type MendInput, mend } from '../../executor/apply/drift/mend.ts';
import { Pauses } from '../../executor/apply/drift/pauses.ts';
import { DriftState } from '../../executor/apply/drift/state.ts';
import { defaultEngineOptions } from '../../executor/apply/engine.ts';
import type { Item } from '../../executor/apply/items.ts';
import type { LedgerStore } from '../../executor/apply/ledger-store.ts';
import { createClient } from '../../executor/kube/client.ts';
import type { TransportRequest } from '../../executor/kube/transport.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../executor/kube/types.ts';
import type { DomainSession } from '../../executor/release/domain.ts';
import { entry, item, ledgerOf, liveMeta, release } from './executor-support.ts';
import { discoveryAnswer, type Scripted, scriptedTransport, statusOf } from './fakeTransport.ts';
import { seededRandom, VirtualClock } from './virtualClock.ts';

const held = (manager: string, operation: 'Apply' | 'Update', ...keys: string[]): ManagedFieldsEntry => ({
  manager,
  operation,
  fieldsV1: { 'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) },
});

/** Somebody's edit of a value, and somebody's removal of one: the first has a holder that gives it up, the second none. */
const taken = { data: { a: 'x', b: '2' }, fields: [held('keelson', 'Apply', 'b'), held('kubectl', 'Update', 'a')] };
const removed = { data: { a: '1' }, fields: [held('keelson', 'Apply', 'a')] };
const inPlace = { data: { a: '1', b: '2' }, fields: [held('keelson', 'Apply', 'a', 'b')] };

/** One ConfigMap on a server that knows preconditions, and a watch of it that says what it is told to. */
function mendBed() {
  const of: Item = item({ body: { data: { a: '1', b: '2' } } });
  const clock = new VirtualClock();
  let version = 9;
  let live: KubeObject = of.object;
  const events: DriftEvent[] = [];
  const bed = {
    events,
    seen: undefined as KubeObject | undefined,
    /** Called when the server has answered a request, before the answer is taken in. */
    answered: (_request: TransportRequest): void => undefined,
    /** Called while the right to write is waited for. */
    waited: (): void => undefined,
    /** Changes the object on the server, as somebody or as we do. */
    change: (data: JsonObject, fields: ManagedFieldsEntry[], marks: Record<string, string> = {}): void => {
      version += 1;
      const metadata = liveMeta(of, { resourceVersion: String(version), managedFields: fields });
      const { name, namespace } = of.entry;
      const notes = { ...metadata.annotations, ...marks };
      live = {
        ...of.object,
        metadata: { ...metadata, name, ...(namespace === undefined ? {} : { namespace }), annotations: notes },
        data,
      };
    },
    /** Lets the watch deliver a version of the object that differs from the intent, or the last one as it is. */
    show: (differs = JSON.stringify(live.data) !== JSON.stringify(of.object.data), at = version): void => {
      const { managedFields: _, ...metadata } = live.metadata;
      const seen = differs ? { same: false, hash: `h${at}` } : { same: true };
      bed.seen = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, resourceVersion: String(at) }, seen };
      state.check(of.id);
    },
    get live(): KubeObject {
      return live;
    },
    /** Requests about the object since the last call: `get`, `dry run`, or a write with the version that it holds for. */
    asked: (): string[] => requests.splice(0).flatMap(said),
    mend: () => mend(state, { client, clock, options: defaultEngineOptions, check: () => undefined }, input),
  };
  const stale = (): Scripted => statusOf(409, 'Conflict', 'the object has been modified; please apply your changes');
  const write = (request: TransportRequest): Scripted => {
    const body = JSON.parse(String(request.body));
    if (Array.isArray(body)) {
      if (body[1].value !== String(version)) return stale();
      bed.change(live.data as JsonObject, body[2].value, live.metadata.annotations);
      return { status: 200, body: live };
    }
    const wanted = body.metadata.resourceVersion;
    if (wanted !== undefined && wanted !== String(version)) return stale();
    if (request.query.dryRun === 'All') return { status: 200, body: { ...live, data: body.data } };
    bed.change(body.data, inPlace.fields, live.metadata.annotations);
    return { status: 200, body: live };
  };
  const { transport, requests } = scriptedTransport((request) => {
    const known = discoveryAnswer(request.path);
    if (known !== undefined) return known;
    const answer = request.method === 'GET' ? { status: 200, body: live } : write(request);
    bed.answered(request);
    return answer;
  });
  const client = createClient({ transport, clock, random: seededRandom(1) });
  const state = new DriftState({
    clock,
    fights: new Fights(defaultDriftOptions.fight, () => 0.5),
    retries: new Pauses({ initialMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 }, () => 0.5),
    find: () => bed.seen,
  });
  const guard = { check: () => undefined, release: () => Promise.resolve() };
  const session = {
    beforeFirstWrite: () => Promise.resolve([]),
    guard: () => {
      bed.waited();
      return Promise.resolve({ granted: true, guard });
    },
  } as unknown as DomainSession;
  const ledger = { ledger: ledgerOf(entry(of)), flush: () => Promise.resolve(undefined) } as unknown as LedgerStore;
  const input: MendInput = {
    session,
    namespace: 'system',
    digest: 'd',
    doubt: () => undefined,
    tell: (event) => events.push(event),
    signal: new AbortController().signal,
  };
  const none = new Set<string>();
  const bind = () => ({ value: undefined });
  state.follow({ release, items: [of], bind, ledger, overridden: none, frozen: none, narrow: none });
  return { bed, state, clock, id: of.id };
}

function said({ method, path, query, body }: TransportRequest): string[] {
  if (discoveryAnswer(path) !== undefined) return [];
  if (method === 'GET') return ['get'];
  if (query.dryRun === 'All') return ['dry run'];
  const sent = JSON.parse(String(body));
  return [Array.isArray(sent) ? `give up ${sent[1].value}` : `apply ${sent.metadata.resourceVersion ?? 'any version'}`];
}

const isApply = ({ method, query, body }: TransportRequest): boolean =>
  method === 'PATCH' && query.dryRun !== 'All' && !Array.isArray(JSON.parse(String(body)));

test('what was changed again before our answer was taken in is set back too, and counted until it is a fight', async () => {
  const { bed, state, id } = mendBed();
  bed.change(taken.data, taken.fields);
  bed.show();
  bed.answered = (request) => {
    if (!isApply(request)) return;
    bed.change(taken.data, taken.fields);
    bed.show();
  };
  for (const round of [1, 2, 3]) {
    assert.equal(state.ready(), [id], `round ${round}: it is known that it differs`);
    await bed.mend();
    assert.is(bed.events.length, round);
  }
  assert.equal(state.ready(), [id]);
  await bed.mend();
  assert.equal(
    state.told.fights.map(({ why, fields }) => [why, fields]),
    [['returns', ['.data.a']]],
  );
  assert.equal(state.ready(), [], 'it pauses');
  assert.ok(Number.isFinite(state.next()), 'and is tried again');
});

test('what was changed after the read that found nothing is seen to', async () => {
  const { bed, state, id } = mendBed();
  bed.change(taken.data, taken.fields);
  bed.show();
  bed.change(inPlace.data, inPlace.fields);
  bed.answered = () => {
    bed.answered = () => undefined;
    bed.change(taken.data, taken.fields);
    bed.show();
  };
  await bed.mend();
  assert.equal(bed.asked(), ['get']);
  assert.equal(state.ready(), [id]);
  await bed.mend();
  assert.equal(bed.asked(), ['get', 'give up 12', 'apply 13']);
  assert.equal(bed.live.data, inPlace.data);
});

test('a watch that lags behind our own writes asks for nothing', async () => {
  const { bed, state } = mendBed();
  bed.change(taken.data, taken.fields);
  bed.show();
  await bed.mend();
  assert.equal(bed.asked(), ['get', 'give up 10', 'apply 11']);
  const quiet = async (what: string): Promise<void> => {
    assert.equal(state.ready(), [], what);
    await bed.mend();
    assert.equal([bed.asked(), state.next()], [[], Number.POSITIVE_INFINITY], what);
  };
  await quiet('it shows what was set back');
  bed.show(true, 11);
  await quiet('it shows the value given up');
  bed.show(false, 12);
  await quiet('it shows our apply');
  assert.is(bed.events.length, 1);
});

for (const [what, drift, write] of [
  ['a removed field', removed, 'apply 10'],
  ['a value that somebody took', taken, 'give up 10'],
] as const)
  for (const mark of [annotations.hold, annotations.quiesce])
    test(`${what} is not set back over the mark ${mark} that came while a Lease was waited for`, async () => {
      const { bed, state, id, clock } = mendBed();
      bed.change(drift.data, drift.fields);
      bed.show();
      bed.waited = () => bed.change(drift.data, drift.fields, { [mark]: 'mine' });
      await bed.mend();
      assert.is(bed.asked().at(-1), write, 'it holds for the version that was looked at');
      assert.equal([bed.live.data, bed.events, state.told.problems], [drift.data, [], []]);
      // The watch has not shown the mark yet: it is looked at again, and found.
      await clock.advance(1_000);
      assert.equal(state.ready(), [id]);
      await bed.mend();
      assert.equal(bed.asked(), ['get']);
      assert.equal([bed.live.data, state.ready()], [drift.data, []]);
    });

test('a mark that comes between giving up and applying is respected, and the rest is done when it is gone', async () => {
  const { bed, state, id, clock } = mendBed();
  bed.change(taken.data, taken.fields);
  bed.show();
  bed.answered = (request) => {
    if (request.method !== 'PATCH') return;
    bed.answered = () => undefined;
    bed.change(taken.data, [held('keelson', 'Apply', 'b')], { [annotations.hold]: 'mine' });
  };
  await bed.mend();
  assert.equal(bed.asked(), ['get', 'give up 10', 'apply 11']);
  assert.equal(bed.live.data, taken.data);
  bed.change(taken.data, [held('keelson', 'Apply', 'b')]);
  bed.show();
  await clock.advance(1_000);
  assert.equal(state.ready(), [id]);
  await bed.mend();
  assert.equal(bed.asked(), ['get', 'dry run', 'apply 13']);
  assert.equal(bed.live.data, inPlace.data);
});

test.run();
