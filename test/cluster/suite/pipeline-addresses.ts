import * as assert from 'uvu/assert';
import { claimAddress, untilServed } from '../local/addresses.ts';
import type { PipelineBed } from './pipeline-bed.ts';
import { answered, asking, conditionOf, textAt } from './pipeline-look.ts';

/** A tenant's claim is served, and outlives the Service that has the address of it. */
export async function expectAddressOutlivesService({ cluster, look, keelson }: PipelineBed): Promise<void> {
  for (const name of ['manifests-metallb', 'addresses'])
    assert.is(conditionOf(await look.release(name), 'Ready')?.reason, 'Completed', name);
  const tenant = 'somebody';
  const web = { apiVersion: 'v1', kind: 'Service', namespace: 'demo', name: 'web' };
  assert.is(textAt(await look.get(web), '/status/loadBalancer/ingress'), '', 'nobody has claimed an address yet');
  // Whoever may edit in a namespace may claim there.
  await cluster.kubectl(['-n', 'demo', 'create', 'rolebinding', tenant, '--clusterrole=edit', `--user=${tenant}`]);
  await claimAddress(cluster, tenant);
  const first = await untilServed(cluster);
  assert.equal([first.ip, first.claimed], ['203.0.113.0', '203.0.113.0']);
  await cluster.kubectl(['-n', 'demo', 'delete', 'service', 'web']);
  // Git has it, so that it comes back by itself.
  const second = await untilServed(cluster, { before: first });
  assert.equal([second.ip, second.claimed], [first.ip, first.ip]);
  assert.match(await keelson('addresses'), /203\.0\.113\.0 .*demo\/web/);
  // Nobody announces it, but the nodes know where it leads.
  for (const node of cluster.nodes) {
    const script = asking(`http://${second.ip}/`);
    assert.is(await answered(['nsenter', `--net=${node.netns}`, process.execPath, '-e', script]), 'hello from Git\n');
  }
}
