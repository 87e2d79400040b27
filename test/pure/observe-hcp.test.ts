import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  judgePeer,
  needsPeer,
  type OwnHalf,
  type PeerInstallation,
  type PeerObservation,
  type PeerReport,
} from '../../executor/observe/hcp.ts';
import { emptyMemory, judgeRound } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { chassisFacts, chassisRound, chassisSample } from './observe-support.ts';
import { time } from './observe-verdict-support.ts';

type Hcp = OwnHalf['spec']['hcp'];
const northbound = 'ssl:10.0.0.1:6641';
const southbound = 'ssl:10.0.0.1:6642';
const half = (role: 'central' | 'dataPlane', peerNamespace: string): NonNullable<Hcp> => ({
  enabled: true,
  role,
  peerNamespace,
  tlsSecretRef: { name: 'pair-tls' },
  northbound,
  southbound,
});
const own: OwnHalf = {
  namespace: 'tenant',
  name: 'main',
  spec: specOf({ mode: 'nodeNetworking', hcp: half('dataPlane', 'hosted') }),
};
const peer = (
  changes: Partial<PeerInstallation> = {},
  hcp: Partial<NonNullable<Hcp>> = {},
  version = 'v1.16.13',
): PeerInstallation => ({
  namespace: 'hosted',
  name: 'central',
  uid: 'peer-1',
  spec: specOf({ mode: 'centralOnly', version, hcp: { ...half('central', 'tenant'), ...hcp } }),
  ...changes,
});
const secret = { name: 'pair-tls', uid: 'secret-1', resourceVersion: '7' };
const report = (changes: Partial<PeerReport> = {}): PeerReport => ({
  secretBefore: secret,
  secretAfter: secret,
  certificate: { type: 'valid' },
  peers: [peer()],
  endpoints: [
    { endpoint: northbound, result: { type: 'served', schemas: ['OVN_Northbound', '_Server'] } },
    { endpoint: southbound, result: { type: 'served', schemas: ['OVN_Southbound', '_Server'] } },
  ],
  ...changes,
});
const judge = (changes: Partial<PeerReport> = {}) => judgePeer(own, { type: 'observed', report: report(changes) });

test('Q1: a pair whose halves name each other, of one version, with both databases served', () => {
  const { condition, view } = judge();
  assert.is(`${condition.status}/${condition.reason}`, 'True/PeerVerified');
  assert.equal(view?.peer, { namespace: 'hosted', name: 'central', uid: 'peer-1', version: 'v1.16.13' });
  assert.equal(
    view?.endpoints.map(({ reachable }) => reachable),
    [true, true],
  );
});

