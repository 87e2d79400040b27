import { randomBytes } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { startApiServer } from '../apiserver/server.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, type RunningExecutor, type SliceBed, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, namespaceObject, testKey } from './slice-payload.ts';

/** A real API server that is killed, and a real etcd that stands still, or has no room left. Leases are of 3 s. */

const quotaBytes = 24 * 1024 * 1024;
const server = await startApiServer({
  etcdArgs: [`--quota-backend-bytes=${quotaBytes}`],
  tools: { onProgress: (line) => console.error(line) },
});
const { admin, etcdUrl } = server;

const timings = {
  lease: { durationMs: 3_000, renewEveryMs: 500, marginMs: 500, retryMs: 100, requestMs: 1_000 },
  timings: { silenceMs: 500, outageGraceMs: 3_000, statusQuietMs: 200, statusRetryMs: 100, lastWordsMs: 300 },
} as const;

const build = ({ names }: SliceBed, value: string): Promise<BuiltPayload> =>
  buildPayload({
    release: names.release,
    phases: [
      { name: 'one', manifests: ['a', 'b', 'c'].map((n) => ({ object: configMap(names.namespace, n, { value }) })) },
    ],
    key: testKey,
  });

interface Running {
  readonly bed: SliceBed;
  readonly executor: RunningExecutor;
  /** How often it took the Lease, and lost it. */
  readonly terms: { led: number; stopped: number };
}

async function running(): Promise<Running> {
  const bed = await sliceBed(server);
  await admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(bed.names.namespace) });
  const terms = { led: 0, stopped: 0 };
  const executor = bed.executor({
    ...timings,
    log: (_level, message) => {
      if (message === 'lease leading') terms.led += 1;
      if (message === 'lease stopped') terms.stopped += 1;
    },
  });
  await carriedOut(bed, 'one');
  return { bed, executor, terms };
}

async function carriedOut(bed: SliceBed, value: string): Promise<void> {
  const built = await build(bed, value);
  await bed.deliver(built);
  await bed.applyRelease(built);
  await bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 60_000);
}

async function withRunning(work: (running: Running) => Promise<void>): Promise<void> {
  const made = await running();
  try {
    await work(made);
  } finally {
    await made.bed.close();
  }
}

const uids = async ({ names }: SliceBed): Promise<string[]> => {
  const { body } = await admin.expect('GET', `/api/v1/namespaces/${names.namespace}/configmaps`);
  return body.items.map((item: { metadata: { uid: string } }) => item.metadata.uid).sort();
};

test('killed, and back before the Lease is over: the same term goes on', () =>
  withRunning(async ({ bed, executor, terms }) => {
    const before = await uids(bed);
    await server.kill9();
    await server.restart();
    executor.plan.resetLog();
    await carriedOut(bed, 'two');
    assert.ok(terms.led - terms.stopped === 1 && terms.led <= 2, JSON.stringify(terms));
    assert.equal(await uids(bed), before);
    assert.equal(
      payloadMutations(executor.plan, bed.system)
        .map(({ name }) => name)
        .sort(),
      ['a', 'b', 'c'],
    );
  }));

test('killed, and away longer than a Lease: the term ends by its own clock, and another one begins', () =>
  withRunning(async ({ bed, executor, terms }) => {
    const before = await uids(bed);
    executor.plan.resetLog();
    await server.kill9();
    await until('the term to be over', () => terms.stopped === 1, 20_000);
    assert.equal(
      payloadMutations(executor.plan, bed.system),
      [],
      'while it was away nothing was asked of it but the Lease, and looks',
    );
    await server.restart();
    await carriedOut(bed, 'two');
    assert.is(terms.led, 2);
    assert.equal(await uids(bed), before);
  }));

test('etcd stands still: every request hangs, the Lease is lost in time, and nothing is written twice afterwards', () =>
  withRunning(async ({ bed, executor, terms }) => {
    const before = await uids(bed);
    executor.plan.resetLog();
    process.kill(server.etcdPid, 'SIGSTOP');
    try {
      await until('the term to be over', () => terms.stopped === 1, 20_000);
    } finally {
      process.kill(server.etcdPid, 'SIGCONT');
    }
    await carriedOut(bed, 'two');
    assert.equal(await uids(bed), before);
    const written = payloadMutations(executor.plan, bed.system).filter(({ status }) => status === 200);
    assert.equal(written.map(({ name }) => name).sort(), ['a', 'b', 'c']);
    assert.equal(executor.plan.violations, []);
  }));

interface EtcdAnswer {
  readonly header?: { readonly revision?: string };
  readonly alarms?: readonly { readonly memberID?: string; readonly alarm: string }[];
}

/** One call of etcd's own API. */
async function etcd(path: string, body: object): Promise<EtcdAnswer> {
  const answer = await fetch(`${etcdUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as EtcdAnswer;
}

test('etcd has no room left: reads go on, no write does, and it heals when there is room', () =>
  withRunning(async ({ bed, executor, terms }) => {
    const before = await uids(bed);
    const filling: string[] = [];
    for (let full = false; !full; ) {
      const name = `filler-${filling.length}`;
      const path = `/api/v1/namespaces/${bed.names.namespace}/configmaps`;
      // Bytes that nothing could make smaller.
      const body = configMap(bed.names.namespace, name, { noise: randomBytes(350 * 1024).toString('base64') });
      const { status } = await admin.request('POST', path, { body });
      full = status === 500;
      if (!full) filling.push(`${path}/${name}`);
      assert.ok(filling.length < 200, 'the quota is never reached');
    }
    await until('the term to be over', () => terms.stopped >= 1, 20_000);
    executor.plan.resetLog();
    const { body } = await admin.expect('GET', `/api/v1/namespaces/${bed.names.namespace}/configmaps/a`);
    assert.is(body.data.value, 'one', 'it can be read');
    assert.ok(is(await bed.status(), 'Ready', 'True'), 'what was told stands: nobody could write anything else');
    await until('it tries to lead', () => executor.plan.count({ resource: 'leases' }) > 5, 20_000);
    assert.equal(
      executor.plan.mutations().filter(({ resource }) => resource !== 'leases'),
      [],
    );

    for (const path of filling) await admin.expect('DELETE', path);
    const { header } = await etcd('/v3/kv/range', { key: 'AA==' });
    await etcd('/v3/kv/compaction', { revision: header?.revision ?? '0', physical: true });
    await etcd('/v3/maintenance/defragment', {});
    const { alarms = [] } = await etcd('/v3/maintenance/alarm', { action: 'GET' });
    assert.equal(
      alarms.map(({ alarm }) => alarm),
      ['NOSPACE'],
    );
    for (const alarm of alarms) await etcd('/v3/maintenance/alarm', { action: 'DEACTIVATE', ...alarm });
    await carriedOut(bed, 'two');
    assert.equal(await uids(bed), before);
  }));

test.after(async () => {
  await server.stop();
});

test.run();
