import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, ledgerFormatVersion, payloadFormatVersion } from '../../constructs/api/constants.ts';
import { chunkPayload } from '../../constructs/api/payload-chunks.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { gzipFixed, packTar, readTarGz } from '../../constructs/lib/tar.ts';
import type { RequestRecord } from '../faults/plan.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, type RunningExecutor, type SliceBed, withBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, testKey } from './slice-payload.ts';

/**
 * The API server away, slow, or asking for a pause, as the executor's transport sees it. Times stand in proportion to the
 * real ones: a Lease of 3 s for 30 s, a silence of 0.5 s for 5 s, a grace of 3 s for 30 s.
 */

const tenth = {
  lease: { durationMs: 3_000, renewEveryMs: 500, marginMs: 500, retryMs: 100, requestMs: 1_000 },
  timings: { silenceMs: 500, outageGraceMs: 3_000, statusQuietMs: 200, statusRetryMs: 100, lastWordsMs: 300 },
} as const;

const build = (bed: SliceBed, value: string, names: readonly string[] = ['a', 'b', 'c', 'd']): Promise<BuiltPayload> =>
  buildPayload({
    release: bed.names.release,
    phases: [
      {
        name: 'one',
        manifests: names.slice(0, 2).map((n) => ({ object: configMap(bed.names.namespace, n, { value }) })),
      },
      { name: 'two', manifests: names.slice(2).map((n) => ({ object: configMap(bed.names.namespace, n, { value }) })) },
    ],
    key: testKey,
  });

const inPlace = (built: BuiltPayload) => (status: Parameters<typeof is>[0]) =>
  status.raw.actual === built.digest && is(status, 'Ready', 'True');

async function settle(bed: SliceBed, built: BuiltPayload): Promise<void> {
  await bed.deliver(built);
  await bed.applyRelease(built);
  await bed.untilStatus('it is in place', inPlace(built), 60_000);
}

const objectPath = ({ names }: SliceBed, name: string): string =>
  `/api/v1/namespaces/${names.namespace}/configmaps/${name}`;

const readyOf = async (bed: SliceBed) =>
  (await bed.status()).raw.conditions?.find((c: { type: string }) => c.type === 'Ready');

/** From now on nothing reaches the API server. */
const cut = (executor: RunningExecutor): void =>
  void executor.plan.inject({ match: () => true, times: 1e6, fault: { kind: 'dropBefore' } });

/** Objects of the payload were listed before the first of them was written. */
function listedFirst(bed: SliceBed, log: readonly RequestRecord[]): void {
  const write = log.findIndex(
    ({ mutating, namespace, resource }) => mutating && namespace === bed.names.namespace && resource === 'configmaps',
  );
  assert.ok(write > 0, 'something was written');
  const before = log.slice(0, write);
  assert.ok(
    before.some(({ verb, path, status }) => verb === 'list' && path.endsWith('/configmaps') && status === 200),
    'after a list, which is never from memory',
  );
}

test('an outage shorter than a silence changes nothing at all', () =>
  withBed(async (bed) => {
    const terms: string[] = [];
    const executor = bed.executor({
      ...tenth,
      timings: { ...tenth.timings, silenceMs: 5_000 },
      log: (_l, m) => void terms.push(m),
    });
    await settle(bed, await build(bed, 'one'));
    const before = (await bed.status()).raw;
    executor.plan.resetLog();
    cut(executor);
    await systemClock.sleep(1_000);
    executor.plan.clear();
    await until('the Lease to be renewed again', () =>
      executor.plan.requests({ resource: 'leases', verb: 'update' }).some(({ status }) => status === 200),
    );
    assert.equal((await bed.status()).raw, before);
    assert.is(terms.filter((line) => line === 'lease leading').length, 1);
    assert.equal(payloadMutations(executor.plan, bed.system), []);
  }));

test('an outage longer than a Lease: nothing is written in it, what is there is listed after it, and Ready stands', () =>
  withBed(async (bed) => {
    const executor = bed.executor({
      ...tenth,
      reflector: { backoff: { initialMs: 100, factor: 2, maxMs: 500, jitter: 0.1 } },
    });
    const built = await build(bed, 'one');
    await settle(bed, built);
    const before = await readyOf(bed);
    cut(executor);
    // Ten minutes of the real times would be a minute here; what is longer than a Lease and a silence is all one.
    await systemClock.sleep(4_500);
    assert.equal(await readyOf(bed), before, 'nobody could tell, and nothing was seen to be wrong');
    await bed.server.admin.expect('DELETE', objectPath(bed, 'c'));
    executor.plan.resetLog();
    executor.plan.clear();
    await until('what vanished to be back', async () => (await bed.get(objectPath(bed, 'c'))) !== undefined, 30_000);
    listedFirst(bed, executor.plan.log);
    assert.is(payloadMutations(executor.plan, bed.system).length, 1);
    await bed.untilStatus('it is in place', inPlace(built));
    assert.is((await readyOf(bed)).lastTransitionTime, before.lastTransitionTime, 'it never was anything but True');
  }));

