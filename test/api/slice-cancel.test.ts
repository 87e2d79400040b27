import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { defaultDriftOptions } from '../../executor/apply/drift/keeper.ts';
import { defaultEngineOptions } from '../../executor/apply/engine.ts';
import { sealDomain } from '../../executor/release/domain.ts';
import { manifestsDomain } from '../../executor/release/manifests-domain.ts';
import type { WorkerRecord } from '../../executor/release/record.ts';
import { type ReleaseView, readRelease } from '../../executor/release/view.ts';
import { ReleaseWorker } from '../../executor/release/worker.ts';
import { inboxSource } from '../../executor/source/inbox.ts';
import { retainedStore } from '../../executor/source/retained.ts';
import { FaultPlan } from '../faults/plan.ts';
import type { KubeRequest } from '../faults/request.ts';
import { faultTransport } from '../faults/transport.ts';
import { edgeOf, until } from './kubeBed.ts';
import { type SliceBed, withBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  gate,
  type Manifest,
  testKey,
} from './slice-payload.ts';

interface Driven {
  readonly worker: ReleaseWorker;
  readonly plan: FaultPlan;
  update(digest: string): void;
  /** Milliseconds of the clock when the worker first worked on a digest. */
  readonly takenUp: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

const view = (bed: SliceBed, digest: string): ReleaseView => {
  const read = readRelease({
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: bed.names.release, uid: 'u', generation: 1 },
    spec: { payload: { digest }, source: { configMaps: {} }, approval: { mode: 'never' } },
  });
  if (!read.ok) throw new Error('the view can not be read');
  return read.view;
};

/** A worker by itself, so that only its own requests are counted and hung. */
function drive(bed: SliceBed, gatePollMs: number): Driven {
  const plan = new FaultPlan();
  const { client, transport } = edgeOf(bed.server, { wrap: (inner) => faultTransport(inner, plan) });
  const stop = new AbortController();
  const takenUp = new Map<string, number>();
  const worker = new ReleaseWorker({
    client,
    clock: systemClock,
    random: Math.random,
    release: bed.names.release,
    namespace: bed.system,
    source: inboxSource(client, bed.system),
    retained: retainedStore(client, bed.system),
    domains: [sealDomain(manifestsDomain)],
    options: {
      reconcileMs: 60_000,
      doubtMs: 200,
      backoff: { initialMs: 60_000, factor: 1, maxMs: 60_000, jitter: 0 },
      retain: 3,
      allowUnsigned: false,
      planOnly: false,
    },
    engine: { ...defaultEngineOptions, gatePollMs },
    drift: defaultDriftOptions,
    check: () => undefined,
    releaseOf: () => undefined,
    onDrift: () => undefined,
    onMoved: () => undefined,
    onProblem: () => undefined,
    changed: ({ desired }: WorkerRecord) => {
      if (desired !== undefined && !takenUp.has(desired)) takenUp.set(desired, performance.now());
    },
  });
  const running = worker.run(stop.signal);
  return {
    worker,
    plan,
    takenUp,
    update: (digest) => worker.update(view(bed, digest)),
    async stop() {
      stop.abort();
      plan.clear();
      await running;
      await transport.close();
    },
  };
}

async function payloads(bed: SliceBed): Promise<[BuiltPayload, BuiltPayload]> {
  const { namespace } = bed.names;
  const phases = (value: string, more: readonly Manifest[]) => [
    {
      name: 'one',
      manifests: [{ object: configMap(namespace, 'a', { value }) }, { object: configMap(namespace, 'b', { value }) }],
    },
    {
      name: 'two',
      gates: more.length > 0 ? [gate('WorkloadsReady', 'two')] : [],
      manifests: [{ object: configMap(namespace, 'c', { value }) }, ...more],
    },
  ];
  const key = testKey;
  const first = await buildPayload({
    release: bed.names.release,
    key,
    phases: phases('one', [{ object: deployment(namespace, 'server') }]),
  });
  const second = await buildPayload({ release: bed.names.release, key, phases: phases('two', []) });
  await bed.deliver(first);
  await bed.deliver(second);
  return [first, second];
}

