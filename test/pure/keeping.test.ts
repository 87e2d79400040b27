import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { bindsNothing } from '../../executor/apply/bind.ts';
import { defaultDriftOptions } from '../../executor/apply/drift/keeper.ts';
import { defaultEngineOptions } from '../../executor/apply/engine.ts';
import type { Item } from '../../executor/apply/items.ts';
import type { LedgerStore } from '../../executor/apply/ledger-store.ts';
import type { LiveIndex, Need } from '../../executor/apply/need.ts';
import type { Survey } from '../../executor/apply/survey.ts';
import { createClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type DomainSession, sealDomain } from '../../executor/release/domain.ts';
import type { EnforceInput } from '../../executor/release/enforce.ts';
import { Keeping } from '../../executor/release/keeping.ts';
import { manifestsDomain } from '../../executor/release/manifests-domain.ts';
import type { WorkerDeps } from '../../executor/release/worker-options.ts';
import { digest, entry, item, ledgerOf, liveMeta, release } from './executor-support.ts';
import { discoveryAnswer, scriptedTransport, statusOf } from './fakeTransport.ts';
import { line, listOf, Stream } from './kube-reflector-support.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

const data = { body: { data: { value: 'ours' } } };
const one = item({ name: 'one', ...data });
const two = item({ name: 'two', ...data });

const theirs = (of: Item, version: number): KubeObject => ({
  ...of.object,
  metadata: {
    ...of.object.metadata,
    ...liveMeta(of, { uid: `uid-${of.entry.name}` }),
    resourceVersion: String(version),
  },
  data: { value: `theirs ${version}` },
});

const session = { bind: bindsNothing } as unknown as DomainSession;
const noSurvey = { narrow: new Set<string>() } as unknown as Survey;

/** What drifts under a domain that answers `problems`; every change is seen to as a worker would. */
async function kept(problems: () => readonly Problem[]) {
  const clock = new VirtualClock();
  const stream = new Stream();
  const { transport, requests } = scriptedTransport((request) => {
    const known = discoveryAnswer(request.path);
    if (known !== undefined) return known;
    if (request.query.watch === 'true') return { status: 200, stream: stream.body(request.signal) };
    if (request.path.endsWith('/configmaps')) return listOf(2);
    return statusOf(403, 'Forbidden', 'no');
  });
  const ledger = ledgerOf(...[one, two].map((of) => entry(of, { uid: `uid-${of.entry.name}` })));
  const stop = new AbortController();
  const counts = { due: 0, again: 0, prepared: 0 };
  const deps = {
    client: createClient({ transport, clock, random: seededRandom(1) }),
    clock,
    random: () => 0.5,
    release,
    namespace: 'demo',
    domains: [
      sealDomain({
        ...manifestsDomain,
        prepare: () => {
          counts.prepared += 1;
          return Promise.resolve({ snapshot: undefined, problems: problems() });
        },
      }),
    ],
    engine: defaultEngineOptions,
    drift: { ...defaultDriftOptions, retry: { initialMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 } },
    check: () => undefined,
    onDrift: () => undefined,
    onMoved: () => undefined,
    onProblem: () => undefined,
  } as unknown as WorkerDeps;
  const keeping = new Keeping(deps, {
    due: () => {
      counts.due += 1;
    },
    again: () => {
      counts.again += 1;
    },
    told: () => undefined,
  });
  const input = {
    release,
    releaseUID: 'u',
    namespace: 'demo',
    spec: { suspendPhases: [], overrides: [] } as unknown as ReleaseSpec,
    loaded: {
      items: [one, two],
      payload: { index: { digest: digest('1'), content: { release: { domain: 'manifests' }, phases: [] } } },
    },
    ledger: { ledger } as unknown as LedgerStore,
    completed: true,
    quiesced: false,
    doubt: () => undefined,
    keeping,
    signal: stop.signal,
  } as unknown as EnforceInput;
  const running = keeping.run(stop.signal);
  keeping.follow(input, session, noSurvey);
  keeping.watch();
  const rest = async (): Promise<void> => {
    await settled();
    await settled();
  };
  await rest();
  return {
    clock,
    counts,
    keeping,
    input,
    rest,
    looks: () => requests.filter(({ method, path }) => method === 'GET' && path.endsWith(`/${one.entry.name}`)).length,
    /** Somebody changes an object; what is due then is done. */
    async change(type: string, of: Item, version: number): Promise<void> {
      const before = counts.due;
      stream.push(line(type, theirs(of, version)));
      await rest();
      if (counts.due > before) await keeping.mend(input);
    },
    async close(): Promise<void> {
      stop.abort();
      await rest();
      await running;
    },
  };
}

test('a domain that can not be opened is told by one pass, whatever goes on changing; then pauses rule, and grow', async () => {
  let broken = true;
  const bed = await kept(() => (broken ? [{ reason: 'ApiUnavailable', message: 'no answer' }] : []));
  const { counts, clock, keeping, input } = bed;
  // Nothing was there when the watch began: that is drift of its own.
  await keeping.mend(input);
  assert.equal([counts.again, counts.prepared], [1, 1]);
  for (let version = 3; version < 23; version += 1)
    await bed.change(version === 3 ? 'ADDED' : 'MODIFIED', one, version);
  assert.equal([counts.again, counts.prepared], [1, 1], 'twenty changes start nothing while the pause runs');
  const before = counts.due;
  await clock.advance(1_000);
  await bed.rest();
  assert.ok(counts.due > before, 'the pause is over');
  await keeping.mend(input);
  assert.equal([counts.again, counts.prepared], [2, 2]);
  await clock.advance(1_000);
  await keeping.mend(input);
  assert.equal([counts.again, counts.prepared], [2, 2], 'the next pause is longer');
  broken = false;
  await clock.advance(1_000);
  await keeping.mend(input);
  assert.equal([counts.again, counts.prepared, bed.looks()], [2, 3, 1], 'then it is seen to');
  await bed.close();
});

test('beside a pass that waits, nothing of a quiesced release is seen to', async () => {
  const bed = await kept(() => []);
  const { keeping, input } = bed;
  await keeping.beside({ ...input, quiesced: true }, session).meanwhile();
  assert.is(bed.looks(), 0);
  await keeping.beside(input, session).meanwhile();
  assert.is(bed.looks(), 1);
  await bed.close();
});

test('what a pass leaves alone: all that is missing of a quiesced release, and a quiesced object that was left before', async () => {
  const bed = await kept(() => []);
  const needs = new Map<string, Need>([
    [one.id, { need: 'write', why: 'vanished', formerUID: 'uid-one' }],
    [two.id, { need: 'write', why: 'unfinished', uid: 'uid-two' }],
  ]);
  const live: LiveIndex = new Map([[two.id, liveMeta(two, { annotations: { [annotations.quiesce]: 'upgrade' } })]]);
  const left = (quiesced: boolean, completed: boolean, of: LiveIndex = live): unknown[] =>
    [...bed.keeping.withhold({ needs, live: of }, { quiesced, completed }).values()].map(({ need }) => need);
  assert.equal(left(false, false), ['write', 'write']);
  assert.equal(left(true, false), ['held', 'write'], 'a payload is carried out all the same');
  assert.equal(left(false, true), ['write', 'held']);
  assert.equal(left(false, true, new Map()), ['write', 'write']);
  await bed.close();
});

test.run();
