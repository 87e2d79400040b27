import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { is, payloadMutations, sliceBed } from './slice-bed.ts';
import { buildPayload, slicePhases, testKey } from './slice-payload.ts';

test('twelve objects in three phases: accepted, written down, written, gated, told; then edited and pruned', async () => {
  const bed = await sliceBed();
  try {
    const { names, system } = bed;
    const first = await buildPayload({ release: names.release, phases: slicePhases(names), key: testKey });
    await bed.deliver(first);
    await bed.release(first);
    const executor = bed.executor();
    const waiting = await bed.untilStatus(
      'the gate of the last phase is waited for',
      (s) => s.raw.sync?.blocker?.gate === 'WorkloadsReady(workloads)',
    );
    assert.is(waiting.condition('Ready')?.status, 'Unknown');
    await bed.makeReady();
    const done = await bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True'));
    assert.is(done.raw.state, 'Reconciling');
    console.log(JSON.stringify(executor.plan.counts(), undefined, 1));
    assert.is(payloadMutations(executor.plan, system).length, 12);
    assert.is(Object.keys(await bed.ledger()).length, 12);
  } finally {
    await bed.close();
  }
});

test.run();