const outdated = ({ durationMs, awayMs }: { readonly durationMs: number; readonly awayMs: number }): Promise<void> =>
  withBed(async (bed) => {
    let stopped = false;
    const executor = bed.executor({
      ...tenth,
      lease: { ...tenth.lease, durationMs },
      log: (_level, message) => {
        stopped ||= message === 'lease stopped';
      },
    });
    const built = await build(bed, 'one');
    await settle(bed, built);
    cut(executor);
    await systemClock.sleep(awayMs);
    assert.is(stopped, awayMs > durationMs);
    executor.plan.clear();
    // The server answers, but a look at the objects of the payload never ends.
    executor.plan.inject({
      match: ({ verb, path }) => verb === 'list' && /configmaps$/.test(path) && !path.includes(bed.system),
      times: 1e6,
      fault: { kind: 'hang' },
    });
    const back = performance.now();
    const status = await bed.untilStatus('it is told', (s) => s.condition('Ready')?.status !== 'True', 30_000);
    const ms = performance.now() - back;
    assert.equal(
      [status.condition('Ready')?.status, status.condition('Ready')?.reason],
      ['Unknown', 'ObservationOutdated'],
    );
    assert.ok(ms < 3_000 + 2_500, `True stood for ${ms.toFixed(0)} ms after the outage; the grace is 3000`);
    executor.plan.clear();
    await bed.untilStatus('it is seen again', inPlace(built), 30_000);
  });

for (const { lease, durationMs, awayMs } of [
  { lease: 'kept', durationMs: 60_000, awayMs: 1_500 },
  { lease: 'lost', durationMs: 3_000, awayMs: 4_000 },
])
  test(`no round completes after an outage, the Lease ${lease}: True is told for the grace, then Unknown`, () =>
    outdated({ durationMs, awayMs }));

test('an outage in the middle of a phase: the pass is given up, and the next begins with a list', () =>
  withBed(async (bed) => {
    const executor = bed.executor({
      ...tenth,
      lease: { ...tenth.lease, durationMs: 60_000 },
      engine: { concurrency: 1, gatePollMs: 100 },
    });
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const built = await build(bed, 'one', names);
    executor.plan.inject({
      match: ({ mutating, namespace, resource }) =>
        mutating && namespace === bed.names.namespace && resource === 'configmaps',
      nth: 4,
      times: 1e6,
      fault: { kind: 'dropBefore' },
    });
    await bed.deliver(built);
    await bed.applyRelease(built);
    await until('three objects to be written', async () => (await bed.get(objectPath(bed, 'c'))) !== undefined, 30_000);
    cut(executor);
    await systemClock.sleep(2_000);
    executor.plan.resetLog();
    executor.plan.clear();
    await bed.untilStatus('it is in place', inPlace(built), 30_000);
    listedFirst(bed, executor.plan.log);
    const written = payloadMutations(executor.plan, bed.system).map(({ name }) => name);
    assert.equal(written, ['d', 'e', 'f'], 'what was written before is not written again');
  }));

test('a slow API server, a fifth of a second for every request: slow is not failing', () =>
  withBed(async (bed) => {
    const executor = bed.executor({
      lease: tenth.lease,
    });
    executor.plan.inject({ match: () => true, times: 1e6, fault: { kind: 'delay', ms: 200 } });
    const built = await build(bed, 'one');
    await bed.deliver(built);
    await bed.applyRelease(built);
    const states = new Set<string>();
    await bed.untilStatus(
      'it is in place',
      (status) => {
        states.add(String(status.condition('Failing')?.status));
        return inPlace(built)(status);
      },
      60_000,
    );
    assert.not.ok(states.has('True'), 'it was never called failing');
    assert.is(payloadMutations(executor.plan, bed.system).length, 4, 'each object was written once');
  }));

