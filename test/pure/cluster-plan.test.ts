import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressPlan, freePlan, overlaps } from '../cluster/addresses.ts';
import { optionProblems } from '../cluster/plan.ts';

test('ranges overlap when one holds an address of the other', () => {
  assert.ok(overlaps('172.31.0.0/16', '172.31.4.0/24'));
  assert.ok(overlaps('172.31.4.7', '172.31.4.0/24'));
  assert.ok(overlaps('0.0.0.0/0', '10.1.0.0/16'));
  assert.not.ok(overlaps('172.31.3.0/24', '172.31.4.0/24'));
  assert.not.ok(overlaps('10.128.0.0/16', '10.129.0.0/16'));
});

test('a cluster gets the first ranges that meet no route of the host', () => {
  assert.is(freePlan([]).slot, 0);
  assert.is(freePlan(['172.31.0.0/24']).slot, 1);
  assert.is(freePlan(['172.31.0.0/24', '10.129.3.0/24']).slot, 2);
  assert.is(freePlan(['192.168.0.0/16', '127.0.0.0/8']).slot, 0);
  assert.throws(() => freePlan(['172.31.0.0/16']), /all 64 address ranges/);
});

test('nodes and pods of different clusters never share an address', () => {
  const plans = Array.from({ length: 64 }, (_, slot) => addressPlan(slot));
  const ranges = plans.flatMap((plan) => [`${plan.bridgeAddress}/${plan.prefixLength}`, plan.podCIDR]);
  assert.is(new Set(ranges).size, 128);
  for (const plan of plans) {
    const nodes = Array.from({ length: 9 }, (_, index) => plan.node(index + 1));
    assert.is(new Set(nodes.map((node) => node.address)).size, 9);
    assert.is(new Set(nodes.map((node) => node.tunnelAddress)).size, 9);
    for (const node of nodes) {
      assert.not.ok(overlaps(node.tunnelAddress, `${plan.bridgeAddress}/${plan.prefixLength}`));
      assert.ok(overlaps(node.podCIDR, plan.podCIDR));
      assert.ok(overlaps(node.address, `${plan.bridgeAddress}/${plan.prefixLength}`));
      assert.not.ok(overlaps(node.podCIDR, plan.serviceCIDR));
    }
  }
});

test('every unusable option is named', () => {
  assert.equal(optionProblems({}), []);
  assert.is(optionProblems({ name: 'Not a label', nodes: 0 }).length, 2);
  assert.is(optionProblems({ name: 'a'.repeat(41), nodes: 10 }).length, 2);
});

test.run();
