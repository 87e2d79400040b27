// time limit: 240s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { crashPoints } from '../faults/crash.ts';
import type { KubeRequest } from '../faults/request.ts';
import { type Crash, dieAt, everyN } from './crash-bed.ts';
import { managersOf } from './drift-bed.ts';
import { until } from './kubeBed.ts';
import { is, type SliceBed, sliceBed } from './slice-bed.ts';
import { buildPayload, configMap, deployment, namespaceObject, testKey } from './slice-payload.ts';

/** Writes whose order is fixed. Leases and Events are written beside the work, statuses by their own clock. */
const counted = ({ mutating, resource, subresource }: KubeRequest): boolean =>
  mutating && resource !== 'leases' && resource !== 'events' && subresource !== 'status';

const paths = (bed: SliceBed) => {
  const { namespace } = bed.names;
  return {
    server: `/apis/apps/v1/namespaces/${namespace}/deployments/server`,
    deleted: `/api/v1/namespaces/${namespace}/configmaps/deleted`,
    unmarked: `/api/v1/namespaces/${namespace}/configmaps/unmarked`,
  };
};

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
const read = async (bed: SliceBed, path: string): Promise<any> => bed.get(path);

/** Scales, deletes, takes the label away: three ways to drift, one after the other, so that the order of repairs is fixed. */
async function alter(bed: SliceBed): Promise<void> {
  const { admin } = bed.server;
  const { server, deleted, unmarked } = paths(bed);
  const merge = { type: 'application/merge-patch+json', query: { fieldManager: 'kubectl' } };
  await admin.expect('PATCH', `${server}/scale`, { body: { spec: { replicas: 5 } }, ...merge });
  await until('it is scaled back', async () => (await read(bed, server)).spec.replicas === 2, 60_000);
  const { uid } = (await read(bed, deleted)).metadata;
  await admin.expect('DELETE', deleted);
  await until('it is there again and known', async () => known(bed, 'deleted', uid), 60_000);
  await admin.expect('PATCH', unmarked, { body: { metadata: { labels: { 'keelson.dev/release': null } } }, ...merge });
  await until(
    'the label is back',
    async () => (await read(bed, unmarked)).metadata.labels['keelson.dev/release'],
    60_000,
  );
}

/** The last effect is seen before the process that had it dies; only one that lives on answers this. */
async function alive(bed: SliceBed): Promise<void> {
  await bed.annotate('reconcile.fluxcd.io/requestedAt', 'now');
  await bed.untilStatus('it is answered', (s) => s.raw.lastHandledReconcileAt === 'now', 60_000);
}

async function known(bed: SliceBed, name: string, former: string): Promise<boolean> {
  const object = await read(bed, `/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`);
  const entry = (await bed.ledger())[`/ConfigMap/${bed.names.namespace}/${name}`];
  const uid = object?.metadata.uid;
  return uid !== undefined && uid !== former && entry?.uid === uid && entry?.state === 'applied';
}

/** A process that dies once while it sets things back, and another that goes on. */
async function repair(crash: Crash): Promise<{ count: number; died: boolean }> {
  const bed = await sliceBed();
  try {
    const { release, namespace } = bed.names;
    const manifests = [
      namespaceObject(namespace),
      deployment(namespace, 'server'),
      configMap(namespace, 'deleted'),
      configMap(namespace, 'unmarked'),
    ].map((object) => ({ object }));
    const built = await buildPayload({ release, phases: [{ name: 'all', manifests }], key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const first = bed.executor();
    await bed.untilStatus('it is in place', (s) => is(s, 'Ready', 'True'), 60_000);
    await first.stop();
    let done: Promise<void> = Promise.resolve();
    const result = await dieAt(bed, crash, () => {
      done = alter(bed).then(() => alive(bed));
      return done;
    });
    const next = bed.executor();
    await done;
    await until('the ledger knows all', async () =>
      Object.values(await bed.ledger()).every(({ state }) => state === 'applied'),
    );
    await next.stop();
    const { server, deleted, unmarked } = paths(bed);
    for (const path of [server, deleted, unmarked])
      assert.equal(managersOf(await read(bed, path)), ['keelson Apply'], path);
    return result;
  } finally {
    await bed.close();
  }
}

for (const at of crashPoints)
  test(`what drifted is set back after a death ${at} of any write of the repair`, async () => {
    assert.ok((await everyN('repair', repair, counted, at, 7)) >= 5);
  });

test.run();
