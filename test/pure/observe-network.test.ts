import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import {
  expectedChecks,
  type Family,
  judgeNetwork,
  type NetworkRound,
  type NetworkStack,
  networkUnprobed,
  wantedFamilies,
} from '../../executor/observe/network.ts';
import {
  daemonSet,
  networkClient,
  networkRound,
  networkServer,
  networkService,
  type Spoil,
  unspoilt,
} from './observe-network-support.ts';
import { silences } from './observe-support.ts';

const told = (one: NetworkRound, stack: NetworkStack | undefined = 'dual_stack') => {
  const { condition, view } = judgeNetwork(one, stack);
  return { head: `${condition.status}/${condition.reason}`, message: condition.message, view };
};
/** Spoils one check of node 2. */
const spoilt =
  (target: NetworkCheck['target'], family: Family, change: Partial<NetworkCheck>): Spoil =>
  (check, n) =>
    n === 2 && check.target === target && check.family === family ? { ...check, ...change } : check;

test('P2: every node, family and target is expected: own node, the next of the ring, Service and name', () => {
  const found = told(networkRound());
  assert.is(found.head, 'True/PacketsDelivered');
  assert.is(found.message, '24 of 24 checks from 3 nodes passed by IPv4 and IPv6');
  assert.equal(found.view, { nodes: 3, families: ['ipv4', 'ipv6'], checks: 24, passed: 24, missing: [] });
  const last = expectedChecks(networkRound(), networkClient(3), ['IPv4']);
  assert.equal(
    last.map(({ target, what }) => `${target}: ${what}`),
    [
      'sameNode: the server on node n3',
      'nextNode: the server on node n1',
      'service: the address of Service keelson-network-probe',
      'name: the name of Service keelson-network-probe',
    ],
  );
});

test('P2: a single node has no ring', () => {
  assert.equal(
    expectedChecks(networkRound(1), networkClient(1), ['IPv4']).map(({ target }) => target),
    ['sameNode', 'service', 'name'],
  );
  assert.is(told(networkRound(1)).head, 'True/PacketsDelivered');
});

type Case = readonly [id: string, spoil: Spoil, head: string, ...words: string[]];
const stranger = { namespace: 'kube-system', podUID: 'somebody', node: 'n2' };
const cases: Case[] = [
  [
    'X21 the right answer of another pod',
    spoilt('sameNode', 'IPv4', { answered: stranger }),
    'False/ProbeWrongPeer',
    'IPv4 from node n2 to the server on node n2',
    'pod UID somebody on node n2',
    'wanted pod server-2 with UID server-uid-2 on node n2',
  ],
  [
    'P4 the right pod of another node',
    spoilt('nextNode', 'IPv6', { answered: { namespace: 'kube-system', podUID: 'server-uid-3', node: 'n1' } }),
    'False/ProbeWrongPeer',
    'IPv6 from node n2',
    'on node n1',
  ],
  [
    'P4 an echo that does not fit, as the client says',
    spoilt('service', 'IPv4', { outcome: 'wrongPeer' }),
    'False/ProbeWrongPeer',
    'the address of Service',
    'one of the 3 servers',
  ],
  [
    'P4 an answer that names nobody',
    (check, n) => (n === 2 && check.target === 'service' ? without(check, 'answered') : check),
    'Unknown/EvidenceIncomplete',
    'who answered',
  ],
  [
    'P3 a name that leads elsewhere',
    spoilt('name', 'IPv4', { resolved: ['10.96.0.77'] }),
    'False/ProbeWrongAddress',
    'the name of Service keelson-network-probe leads to 10.96.0.77, wanted 10.96.0.9',
  ],
  [
    'P3 a name that leads nowhere',
    spoilt('name', 'IPv6', { resolved: [] }),
    'False/ProbeWrongAddress',
    'leads to no address',
  ],
  [
    "P2 an address that is not the server's",
    spoilt('sameNode', 'IPv4', { address: '10.16.0.99' }),
    'False/ProbeWrongAddress',
    '10.16.0.99',
  ],
  [
    'P7 no answer',
    spoilt('nextNode', 'IPv4', { outcome: 'timeout', message: 'no answer within 2s' }),
    'False/ProbeFailed',
    'IPv4 from node n2 to the server on node n3 at 10.16.0.3: no answer within 2s',
  ],
  ['P7 refused', spoilt('service', 'IPv6', { outcome: 'refused' }), 'False/ProbeFailed', 'refused'],
  [
    'P2 a check that was not made',
    (check, n) => (n === 2 && check.target === 'nextNode' ? undefined : check),
    'Unknown/EvidenceIncomplete',
    'the check of the server on node n3 by IPv4',
  ],
];

