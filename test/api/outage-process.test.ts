import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { labels } from '../../constructs/api/constants.ts';
import { bundleInParts } from '../../images/bundle.ts';
import { type ExecutorProcess, startExecutorProcess } from './executor-process.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, type SliceBed, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, namespaceObject, testKey } from './slice-payload.ts';

/** Executors as processes, each behind a proxy of its own that counts: stopped, killed, replaced, and without a disk. */

const entry = new URL('../../bin/keelson.ts', import.meta.url).pathname;
const folder = await mkdtemp(join(tmpdir(), 'keelson-outage-'));
// What runs in a cluster is the bundle; the sources stand for the version after it.
await bundleInParts(entry, join(folder, 'program'));
const bundled = join(folder, 'program', 'keelson.mjs');

const start = (bed: SliceBed, program: string, node: readonly string[] = []): Promise<ExecutorProcess> =>
  startExecutorProcess({ server: bed.server, namespace: bed.system, program, folder, node });

const names = Array.from({ length: 12 }, (_, n) => `m${String(n).padStart(2, '0')}`);

const build = (bed: SliceBed, value: string): Promise<BuiltPayload> =>
  buildPayload({
    release: bed.names.release,
    phases: [{ name: 'one', manifests: names.map((n) => ({ object: configMap(bed.names.namespace, n, { value }) })) }],
    key: testKey,
  });

async function withBed(work: (bed: SliceBed, started: ExecutorProcess[]) => Promise<void>): Promise<void> {
  const bed = await sliceBed();
  const started: ExecutorProcess[] = [];
  try {
    const { admin } = bed.server;
    await admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(bed.names.namespace) });
    await admin.expect('PATCH', `/api/v1/namespaces/${bed.system}`, {
      body: { metadata: { labels: { [labels.testCluster]: 'true' } } },
      type: 'application/merge-patch+json',
    });
    await work(bed, started);
  } finally {
    for (const one of started) await one.end();
    await bed.close();
  }
}

async function want(bed: SliceBed, value: string): Promise<BuiltPayload> {
  const built = await build(bed, value);
  await bed.deliver(built);
  await bed.applyRelease(built);
  return built;
}

const inPlace = (bed: SliceBed, built: BuiltPayload): Promise<unknown> =>
  bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 60_000);

/** Holds up every write of an object, so that some are under way whenever one looks. */
const slowly = (bed: SliceBed, { proxy }: ExecutorProcess, ms: number): void =>
  void proxy.plan.inject({
    match: ({ mutating, namespace }) => mutating && namespace === bed.names.namespace,
    times: 1e6,
    fault: { kind: 'delay', ms },
  });

const writes = (bed: SliceBed, { proxy }: ExecutorProcess): string[] =>
  payloadMutations(proxy.plan, bed.system).map(({ name }) => name ?? '');

test('a leader that is stopped in the middle of its work and wakes up after another took over writes nothing more', () =>
  withBed(async (bed, started) => {
    const first = await start(bed, bundled);
    started.push(first);
    slowly(bed, first, 400);
    const built = await want(bed, 'one');
    await until('it is at work', () => writes(bed, first).length >= 3, 30_000);
    first.signal('SIGSTOP');
    const second = await start(bed, bundled);
    started.push(second);
    await inPlace(bed, built);
    const next = await want(bed, 'two');
    await inPlace(bed, next);
    // What was on its way when it was stopped has arrived by now; nothing may follow.
    first.proxy.plan.resetLog();
    first.signal('SIGCONT');
    await until('it knows that it lost its Lease', () => first.said('lease stopped'), 20_000);
    await until('it stands by', () => first.proxy.plan.count({ verb: 'get', resource: 'leases' }) >= 3, 20_000);
    const tried = first.proxy.plan.mutations();
    assert.equal(
      tried.filter(({ resource }) => resource !== 'leases').map(({ method, path }) => `${method} ${path}`),
      [],
    );
    assert.not.ok(
      tried.some(({ status }) => status === 200 || status === 201),
      'not even its Lease could it renew',
    );
    const { body } = await bed.server.admin.expect('GET', `/api/v1/namespaces/${bed.names.namespace}/configmaps`);
    assert.equal([...new Set(body.items.map((item: { data: { value: string } }) => item.data.value))], ['two']);
  }));

test('an executor that is upgraded between the third and the fourth object: only what was under way is written twice', () =>
  withBed(async (bed, started) => {
    const first = await start(bed, bundled);
    started.push(first);
    const { plan } = first.proxy;
    // Three writes are answered; what comes after them never gets an answer.
    plan.inject({
      match: ({ mutating, namespace }) => mutating && namespace === bed.names.namespace,
      nth: 4,
      times: 1e6,
      fault: { kind: 'hang' },
    });
    const built = await want(bed, 'one');
    const answered = (): string[] =>
      payloadMutations(plan, bed.system).flatMap(({ status, name }) => (status === 201 ? [name ?? ''] : []));
    await until('three objects are written', () => answered().length === 3 && writes(bed, first).length > 3, 30_000);
    await first.kill();
    const done = answered();
    const second = await start(bed, entry);
    started.push(second);
    await inPlace(bed, built);
    const again = writes(bed, second).filter((name) => done.includes(name));
    // Their UIDs were on the way to the ledger: each is proven ours, and written once more at most.
    assert.ok(again.length <= 3 && new Set(again).size === again.length, again.join(' '));
    assert.is(new Set(writes(bed, second)).size, writes(bed, second).length, 'nothing is written twice by one process');
    assert.ok(names.filter((name) => !done.includes(name)).every((name) => writes(bed, second).includes(name)));
    const ledger = await bed.ledger();
    assert.is(Object.values(ledger).filter(({ state }) => state === 'applied').length, names.length);
  }));

test('a disk that takes no byte: an executor that may not write a single file does everything', () =>
  withBed(async (bed, started) => {
    // The permission model of Node answers every write to the file system with an error.
    const only = await start(bed, bundled, ['--permission', '--allow-fs-read=*']);
    started.push(only);
    const built = await want(bed, 'one');
    await inPlace(bed, built);
    await inPlace(bed, await want(bed, 'two'));
    assert.not.ok(only.said('ERR_ACCESS_DENIED'), 'and it did not even try');
  }));

test.after(() => {
  rmSync(folder, { recursive: true, force: true });
});

test.run();
