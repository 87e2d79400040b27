// time limit: 240s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { crashPoints } from '../faults/crash.ts';
import type { KubeRequest } from '../faults/request.ts';
import { type Crash, dieAt, everyN } from './crash-bed.ts';
import { is, type SliceBed, sliceBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  type Manifest,
  namespaceObject,
  testKey,
} from './slice-payload.ts';

/** What a prune writes: the ledger before and after, and the removals. */
const pruning = ({ mutating, verb, name, namespace, resource }: KubeRequest): boolean =>
  mutating &&
  (verb === 'delete' || (resource === 'configmaps' && name?.startsWith('keelson-ledger-') === true)) &&
  resource !== 'leases' &&
  namespace !== undefined;

const account = (namespace: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'goes', namespace },
});

const stays: readonly string[] = ['stays', 'too'];

/** Objects of two phases and four ranks; all of them but two go in the second payload. */
function build({ names }: SliceBed, all: boolean): Promise<BuiltPayload> {
  const { namespace, release } = names;
  const going: Manifest[] = all
    ? [{ object: account(namespace) }, ...['a', 'b'].map((name) => ({ object: configMap(namespace, name) }))]
    : [];
  const late: Manifest[] = all
    ? [{ object: deployment(namespace, 'goes') }, { object: configMap(namespace, 'c') }]
    : [];
  const kept = (name: string): Manifest => ({ object: configMap(namespace, name) });
  return buildPayload({
    release,
    key: testKey,
    phases: [
      { name: 'one', manifests: [...stays.slice(0, 1).map(kept), ...going] },
      { name: 'two', manifests: [...stays.slice(1).map(kept), ...late] },
    ],
  });
}

const inPlace = (bed: SliceBed, built: BuiltPayload) => async (): Promise<void> => {
  await bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 60_000);
};

async function prune(crash: Crash): Promise<{ count: number; died: boolean }> {
  const bed = await sliceBed();
  const { namespace } = bed.names;
  const { admin } = bed.server;
  const spec = { approval: { mode: 'never' } } as const;
  try {
    await admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(namespace) });
    const before = await build(bed, true);
    await bed.deliver(before);
    await bed.applyRelease(before, spec);
    const first = bed.executor();
    await bed.untilStatus('all of it is there', (s) => s.raw.actual === before.digest && s.raw.sync.done === 7, 60_000);
    await first.stop();
    const strangers = await admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: configMap(namespace, 'stranger'),
    });
    const after = await build(bed, false);
    await bed.deliver(after);
    await bed.applyRelease(after, spec);
    const result = await dieAt(bed, crash, inPlace(bed, after));
    const next = bed.executor();
    await inPlace(bed, after)();
    await next.stop();
    const { body } = await admin.expect('GET', `/api/v1/namespaces/${namespace}/configmaps`);
    const names = body.items.map((item: { metadata: { name: string } }) => item.metadata.name).sort();
    assert.equal(names, [...stays, 'stranger'].sort());
    assert.is(
      ((await bed.get(`/api/v1/namespaces/${namespace}/configmaps/stranger`)) as { metadata: JsonObject }).metadata.uid,
      strangers.body.metadata.uid,
    );
    for (const path of [
      `/api/v1/namespaces/${namespace}/serviceaccounts/goes`,
      `/apis/apps/v1/namespaces/${namespace}/deployments/goes`,
    ])
      assert.is(await bed.get(path), undefined, path);
    assert.equal(
      Object.values(await bed.ledger()).map(({ state }) => state),
      ['applied', 'applied'],
    );
    return result;
  } finally {
    await bed.close();
  }
}

const fixed = (bed: SliceBed, value: string): Promise<BuiltPayload> =>
  buildPayload({
    release: bed.names.release,
    key: testKey,
    phases: [
      {
        name: 'one',
        manifests: [
          {
            object: { ...configMap(bed.names.namespace, 'fixed', { value }), immutable: true },
            flags: { recreate: true },
          },
        ],
      },
    ],
  });

/** An object that can not be changed in place: deleted, then created again, by whoever is left to do it. */
async function replace(crash: Crash): Promise<{ count: number; died: boolean }> {
  const bed = await sliceBed();
  const spec = { approval: { mode: 'never' } } as const;
  try {
    await bed.server.admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(bed.names.namespace) });
    const before = await fixed(bed, 'one');
    await bed.deliver(before);
    await bed.applyRelease(before, spec);
    const first = bed.executor();
    await inPlace(bed, before)();
    await first.stop();
    const after = await fixed(bed, 'two');
    await bed.deliver(after);
    await bed.applyRelease(after, spec);
    const result = await dieAt(bed, crash, inPlace(bed, after));
    const next = bed.executor();
    await inPlace(bed, after)();
    await next.stop();
    const path = `/api/v1/namespaces/${bed.names.namespace}/configmaps/fixed`;
    const live = (await bed.get(path)) as { data: JsonObject; metadata: JsonObject };
    assert.equal(live.data, { value: 'two' });
    const [entry] = Object.values(await bed.ledger());
    assert.equal([entry?.state, entry?.uid], ['applied', live.metadata.uid]);
    return result;
  } finally {
    await bed.close();
  }
}

const ofFixed = ({ mutating, name, dryRun }: KubeRequest): boolean => mutating && name === 'fixed' && !dryRun;

test('a replacement converges after a death at its removal and at its creation', async () => {
  for (const at of crashPoints) assert.is(await everyN('replace', replace, ofFixed, at, 3), 2);
});

for (const at of crashPoints)
  test(`a prune converges after a death ${at} of any of its writes, and takes nothing else along`, async () => {
    assert.ok((await everyN('prune', prune, pruning, at, 9)) >= 7);
  });

test.run();
