import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createNodes } from '../apiserver/extras.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';

test('with controllers, scheduler and kwok a deployment becomes available on fake nodes', async () => {
  const server = await startApiServer({ with: ['controllers', 'scheduler', 'kwok'] });
  try {
    await createNodes(
      server.admin,
      [1, 2, 3].map((n) => ({ name: `node-${n}`, address: `172.20.0.${n}`, labels: { pool: 'fake' } })),
    );
    const namespace = await freshNamespace(server.admin, 'plane');
    const image = 'registry.invalid/never-pulled:1';
    const run = (...args: string[]): ReturnType<typeof kubectl> => kubectl(server, ['-n', namespace, ...args]);
    assert.is((await run('create', 'deployment', 'web', `--image=${image}`, '--replicas=3')).code, 0);
    const rollout = await run('rollout', 'status', 'deployment/web', '--timeout=40s');
    assert.is(rollout.code, 0, rollout.stderr);
    const pods = (await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/pods`)).body.items;
    const addresses = new Set(pods.map((pod: { status: { podIP: string } }) => pod.status.podIP));
    assert.is(addresses.size, 3);
    const { items } = (await server.admin.expect('GET', '/api/v1/nodes', { query: { labelSelector: 'pool=fake' } }))
      .body;
    assert.equal(items[0].status.addresses[0], { type: 'InternalIP', address: '172.20.0.1' });
  } finally {
    await server.stop();
  }
});

test.run();