type Case = readonly [id: string, changes: Partial<PeerReport>, head: string, ...words: string[]];
const nb = (result: PeerReport['endpoints'][number]['result']): Partial<PeerReport> => ({
  endpoints: [{ endpoint: northbound, result }, ...report().endpoints.slice(1)],
});
const cases: Case[] = [
  ['X19 missing peer', { peers: [] }, 'False/PeerMissing', 'namespace hosted'],
  ['X19 peer of another namespace', { peers: [peer({ namespace: 'elsewhere' })] }, 'False/PeerMissing'],
  [
    'Q1 a peer that names another',
    { peers: [peer({}, { peerNamespace: 'other' })] },
    'False/PeerNotReciprocal',
    'KubeOVNInstallation hosted/central names the peer namespace other, wanted tenant',
  ],
  [
    'Q1 two that name this one',
    { peers: [peer(), peer({ name: 'second', uid: 'peer-2' })] },
    'False/PeerAmbiguous',
    '2 installations',
  ],
  [
    'Q1 the same role',
    { peers: [peer({}, { role: 'dataPlane' })] },
    'False/PeerRoleWrong',
    'has the role dataPlane, wanted central',
  ],
  [
    'X19 another version',
    { peers: [peer({}, {}, '1.15.0')] },
    'False/PeerVersionDiffers',
    'has version 1.15.0, wanted 1.16.13',
  ],
  ['Q2 no Secret', { secretBefore: undefined }, 'False/PeerSecretMissing', 'pair-tls'],
  [
    'X19 Secret rotated between look and answer',
    { secretAfter: { ...secret, resourceVersion: '8' } },
    'Unknown/PeerSecretRotated',
    'UID secret-1 at 7',
    'UID secret-1 at 8',
  ],
  ['Q4 Secret made anew', { secretAfter: { ...secret, uid: 'secret-2' } }, 'Unknown/PeerSecretRotated'],
  [
    'Q4 another Secret than was named',
    { secretBefore: { ...secret, name: 'x' }, secretAfter: { ...secret, name: 'x' } },
    'Unknown/PeerSecretRotated',
  ],
  [
    'Q6 neither set of keys',
    { certificate: { type: 'keysMissing' } },
    'False/PeerSecretKeysMissing',
    'cacert, cert and key',
  ],
  [
    'Q6 a certificate that can not be read',
    { certificate: { type: 'invalid', message: 'not PEM' } },
    'False/PeerCertificateInvalid',
    'not PEM',
  ],
  [
    'X19 expired certificate',
    { certificate: { type: 'outside', notBefore: 0, notAfter: 86_400_000 } },
    'False/PeerCertificateExpired',
    'from 1970-01-01T00:00:00.000Z to 1970-01-02T00:00:00.000Z',
  ],
  [
    'X19 wrong CA',
    nb({ type: 'untrusted', message: 'unable to verify the first certificate' }),
    'False/PeerUntrusted',
    northbound,
  ],
  [
    'Q7 an endpoint that does not answer',
    nb({ type: 'unreachable', message: 'timeout' }),
    'Unknown/PeerEndpointUnreachable',
    northbound,
    'timeout',
  ],
  [
    'Q7 somebody listens there, and it is another database',
    nb({ type: 'served', schemas: ['_Server'] }),
    'False/PeerSchemaDiffers',
    'serves _Server, wanted OVN_Northbound',
  ],
  [
    'Q7 a database that is listed while its server has joined no cluster, or has lost it',
    nb({ type: 'served', schemas: ['OVN_Northbound', '_Server'], unconnected: ['OVN_Northbound'] }),
    'Unknown/PeerEndpointUnreachable',
    'OVN_Northbound is not connected to its cluster',
  ],
  [
    'Q7 an endpoint that nobody asked',
    { endpoints: report().endpoints.slice(1) },
    'Unknown/PeerEndpointUnreachable',
    'it was not asked',
  ],
];
for (const [id, changes, head, ...words] of cases)
  test(id, () => {
    const { condition, view } = judge(changes);
    assert.is(`${condition.status}/${condition.reason}`, head, condition.message);
    for (const word of words) assert.match(condition.message, word);
    // What was told of an earlier look is cleared.
    assert.is(view, undefined);
  });

test('X19: everything that does not fit has a reason of its own', () => {
  const reasons = cases.filter(([id]) => id.startsWith('X19') && !id.includes('namespace')).map(([, , head]) => head);
  assert.is(new Set(reasons).size, reasons.length);
});

test('Q2: no provider fails closed; one that has not looked yet, or could not, leaves it Unknown', () => {
  const head = (observation: PeerObservation): string => {
    const { condition } = judgePeer(own, observation);
    return `${condition.status}/${condition.reason}`;
  };
  assert.is(head({ type: 'noProvider' }), 'False/PeerProviderMissing');
  assert.is(head({ type: 'pending' }), 'Unknown/PeerPending');
  assert.is(head({ type: 'failed', message: 'forbidden' }), 'Unknown/EvidenceIncomplete');
});

test('9.4: nodes of a pair that wait for the version of northd are judged by what the SB of the other half tells', () => {
  const spec = specOf({ mode: 'nodeNetworking', hcp: half('dataPlane', 'hosted') });
  const wanted = {
    spec,
    installation: { namespace: 'tenant', name: 'main', uid: 'u' },
    chartReplicas: 3,
    pin: undefined,
  };
  const head = (northdVersion: string | undefined, peers = [peer()]): string => {
    const sb = { type: 'served', schemas: ['OVN_Southbound', '_Server'] } as const;
    const endpoints = [
      ...report().endpoints.slice(0, 1),
      { endpoint: southbound, result: { ...sb, ...(northdVersion && { northdVersion }) } },
    ];
    const chassis = chassisRound(3, (n) => {
      const { ovsdb } = chassisFacts(n);
      return chassisSample(n, { ...(ovsdb && { ovsdb: { ...ovsdb, matchNorthdVersion: true } }) });
    });
    const round = { time: time(), chassis, peer: { type: 'observed', report: report({ endpoints, peers }) } } as const;
    const found = judgeRound(round, wanted, emptyMemory).conditions.find(({ type }) => type === 'DataPlaneReady');
    return `${found?.status}/${found?.reason}`;
  };
  assert.is(head('25.03.1-20.41.0-78.8'), 'True/ChassisConnected');
  assert.is(head('24.03.5-20.33.0-70.6'), 'False/ChassisFrozen');
  assert.is(head(undefined), 'Unknown/EvidenceIncomplete');
  // The word of a half that does not fit says nothing.
  assert.is(head('25.03.1-20.41.0-78.8', []), 'Unknown/EvidenceIncomplete');
});

