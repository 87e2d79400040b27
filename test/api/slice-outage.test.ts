import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { startApiServer } from '../apiserver/server.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, sliceBed } from './slice-bed.ts';
import { buildPayload, configMap, slicePhases, testKey } from './slice-payload.ts';

const silence = (line: string): void => console.error(line);

test('the API server dies in the middle of a phase and while a gate is waited for: work goes on when it is back', async () => {
  const server = await startApiServer({ tools: { onProgress: silence } });
  const bed = await sliceBed(server);
  try {
    const { names, system } = bed;
    const many = Array.from({ length: 40 }, (_, n) => ({ object: configMap(names.namespace, `many-${n}`) }));
    const built = await buildPayload({ release: names.release, phases: slicePhases(names, 'one', many), key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const executor = bed.executor({
      lease: { durationMs: 60_000, renewEveryMs: 1_000, marginMs: 500, retryMs: 100, requestMs: 2_000 },
    });
    await until('some objects are written', () => payloadMutations(executor.plan, system).length > 15);
    await server.kill9();
    await server.restart();
    await bed.untilStatus(
      'the last phase waits',
      (s) => s.raw.phases?.[2]?.state === 'Waiting' && s.raw.phases[2].applied === 44,
      60_000,
    );
    await server.kill9();
    await server.restart();
    await bed.makeReady();
    await bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True'), 60_000);
    const ledger = await bed.ledger();
    assert.is(Object.keys(ledger).length, 52);
    assert.ok(Object.values(ledger).every(({ state, uid }) => state === 'applied' && uid !== undefined));
    const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${names.namespace}/configmaps`, {
      query: { labelSelector: `keelson.dev/release=${names.release}` },
    });
    assert.is(body.items.length, 43);
    assert.equal(executor.plan.violations, []);
  } finally {
    await bed.close();
    await server.stop();
  }
});

test.run();