const completed = (driven: Driven, digest: string): boolean =>
  driven.worker.record.history.some((entry) => entry.digest === digest && entry.state === 'Completed');

/** Hangs the n-th request of the first payload's way, then asks for the second. Undefined when there is no n-th. */
async function cancelAt(nth: number): Promise<{ ms: number; at: string } | undefined> {
  let result: { ms: number; at: string } | undefined;
  await withBed(async (bed) => {
    const [first, second] = await payloads(bed);
    const driven = drive(bed, 50);
    try {
      let at = '';
      const match = ({ verb, resource, path }: KubeRequest): boolean => {
        at = `${verb} ${resource || path}`;
        return true;
      };
      let hungAt = '';
      const hits = driven.plan.inject({ match, nth, fault: { kind: 'hang' } });
      driven.update(first.digest);
      await until('the request hangs, or the gate is reached', () => {
        if (hits() > 0 && hungAt === '') hungAt = at;
        return (
          hits() > 0 || (driven.worker.record.outcome.kind === 'waiting' && driven.worker.record.progress !== undefined)
        );
      });
      if (hits() === 0) return;
      const asked = performance.now();
      driven.update(second.digest);
      await until('the second payload is taken up', () => driven.takenUp.has(second.digest));
      result = { ms: (driven.takenUp.get(second.digest) ?? Number.NaN) - asked, at: hungAt };
      driven.plan.clear();
      await until(`the second payload is in place after a hang at ${hungAt}`, () => completed(driven, second.digest));
      const live = await bed.get(`/api/v1/namespaces/${bed.names.namespace}/configmaps/c`);
      assert.equal(live?.data, { value: 'two' });
      assert.not.ok(await bed.get(`/apis/apps/v1/namespaces/${bed.names.namespace}/deployments/server`));
    } finally {
      await driven.stop();
    }
  });
  return result;
}

test('a newer payload cancels the work on the one before from every request that it may wait for, in under a second', async () => {
  let worst = { ms: 0, at: '' };
  let tested = 0;
  for (let next = 1, more = true; more; ) {
    const batch = Array.from({ length: 4 }, () => cancelAt(next++));
    for (const found of await Promise.all(batch)) {
      if (found === undefined) more = false;
      else {
        tested += 1;
        assert.ok(found.ms < 1000, `${found.ms} ms at ${found.at}`);
        if (found.ms > worst.ms) worst = found;
      }
    }
  }
  console.log(`cancelled from ${tested} requests; the slowest took ${worst.ms.toFixed(1)} ms (${worst.at})`);
  assert.ok(tested > 20, `only ${tested} requests were hung`);
});

test('a newer payload cancels the wait for a gate and the pause before a retry', () =>
  withBed(async (bed) => {
    const [first, second] = await payloads(bed);
    const driven = drive(bed, 60_000);
    try {
      driven.update(first.digest);
      await until('the gate is waited for', () => driven.worker.record.outcome.reason === 'Waiting');
      let asked = performance.now();
      driven.update(`sha256:${'3'.repeat(64)}`);
      await until('nothing of that digest has come', () =>
        driven.worker.record.problems.some(({ reason }) => reason === 'PayloadIncomplete'),
      );
      console.log(
        `from the wait for a gate to the end of the next fetch: ${(performance.now() - asked).toFixed(0)} ms`,
      );
      assert.ok(performance.now() - asked < 1000);
      asked = performance.now();
      driven.update(second.digest);
      await until('the second payload is in place', () => completed(driven, second.digest));
      const ms = (driven.takenUp.get(second.digest) ?? Number.NaN) - asked;
      assert.ok(ms < 1000, `${ms} ms`);
    } finally {
      await driven.stop();
    }
  }));

test.run();