function without(check: NetworkCheck, key: 'answered'): NetworkCheck {
  const copy = { ...check };
  delete copy[key];
  return copy;
}

for (const [id, spoil, head, ...words] of cases)
  test(id, () => {
    const found = told(networkRound(3, spoil));
    assert.is(found.head, head, found.message);
    for (const word of words) assert.match(found.message, word);
    assert.ok((found.view?.missing.length ?? 0) > 0 && found.view?.missing.every((one) => one.startsWith('node n2: ')));
  });

test('X22: both families are wanted, and a node has IPv4 alone: False with node and family', () => {
  const base = networkRound(3, (check, n) => (n === 2 && check.family === 'IPv6' ? undefined : check));
  const only4 = ['10.16.0.2'];
  const spoilt: NetworkRound = {
    ...base,
    serverPods: base.serverPods.map((pod) => (pod.node === 'n2' ? networkServer(2, only4) : pod)),
    samples: base.samples.map((sample) =>
      sample.client.node === 'n2' ? { ...sample, client: networkClient(2, only4) } : sample,
    ),
  };
  const found = told(spoilt);
  assert.is(found.head, 'False/FamilyMissing');
  assert.match(found.message, 'node n2 has no IPv6 address, wanted IPv4 and IPv6');
  assert.ok(found.view?.missing.includes('node n2: IPv6'));
});

test('P6: exactly the families that were asked for; without a word those that are there', () => {
  assert.is(told(networkRound(), 'ipv4').head, 'False/FamilyUnwanted');
  assert.equal(wantedFamilies(networkRound(), undefined), ['IPv4', 'IPv6']);
  const single = networkRound(3, unspoilt, ['IPv4']);
  const four: NetworkRound = {
    ...single,
    service: { ...networkService, addresses: ['10.96.0.9'] },
    serverPods: single.serverPods.map((pod, n) => networkServer(n + 1, [pod.addresses[0] ?? ''])),
    samples: single.samples.map((sample, n) => ({ ...sample, client: networkClient(n + 1, [`10.16.0.${n + 1}`]) })),
  };
  assert.is(judgeNetwork(four, undefined).condition.status, 'True');
  assert.is(told(four, 'ipv4').head, 'True/PacketsDelivered');
  assert.is(told(four, 'dual_stack').head, 'False/FamilyMissing');
});

test('P5: what changed while it was looked at does not count', () => {
  const found = told({ ...networkRound(), changed: ['Service keelson-network-probe'] });
  assert.is(found.head, 'Unknown/EvidenceMoved');
  assert.match(found.message, 'Service keelson-network-probe changed');
});

test('P7: a client that says nothing is Unknown, and nothing of an earlier round is told of it', () => {
  for (const outcome of silences) {
    const base = networkRound();
    const found = told({
      ...base,
      samples: base.samples.map((one) => (one.client.node === 'n3' ? { ...one, outcome: outcome as never } : one)),
    });
    assert.is(found.head.split('/')[0], 'Unknown', outcome.type);
    assert.equal(found.view?.missing, ['node n3: IPv4', 'node n3: IPv6']);
  }
});

test('P1: DaemonSets that are not rolled out, and a probe that is not there, prove nothing', () => {
  assert.is(told({ ...networkRound(), clients: daemonSet('client', 4) }).head, 'Unknown/RolloutInProgress');
  const { service: _gone, ...bare } = networkRound(0);
  assert.is(
    told({ ...bare, service: undefined, clients: undefined, servers: undefined }).head,
    'Unknown/NothingExpected',
  );
});

test('E17: without a probe image NetworkReady stays Unknown', () => {
  const { condition, view } = networkUnprobed();
  assert.is(`${condition.status}/${condition.reason}`, 'Unknown/ProbeNotConfigured');
  assert.is(view, undefined);
});

test.run();
