/** How hard the executor's client presses: seen by a proxy that counts, in front of a real API server. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { eachLimited } from '../../executor/apply/concurrency.ts';
import type { Transport } from '../../executor/kube/transport.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { sharedApiServer } from '../apiserver/shared.ts';
import { startFaultProxy } from '../faults/proxy.ts';
import { configMap, edgeOf } from './kubeBed.ts';

const server = await sharedApiServer();

/** What was under way, at most, since it was last asked; and whether anything began. */
interface Gauge {
  readonly wrap: (inner: Transport) => Transport;
  take(): { readonly most: number; readonly begun: number };
  /** Monotonic times at which requests began. */
  readonly beginnings: number[];
}

function gauge(): Gauge {
  let active = 0;
  let most = 0;
  let begun = 0;
  const beginnings: number[] = [];
  return {
    beginnings,
    wrap: (inner) => async (request) => {
      active += 1;
      begun += 1;
      most = Math.max(most, active);
      beginnings.push(performance.now());
      try {
        return await inner(request);
      } finally {
        active -= 1;
      }
    },
    take() {
      const seen = { most, begun };
      most = active;
      begun = 0;
      return seen;
    },
  };
}

test('the limit grows to sixteen, is halved by a burst of 429, and the pause that the server asks for is kept by all', async () => {
  const proxy = await startFaultProxy(server);
  const seen = gauge();
  const { client, transport } = edgeOf(server, { url: proxy.url, wrap: seen.wrap });
  const namespace = await freshNamespace(server.admin, 'concurrency');
  const write = async (from: number, count: number): Promise<void> => {
    const names = Array.from({ length: count }, (_, n) => `a-${from + n}`);
    await eachLimited(names, 64, async (name) => {
      const outcome = await client.apply(configMap(namespace, name, { a: '1' }), { fieldManager: 'test' });
      assert.ok(outcome.type === 'created' || outcome.type === 'configured', JSON.stringify(outcome));
    });
  };
  try {
    assert.is(client.load().limit, 8);
    await write(0, 300);
    assert.is(client.load().limit, 16);
    assert.is(seen.take().most, 16);

    // Sixteen requests that were sent together are all refused: one cut, not sixteen.
    const isWrite = { verb: 'apply', resource: 'configmaps' } as const;
    const hits = proxy.plan.inject({
      match: isWrite,
      times: 16,
      fault: { kind: 'status', code: 429, retryAfterSeconds: 1 },
    });
    proxy.plan.resetLog();
    seen.beginnings.length = 0;
    const before = performance.now();
    await write(300, 16);
    assert.is(hits(), 16);
    // Every object was sent twice and no more: nobody knocked during the pause.
    assert.is(proxy.plan.count(isWrite), 32);
    const duringPause = seen.beginnings.filter((at, n) => n >= 16 && at - before < 1_000);
    assert.equal(duringPause, []);
    assert.ok(client.load().limit < 16, `${client.load().limit}`);

    // What begins after the burst starts from the half.
    proxy.plan.clear();
    const { most } = seen.take();
    assert.is(most, 16, 'the burst itself');
    await write(316, 8);
    assert.ok(seen.take().most <= client.load().limit);
    await write(324, 300);
    assert.is(client.load().limit, 16);
  } finally {
    await transport.close();
    await proxy.stop();
  }
});

test.run();