const told = (northdVersion?: string): PeerReport['endpoints'] => {
  const [nbEndpoint, sbEndpoint] = report().endpoints as [PeerReport['endpoints'][0], PeerReport['endpoints'][0]];
  const sb = { ...sbEndpoint.result, ...(northdVersion === undefined ? {} : { northdVersion }) };
  return [nbEndpoint, { endpoint: southbound, result: sb as typeof sbEndpoint.result }];
};
/** Databases outside of any pair, as nobody but they themselves tells of them. */
function outside(scheme: 'ssl' | 'tcp', changes: Partial<PeerReport> | PeerObservation = {}) {
  const plain = (endpoint: string): string => endpoint.replace('ssl:', `${scheme}:`);
  const external = { northbound: plain(northbound), southbound: plain(southbound) };
  const spec = specOf({ mode: 'nodeNetworking', external });
  assert.ok(needsPeer(spec));
  const ovnTLS = scheme === 'ssl' ? { ...secret, name: 'kube-ovn-tls' } : undefined;
  const endpoints = told('25.03.1-20.41.0-78.8');
  const seen = { ...report({ peers: [], secretBefore: ovnTLS, secretAfter: ovnTLS, endpoints }), ...changes };
  const at = seen.endpoints.map((one) => ({ ...one, endpoint: plain(one.endpoint) }));
  const observation: PeerObservation =
    'type' in changes ? changes : { type: 'observed', report: { ...seen, endpoints: at } };
  const { condition, view } = judgePeer({ ...own, spec }, observation);
  assert.is(view, undefined, 'there is no pair to tell of');
  return { head: `${condition.status}/${condition.reason}`, message: condition.message };
}

test('E16: databases outside of a pair are evidence by what they tell themselves: which, of what cluster, and whose northd', () => {
  assert.not(needsPeer(specOf()));
  for (const scheme of ['ssl', 'tcp'] as const) {
    const { head, message } = outside(scheme);
    assert.is(head, 'True/PeerVerified', message);
    assert.match(message, '25.03.1-20.41.0-78.8');
    assert.is(outside(scheme, { endpoints: told() }).head, 'Unknown/EvidenceIncomplete');
    assert.is(outside(scheme, { endpoints: [] }).head, 'Unknown/PeerEndpointUnreachable');
    assert.is(
      outside(scheme, nb({ type: 'served', schemas: ['OVN_Northbound'], unconnected: ['OVN_Northbound'] })).head,
      'Unknown/PeerEndpointUnreachable',
    );
    assert.is(outside(scheme, nb({ type: 'served', schemas: ['OVN_Southbound'] })).head, 'False/PeerSchemaDiffers');
    assert.is(outside(scheme, { type: 'pending' }).head, 'Unknown/PeerPending');
    assert.is(outside(scheme, { type: 'failed', message: 'x' }).head, 'Unknown/EvidenceIncomplete');
    const unseen = outside(scheme, { type: 'noProvider' });
    assert.is(unseen.head, 'Unknown/PeerEvidenceMissing');
    assert.match(unseen.message, `at ${scheme}:10.0.0.1:6641 and ${scheme}:10.0.0.1:6642`);
  }
});

test('E16: with TLS the keys count as those of a pair do', () => {
  const ovnTLS = { ...secret, name: 'kube-ovn-tls' };
  assert.is(outside('ssl', { secretBefore: undefined }).head, 'False/PeerSecretMissing');
  assert.is(outside('ssl', { secretAfter: { ...ovnTLS, resourceVersion: '8' } }).head, 'Unknown/PeerSecretRotated');
  assert.is(outside('ssl', { certificate: { type: 'keysMissing' } }).head, 'False/PeerSecretKeysMissing');
  assert.is(outside('tcp', { certificate: { type: 'keysMissing' } }).head, 'True/PeerVerified');
});

test.run();
