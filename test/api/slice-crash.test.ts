// time limit: 300s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { crashPoints } from '../faults/crash.ts';
import type { KubeRequest } from '../faults/request.ts';
import { type Crash, dieAt, everyN } from './crash-bed.ts';
import { is, type SliceBed, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, type PhaseInput, slicePhases, testKey } from './slice-payload.ts';

/** Writes whose order is fixed. Leases and Events are written beside the work, statuses by their own clock. */
const counted = ({ mutating, resource, subresource }: KubeRequest): boolean =>
  mutating && resource !== 'leases' && resource !== 'events' && subresource !== 'status';
const statuses = ({ mutating, resource, subresource }: KubeRequest): boolean =>
  mutating && resource === 'releases' && subresource === 'status';

/** The twelve objects, without a gate that somebody would have to open. */
const phasesOf = (bed: SliceBed, value: string, more: readonly string[]): PhaseInput[] =>
  slicePhases(
    bed.names,
    value,
    more.map((name) => ({ object: configMap(bed.names.namespace, name) })),
  ).map((phase) => (phase.name === 'workloads' ? { ...phase, gates: [] } : phase));

const build = (bed: SliceBed, value: string, more: readonly string[] = []): Promise<BuiltPayload> =>
  buildPayload({ release: bed.names.release, phases: phasesOf(bed, value, more), key: testKey });

const liveObjects = async (bed: SliceBed, built: BuiltPayload): Promise<Map<string, JsonObject>> => {
  const found = new Map<string, JsonObject>();
  const { admin } = bed.server;
  const { namespace, group, release } = bed.names;
  const paths = [
    `/api/v1/namespaces`,
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions`,
    `/api/v1/namespaces/${namespace}/serviceaccounts`,
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles`,
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`,
    `/apis/rbac.authorization.k8s.io/v1/clusterroles`,
    `/api/v1/namespaces/${namespace}/configmaps`,
    `/apis/apps/v1/namespaces/${namespace}/deployments`,
    `/apis/apps/v1/namespaces/${namespace}/daemonsets`,
    `/apis/${group}/v1/namespaces/${namespace}/widgets`,
  ];
  for (const path of paths) {
    const { body } = await admin.expect('GET', path, { query: { labelSelector: `keelson.dev/release=${release}` } });
    for (const item of body.items) found.set(item.metadata.annotations['keelson.dev/id'], item);
  }
  assert.is(found.size, built.payload.objects.size, `live: ${[...found.keys()].join(' ')}`);
  return found;
};

/** Everything is there once, as the payload says, written by us alone, and the ledger knows it by its UID. */
async function assertConverged(bed: SliceBed, built: BuiltPayload, value: string): Promise<void> {
  const live = await liveObjects(bed, built);
  const ledger = await bed.ledger();
  assert.equal(Object.keys(ledger).sort(), [...built.payload.objects.keys()].sort());
  for (const [id, entry] of Object.entries(ledger)) {
    assert.is(entry.state, 'applied', id);
    assert.is(entry.uid, (live.get(id)?.metadata as JsonObject | undefined)?.uid, id);
    assert.is(entry.payload, built.digest, id);
  }
  assert.equal((live.get(`/ConfigMap/${bed.names.namespace}/settings`) as JsonObject).data, { value });
}

const inPlace = (bed: SliceBed, built: BuiltPayload) => async (): Promise<void> => {
  await bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 60_000);
};

/** A first install that dies once and is taken over. */
async function install(crash: Crash): Promise<{ count: number; died: boolean }> {
  const bed = await sliceBed();
  try {
    const built = await build(bed, 'one');
    await bed.deliver(built);
    await bed.applyRelease(built);
    const result = await dieAt(bed, crash, inPlace(bed, built));
    const next = bed.executor();
    await inPlace(bed, built)();
    await next.stop();
    await assertConverged(bed, built, 'one');
    return result;
  } finally {
    await bed.close();
  }
}

/** A change (one edited, one new, one pruned) that dies once and is taken over. */
async function change(crash: Crash): Promise<{ count: number; died: boolean }> {
  const bed = await sliceBed();
  try {
    const before = await build(bed, 'one', ['leaves']);
    await bed.deliver(before);
    await bed.applyRelease(before);
    const first = bed.executor();
    await inPlace(bed, before)();
    await first.stop();
    const after = await build(bed, 'two', ['comes']);
    await bed.deliver(after);
    await bed.applyRelease(after);
    const result = await dieAt(bed, crash, inPlace(bed, after));
    const next = bed.executor();
    await inPlace(bed, after)();
    await next.stop();
    await assertConverged(bed, after, 'two');
    return result;
  } finally {
    await bed.close();
  }
}

for (const at of crashPoints) {
  test(`a first install converges after a death ${at} of any write`, async () => {
    assert.ok((await everyN('install', install, counted, at)) >= 18);
  });
  test(`a change converges after a death ${at} of any write`, async () => {
    assert.ok((await everyN('change', change, counted, at)) >= 6);
  });
}

test('a death at a write of the status changes nothing about that', async () => {
  for (const at of crashPoints) for (const nth of [1, 2, 3, 5, 8]) await install({ nth, at, match: statuses });
});

test.run();
