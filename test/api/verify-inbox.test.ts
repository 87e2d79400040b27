import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Transport } from '../../executor/kube/transport.ts';
import { is, type SliceBed, sliceBed } from './slice-bed.ts';
import { buildPayload, configMap, namespaceObject, testKey } from './slice-payload.ts';

/** Courier and executor at one payload at the same time. */

/** Runs `act` once, before the first request that `when` picks. */
const before =
  (when: (path: string) => boolean, act: () => Promise<void>) =>
  (inner: Transport): Transport => {
    let acted: Promise<void> | undefined;
    return async (request) => {
      if (acted === undefined && when(request.path)) acted = act();
      await acted;
      return inner(request);
    };
  };

const maps = (bed: SliceBed): string => `/api/v1/namespaces/${bed.system}/configmaps`;
const held = async (bed: SliceBed, holds: 'payload' | 'retained'): Promise<string[]> => {
  const query = { labelSelector: `keelson.dev/holds=${holds}` };
  const { items } = (await bed.server.admin.expect('GET', maps(bed), { query })).body;
  return items.map((item: { metadata: { name: string } }) => item.metadata.name);
};
const emptyInbox = async (bed: SliceBed): Promise<void> => {
  for (const name of await held(bed, 'payload')) await bed.server.admin.expect('DELETE', `${maps(bed)}/${name}`);
};

const payloadOf = ({ names }: SliceBed) =>
  buildPayload({
    release: names.release,
    key: testKey,
    phases: [
      {
        name: 'base',
        manifests: [{ object: namespaceObject(names.namespace) }, { object: configMap(names.namespace, 'a') }],
      },
    ],
  });

test('an inbox that goes in the middle of an acceptance takes nothing along', async () => {
  const bed = await sliceBed();
  try {
    const built = await payloadOf(bed);
    await bed.deliver(built);
    await bed.applyRelease(built);
    const asked = (path: string): boolean => path.includes('selfsubjectaccessreviews');
    const executor = bed.executor({ wrap: before(asked, () => emptyInbox(bed)) });
    await bed.untilStatus('Ready', (status) => is(status, 'Ready', 'True') && status.raw.actual === built.digest);
    assert.equal(await held(bed, 'payload'), []);
    assert.is((await held(bed, 'retained')).length, 1);
    await executor.stop();
  } finally {
    await bed.close();
  }
});

test('one that goes before it is read is waited for, and taken when it is back', async () => {
  const bed = await sliceBed();
  try {
    const built = await payloadOf(bed);
    await bed.deliver(built);
    await bed.applyRelease(built);
    const reads = (path: string): boolean => path === maps(bed);
    const executor = bed.executor({ wrap: before(reads, () => emptyInbox(bed)) });
    await bed.untilStatus(
      'it is missed',
      (status) => status.condition('Accepted')?.message.includes('no chunk') === true,
    );
    await bed.deliver(built);
    await bed.untilStatus('Ready', (status) => is(status, 'Ready', 'True') && status.raw.actual === built.digest);
    await executor.stop();
  } finally {
    await bed.close();
  }
});

test.run();
