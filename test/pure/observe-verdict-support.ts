import * as assert from 'uvu/assert';
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { topologyDigest } from '../../constructs/api/topology.ts';
import { emptyMemory, judgeRound, type Round, type Verdict, type Wanted } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { networkRound } from './observe-network-support.ts';
import { centralRound, chassisRound } from './observe-support.ts';

/** A whole installation that is well, what is wanted of it, and rounds about it. */

const installation = { namespace: 'kube-system', name: 'main', uid: 'uid-1' };
export const probed: InstallationSpec = specOf({
  networkStack: 'dual_stack',
  networkProbe: { image: 'registry.example.com/probe:1' },
});

export const time = (n = 0): Round['time'] => ({
  startedAt: n * 10_000,
  startedTick: n * 10_000,
  endedAt: n * 10_000 + 500,
  endedTick: n * 10_000 + 500,
});
const unpinned: Wanted = { spec: probed, installation, chartReplicas: 3, pin: undefined };
const bare = (changes: Partial<Round> = {}): Round => ({
  time: time(),
  central: centralRound(),
  chassis: chassisRound(),
  network: networkRound(),
  peer: { type: 'noProvider' },
  ...changes,
});

/** A record of the healthy round, as status pins it. */
const held = (() => {
  const { toRecord } = judgeRound(bare(), unpinned, emptyMemory);
  assert.ok(toRecord);
  const record = toRecord as NonNullable<typeof toRecord>;
  return { record, digest: topologyDigest(record) };
})();
export const wanted: Wanted = {
  ...unpinned,
  pin: { name: 'keelson-topology-main-x', uid: 'cm-1', digest: held.digest },
};
export const healthy = (changes: Partial<Round> = {}): Round =>
  bare({ record: { type: 'found', uid: 'cm-1', held }, ...changes });

export const statuses = ({ conditions }: Pick<Verdict, 'conditions'>): Record<string, DomainCondition['status']> =>
  Object.fromEntries(conditions.map(({ type, status }) => [type, status]));
export const well = {
  OVNDBReady: 'True',
  NorthdReady: 'True',
  DataPlaneReady: 'True',
  NetworkReady: 'True',
  TopologyRecorded: 'True',
  Degraded: 'False',
};
