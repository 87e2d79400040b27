// time limit: 180s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { managersOf } from './drift-bed.ts';
import { until } from './kubeBed.ts';
import { bypass, gatesBypassed, type Loose, networkBed, paths, payloadMutations, workshop } from './network-bed.ts';

test('of an installed network the hand on ovn-central is undone in the form bound to this cluster, under both Leases', async () => {
  const shop = await workshop();
  const bed = await networkBed(shop);
  try {
    await bed.deliver(await bed.render());
    bed.playKubelets();
    const executor = await bed.executor({ ...bypass, worker: { reconcileMs: 600_000 } });
    await bed.until(paths.release, 'the network is in place', gatesBypassed, 60_000);
    const watched = (): boolean =>
      executor.plan.requests(({ verb, resource }) => verb === 'watch' && resource === 'deployments').length > 0;
    await until('its Deployments are watched', watched);
    const before = await bed.get(paths.central);
    const owners = before.metadata.ownerReferences;
    assert.is(owners.length, 1, 'the owner is bound by the executor');
    executor.plan.resetLog();
    const { replicas } = before.spec;
    await bed.patch(`${paths.central}/scale`, { spec: { replicas: replicas + 2 } });
    await bed.patch(paths.central, { metadata: { ownerReferences: null } });
    const back = await bed.until(
      paths.central,
      'both are back',
      ({ spec, metadata }: Loose) => spec.replicas === replicas && metadata.ownerReferences?.length === 1,
    );
    assert.equal(back.metadata.ownerReferences, owners);
    assert.equal(managersOf(back), ['keelson Apply']);
    const writes = payloadMutations(executor.plan.log);
    assert.equal([...new Set(writes.map(({ name }) => name))], ['ovn-central']);
    const first = writes[0]?.sequence ?? 0;
    for (const lease of ['keelson-installation-', 'keelson-central-']) {
      const taken = executor.plan
        .mutations()
        .filter(({ resource, name, sequence }) => resource === 'leases' && sequence < first && name?.startsWith(lease));
      assert.ok(taken.length > 0, `${lease} was taken before the first write`);
    }
    assert.equal(executor.plan.violations, []);
    await bed.until(paths.release, 'the release tells as before', gatesBypassed);
    await executor.stop();
  } finally {
    await bed.close();
    await shop.close();
  }
});

test.run();
