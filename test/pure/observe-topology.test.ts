import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import {
  readTopologyRecord,
  type TopologyRecord,
  topologyConfigMap,
  topologyDigest,
} from '../../constructs/api/topology.ts';
import type { CentralRound, CentralSample, CentralTarget } from '../../executor/observe/round.ts';
import { judgeTopology, type RecordPin, type RecordRead } from '../../executor/observe/topology-record.ts';
import {
  centralRound,
  centralSample,
  databaseFacts,
  nodeFacts,
  podFacts,
  silences,
  uuidOf,
  withNb,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';

const installation = { namespace: 'kube-system', name: 'main', uid: 'uid-1' };

const judge = (round: CentralRound, pin?: RecordPin, read?: RecordRead, databasesReady = true) =>
  judgeTopology({ round, installation, chartReplicas: 3, databasesReady, pin, read });

function recorded(round = centralRound()): TopologyRecord {
  const { toRecord } = judge(round);
  assert.ok(toRecord);
  return toRecord as TopologyRecord;
}

const record = recorded();
const digest = topologyDigest(record);
const pin: RecordPin = { name: 'keelson-topology-main-x', uid: 'cm-1', digest };
const found: RecordRead = { type: 'found', uid: 'cm-1', held: { record, digest } };
const head = (round: CentralRound, read: RecordRead = found): string => {
  const { condition } = judge(round, pin, read);
  return `${condition.status}/${condition.reason}: ${condition.message}`;
};
/** One member with another target. */
const at =
  (n: number, change: Partial<CentralTarget>) =>
  (m: number): CentralSample | undefined => {
    const sample = centralSample(m, 3);
    return m === n ? { ...sample, target: { ...sample.target, ...change } } : undefined;
  };

test('J1: nothing is recorded before all members were seen to agree; then all of them are', () => {
  const early = judge(centralRound(), undefined, undefined, false);
  assert.is(early.toRecord, undefined);
  assert.is(early.condition.reason, 'TopologyNotRecorded');
  assert.match(early.condition.message, 'the databases are not ready');
  const partial = judge(centralRound(3, withOutcome(2, silences[0] as never)));
  assert.is(partial.toRecord, undefined);
  assert.match(partial.condition.message, 'node n2 (pod ovn-central-2) was not seen whole');
  const first = judge(centralRound());
  assert.is(`${first.condition.status}/${first.condition.reason}`, 'Unknown/TopologyNotRecorded');
  assert.is(first.toRecord?.members.length, 3);
});

test('J1: nothing is recorded while OVN central is rolled out', () => {
  const { workload } = centralRound();
  assert.ok(workload);
  for (const change of [{ updated: 2 }, { ready: 2 }, { generation: 2 }]) {
    const early = judge({ ...centralRound(), workload: { ...(workload as NonNullable<typeof workload>), ...change } });
    assert.is(early.toRecord, undefined);
    assert.match(early.condition.message, 'the rollout of OVN central is under way');
  }
});

test('J2, J3: full ids, RAFT addresses, listeners, nodes, workload and storage are in the record', () => {
  assert.equal(record.members[1], {
    node: { name: 'n2', uid: 'node-2' },
    storage: { type: 'hostPath', path: '/etc/origin/ovn' },
    nb: { serverID: uuidOf(2), address: 'ssl:10.0.0.2:6643', listeners: ['pssl:6641:[10.0.0.2]'] },
    sb: { serverID: uuidOf(102), address: 'ssl:10.0.0.2:6644', listeners: ['pssl:6642:[10.0.0.2]'] },
  });
  assert.is(record.workload.uid, 'ovn-central-uid');
  assert.equal(record.centralAddresses, ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
});

test('J4: the record is an immutable ConfigMap without an owner, named by what it says, that reads back', () => {
  const configMap = topologyConfigMap(record, 'keelson-system');
  const { metadata } = configMap as { metadata: { name: string; ownerReferences?: unknown } };
  assert.is(configMap.immutable, true);
  assert.is(metadata.ownerReferences, undefined);
  assert.is(metadata.name, `keelson-topology-main-${digest.slice(7, 19)}`);
  assert.equal(readTopologyRecord(configMap), { record, digest });
  assert.is(readTopologyRecord({ ...configMap, data: { 'record.json': '{}' } }), undefined);
  assert.is(readTopologyRecord({ ...configMap, data: {} }), undefined);
});

test('J5: every round compares anew: a record alone proves nothing', () => {
  assert.match(head(centralRound()), /^True\/TopologyMatches: 3 members are as keelson-topology-main-x has them/);
  for (const outcome of silences)
    assert.match(
      head(centralRound(3, withOutcome(2, outcome as never))),
      /^Unknown\/TopologyUnconfirmed: .*OVN_Northbound of node n2/,
    );
});

test('J6: a pod whose storage can not be told confirms nothing; one that is away is a matter of the leader', () => {
  assert.match(
    head(centralRound(3, at(2, { storage: undefined }))),
    /^Unknown\/TopologyUnconfirmed: .*the storage of node n2 \(pod ovn-central-2\) could not be told/,
  );
});

test('J6: restarted pods and containers keep the record', () => {
  const pod = podFacts('ovn-central', 2, { name: 'ovn-central-again', uid: 'other', containers: [] });
  assert.match(head(centralRound(3, at(2, { pod }))), /^True/);
});

type Case = readonly [id: string, round: CentralRound, words: string];
const changed = (n: number, changes: Partial<DatabaseFacts>): CentralRound => centralRound(3, withNb(n, changes));
const cases: Case[] = [
  [
    'J7 server id',
    changed(2, { sid: uuidOf(9) }),
    `the server id of OVN_Northbound of node n2 (pod ovn-central-2) is ${uuidOf(9)}, recorded is ${uuidOf(2)}`,
  ],
  ['J7 cluster id', changed(2, { cid: uuidOf(8) }), 'the cluster id of OVN_Northbound'],
  [
    'J7 RAFT address',
    changed(2, { address: 'ssl:[10.0.0.22]:6643' }),
    'is ssl:10.0.0.22:6643, recorded is ssl:10.0.0.2:6643',
  ],
  ['J7 listeners', changed(2, { listeners: ['ptcp:6641'] }), 'the listeners of OVN_Northbound'],
  ['J7 a member that joins anew with another id', changed(2, { status: 'joining', sid: uuidOf(9) }), 'the server id'],
  [
    'J7 node made anew',
    centralRound(3, at(3, { live: nodeFacts(3, { uid: 'again' }) })),
    'UID again, recorded is UID node-3',
  ],
  ['X23 node gone', centralRound(3, at(3, { live: undefined })), 'the node of node n3 (pod ovn-central-3) is gone'],
  [
    'J7 storage',
    centralRound(3, at(1, { storage: { type: 'hostPath', path: '/other' } })),
    'the storage of node n1 (pod ovn-central-1) is hostPath /other, recorded is hostPath /etc/origin/ovn',
  ],
  [
    'J7 workload',
    {
      ...centralRound(),
      workload: { ...(centralRound().workload as NonNullable<CentralRound['workload']>), uid: 'again' },
    },
    'the UID of Deployment ovn-central is again',
  ],
  ['J7 a fourth member', centralRound(4), 'node n4 (pod ovn-central-4) is a member, recorded is none'],
  [
    'J7 a member less',
    { ...centralRound(), samples: centralRound().samples.slice(0, 2) },
    'of node n3 is not asked for any more',
  ],
];
for (const [id, round, words] of cases)
  test(id, () => {
    const text = head(round);
    assert.match(text, /^False\/TopologyChanged/);
    assert.match(text, words);
  });

test('J7: a record that is missing, replaced, changed or can not be read', () => {
  assert.match(head(centralRound(), { type: 'absent' }), 'False/TopologyRecordMissing');
  assert.match(
    head(centralRound(), { ...found, uid: 'cm-2' }),
    'False/TopologyRecordReplaced: the record keelson-topology-main-x has UID cm-2, wanted cm-1',
  );
  assert.match(head(centralRound(), { type: 'found', uid: 'cm-1' }), 'False/TopologyRecordChanged');
  const other = { ...record, chartReplicas: 2 };
  assert.match(
    head(centralRound(), { type: 'found', uid: 'cm-1', held: { record: other, digest: topologyDigest(other) } }),
    'False/TopologyRecordChanged',
  );
  assert.match(head(centralRound(), { type: 'unread', message: 'forbidden' }), 'Unknown/TopologyUnconfirmed');
});

test('J8: indexes, terms and leaders make no other record', () => {
  const later = centralRound(3, (n) =>
    centralSample(n, 3, {
      nb: databaseFacts('nb', n, 3, {
        term: '9',
        index: '900',
        role: n === 2 ? 'leader' : 'follower',
        leading: n === 2,
        leader: n === 2 ? 'self' : '0002',
        log: { first: '2', last: '99', committed: '99', applied: '99', unapplied: '0', uncommitted: '0' },
      }),
    }),
  );
  assert.is(topologyDigest(recorded(later)), digest);
});

test('J9: another topology has a record of another name, so that the old one stays', () => {
  const grown = topologyConfigMap(recorded(centralRound(5)), 'keelson-system') as { metadata: { name: string } };
  assert.is.not(grown.metadata.name, (topologyConfigMap(record, 'keelson-system') as typeof grown).metadata.name);
});

test('X7: a server that does not run is confirmed by the leader; without its word nobody knows', () => {
  assert.match(head(centralRound(3, withoutComponent(3, 'nb', 'refused'))), /^True/);
  assert.match(head(centralRound(3, withoutComponent(3, 'nb', 'timeout'))), /^Unknown\/TopologyUnconfirmed/);
  const away = { type: 'Broken', message: 'no pod of it runs there' } as const;
  assert.match(head(centralRound(3, withOutcome(3, away))), /^True/);
  assert.match(head(centralRound(3, withOutcome(1, away))), /^Unknown\/TopologyUnconfirmed: .*no leader tells of it/);
  const forgotten = centralRound(3, (n) =>
    n === 3 ? withOutcome(3, away)(3) : withNb(n, { members: databaseFacts('nb', n, 2).members })(n),
  );
  assert.match(head(forgotten), 'the leader does not count it as recorded');
});

test.run();