test('a storm of 429 with Retry-After: nobody asks before the time is over, and it gets done', () =>
  withBed(async (bed) => {
    const executor = bed.executor();
    const built = await build(bed, 'one');
    const storm = (request: { resource: string; verb: string }): boolean =>
      request.resource !== 'leases' && request.verb !== 'watch';
    for (const nth of [5, 12, 20])
      executor.plan.inject({ match: storm, nth, times: 3, fault: { kind: 'status', code: 429, retryAfterSeconds: 1 } });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const began = performance.now();
    await bed.untilStatus('it is in place', inPlace(built), 60_000);
    const refused = executor.plan.log.filter(({ status }) => status === 429).length;
    const seconds = (performance.now() - began) / 1000;
    assert.ok(refused >= 6, `${refused} were refused`);
    assert.ok(
      executor.plan.log.length / seconds < 60,
      `${executor.plan.log.length} requests in ${seconds.toFixed(1)} s`,
    );
    assert.is(payloadMutations(executor.plan, bed.system).filter(({ status }) => status === 201).length, 4);
  }));

test('two executors on the Leases of every day: one works, the other looks at the Lease and at nothing else', () =>
  withBed(async (bed) => {
    const started = ['one', 'two'].map((identity) => bed.executor({ lease: {}, identity }));
    const built = await build(bed, 'one');
    await settle(bed, built);
    const [first, second] = started.sort((a, b) => b.plan.log.length - a.plan.log.length);
    assert.ok(first && second);
    assert.equal(
      [...new Set(second.plan.log.map(({ resource }) => resource))].filter((one) => one !== ''),
      ['leases'],
    );
    assert.ok(first.plan.log.length > 20);
    await first.stop();
    const next = await build(bed, 'two');
    await bed.deliver(next);
    await bed.applyRelease(next);
    await bed.untilStatus('the other went on', inPlace(next), 20_000);
    assert.is(payloadMutations(second.plan, bed.system).length, 4);
  }));

/** The payload in another format, its content as it is. */
async function inFormat(built: BuiltPayload, formatVersion: number): Promise<Uint8Array> {
  const limits = { maxFiles: 100, maxFileBytes: 1e6, maxTotalBytes: 1e7, maxRatio: 4_000 };
  const files = await readTarGz(built.archive, limits);
  const changed = files.map(({ path, bytes }) => {
    if (path !== 'index.json') return { path, bytes };
    return {
      path,
      bytes: Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(bytes).toString()), formatVersion })),
    };
  });
  return gzipFixed(await packTar(changed));
}

test('formats: a newer payload is ExecutorTooOld and the old one stays enforced; ledgers of now and before go on', () =>
  withBed(async (bed) => {
    const first = bed.executor({
      worker: { reconcileMs: 300, backoff: { initialMs: 100, factor: 2, maxMs: 500, jitter: 0.1 } },
    });
    const built = await build(bed, 'one');
    await settle(bed, built);
    const next = await build(bed, 'two');
    const { system, names } = bed;
    const target = { release: names.release, digest: next.digest, namespace: system };
    for (const chunk of chunkPayload('payload', target, await inFormat(next, payloadFormatVersion + 1)))
      await bed.server.admin.expect('POST', `/api/v1/namespaces/${system}/configmaps`, { body: chunk });
    first.plan.resetLog();
    await bed.applyRelease(next);
    const refused = await bed.untilStatus('it is too new', (s) => s.condition('Accepted')?.reason === 'ExecutorTooOld');
    assert.is(refused.raw.actual, built.digest);
    assert.equal(payloadMutations(first.plan, system), []);
    await bed.server.admin.expect('DELETE', objectPath(bed, 'b'));
    await until('the old payload to be enforced', async () => (await bed.get(objectPath(bed, 'b'))) !== undefined);
    await bed.applyRelease(built);
    await bed.untilStatus('the old one is wanted again', inPlace(built));
    await first.stop();

    const ledger = `/api/v1/namespaces/${system}/configmaps/keelson-ledger-${names.release}-0`;
    const mark = (value: string | null) =>
      bed.server.admin.expect('PATCH', ledger, {
        body: { metadata: { annotations: { [annotations.ledgerFormat]: value } } },
        type: 'application/merge-patch+json',
      });
    await mark(String(ledgerFormatVersion + 1));
    await bed.server.admin.expect('DELETE', objectPath(bed, 'b'));
    const second = bed.executor({
      worker: { reconcileMs: 100, backoff: { initialMs: 100, factor: 1, maxMs: 100, jitter: 0.1 } },
    });
    await bed.untilStatus('the ledger is too new', (s) => s.condition('Ready')?.reason === 'ExecutorTooOld');
    assert.equal(payloadMutations(second.plan, system), []);
    assert.is(await bed.get(objectPath(bed, 'b')), undefined, 'nothing is written on a ledger that can not be read');
    await second.stop();

    await mark(null);
    const third = bed.executor();
    await bed.untilStatus('a ledger without a mark is of the format before', inPlace(built));
    await until('what vanished to be back', async () => (await bed.get(objectPath(bed, 'b'))) !== undefined);
    assert.is(payloadMutations(third.plan, system).length, 1);
  }));

test.run();
