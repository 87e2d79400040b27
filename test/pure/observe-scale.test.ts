/** A thousand nodes with the longest names there are: what is told of them stays small, and says how many more there are. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { limits } from '../../constructs/api/constants.ts';
import type { Condition } from '../../constructs/api/fields.ts';
import { installationStatus as statusSchema } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import { readTopologyRecord, type TopologyRecord, topologyConfigMap } from '../../constructs/api/topology.ts';
import { canonicalJson, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { installationStatus } from '../../executor/network/status.ts';
import type { CentralSample, ChassisSample, Outcome } from '../../executor/observe/round.ts';
import { emptyMemory, judgeRound, type Round } from '../../executor/observe/verdict.ts';
import { installation } from './network-support.ts';
import { networkRound } from './observe-network-support.ts';
import {
  centralRound,
  centralSample,
  chassisRound,
  chassisSample,
  nodeFacts,
  podFacts,
  uuidOf,
} from './observe-support.ts';
import { healthy, probed, wanted } from './observe-verdict-support.ts';

const many = 1_000;
/** As long as a name of a node may be. */
const longName = (n: number): string => `${'n'.repeat(248)}${String(n).padStart(5, '0')}`;

/** Why nobody is reached, by both ways and both ports. */
const unreachable = (n: number): Outcome<'chassis'> => ({
  type: 'Unreachable',
  message: ['10.0.0.1 port 10674: ETIMEDOUT', `port-forward to kube-system/${longName(n)} port 10674: ECONNREFUSED`]
    .flatMap((one) => [one, one])
    .join('; '),
});

function chassisAt(n: number, outcome: Outcome<'chassis'>): ChassisSample {
  const node = longName(n);
  return {
    target: { node, live: nodeFacts(n, { name: node }), pod: podFacts('ovs-ovn', n, { name: node, node }) },
    outcome,
  };
}

function centralAt(n: number): CentralSample {
  const sample = centralSample(n, 3);
  const node = { ...sample.target.node, name: longName(n) };
  const outcome = unreachable(n) as Outcome<'central'>;
  const pod = podFacts('ovn-central', n, { name: longName(n), node: node.name });
  return { ...sample, target: { ...sample.target, node, pod }, first: outcome, second: outcome };
}

/** Of all nodes a fifth is out of reach, a fifth hangs, a fifth is gone, and a fifth was replaced meanwhile. */
function spoilt(): Round {
  const outcomes: ((n: number) => Outcome<'chassis'>)[] = [
    unreachable,
    () => ({ type: 'Hung', limitMs: 10_000 }),
    () => ({ type: 'Broken', message: 'm'.repeat(512) }),
    () => ({ type: 'IdentityChanged', message: 'its pod was replaced' }),
    (n) => chassisSample(n).outcome,
  ];
  const samples = Array.from({ length: many }, (_, n) => chassisAt(n, (outcomes[n % 5] ?? unreachable)(n)));
  const network = networkRound();
  return healthy({
    central: { ...centralRound(), samples: [1, 2, 3].map(centralAt) },
    chassis: { ...chassisRound(), samples },
    network: {
      ...network,
      samples: samples.map(({ target: { pod } }, n) => ({
        client: pod,
        outcome: unreachable(n) as Outcome<'network'>,
      })),
      changed: samples.map(({ target }) => `pod ${target.node}`),
    },
  });
}

const conditionsOf = (status: JsonObject): Condition[] => status.conditions as unknown as Condition[];

test('a message about a thousand nodes names three, counts the others, and loses neither to its limit', () => {
  const { conditions } = judgeRound(spoilt(), wanted, emptyMemory);
  const messageOf = (wantedType: string): string => conditions.find(({ type }) => type === wantedType)?.message ?? '';
  for (const { type, message } of conditions) assert.ok(message.length <= 1_000, `${type} ${message.length}`);
  assert.match(
    messageOf('DataPlaneReady'),
    /; likewise node n+…, node n+…, node n+… and 196 more; besides .* and \d+ more$/,
  );
  assert.match(messageOf('NetworkReady'), 'and 996 more');
  assert.match(messageOf('OVNDBReady'), /; likewise node n/);
});

test('the status of an installation with a thousand nodes that are not well is what its definition allows, and small', () => {
  const verdict = judgeRound(spoilt(), wanted, emptyMemory);
  const observed = { verdict, limitMs: 60_000 };
  const release: KubeObject = {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: 'network-main', generation: 1 },
    status: { observedGeneration: 1 },
  };
  const workloads = { type: 'WorkloadsReady', status: 'True', reason: 'RolledOut', message: 'm' } as const;
  const view = { installation: installation(), spec: probed, release, workloads, planOnly: false, now: 0, tick: 1_000 };
  const status = installationStatus({ ...view, observed, observing: true });
  const parsed = statusSchema.safeParse(status);
  assert.ok(parsed.success, JSON.stringify(parsed.error?.issues));
  assert.match(conditionsOf(status).find(({ type }) => type === 'Ready')?.message ?? '', 'DataPlaneReady: ');
  const bytes = Buffer.byteLength(canonicalJson(status));
  assert.ok(bytes < 16 * 1024, `${bytes} bytes`);
});

test('nodes without a passed check are told by name, twenty of them', () => {
  const samples = Array.from({ length: many }, (_, n) => ({
    client: podFacts('client', n, { node: longName(n), name: longName(n) }),
    outcome: unreachable(n) as Outcome<'network'>,
  }));
  const { network } = judgeRound(healthy({ network: { ...networkRound(), samples } }), wanted, emptyMemory);
  assert.is(network?.missing.length, 20);
  assert.is(network?.nodes, many);
  const status = { observedGeneration: 1, network: { observedAt: '2026-01-01T00:00:00Z', ...network } };
  const parsed = statusSchema.safeParse(status);
  assert.ok(parsed.success, JSON.stringify(parsed.error?.issues));
});

test('the record of the largest OVN central, with everything in it as long as it may be, fits one ConfigMap', () => {
  const server = (n: number) => ({
    serverID: uuidOf(n),
    address: `ssl:[${'f'.repeat(300)}]:6643`,
    listeners: Array.from({ length: 32 }, (_, m) => `pssl:${m}:${'a'.repeat(300)}`),
  });
  const record: TopologyRecord = {
    version: 'keelson.dev/topology/v1',
    installation: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
    workload: { kind: 'Deployment', name: 'ovn-central', uid: 'uid-2' },
    chartReplicas: 9,
    centralAddresses: Array.from({ length: 9 }, (_, n) => `10.0.0.${n}`),
    nb: { clusterID: uuidOf(1) },
    sb: { clusterID: uuidOf(2) },
    members: Array.from({ length: 16 }, (_, n) => ({
      node: { name: longName(n), uid: `node-${n}` },
      storage: { type: 'hostPath', path: `/${'p'.repeat(4_095)}` },
      nb: server(n),
      sb: server(n),
    })),
  };
  const configMap = topologyConfigMap(record, 'keelson-system');
  assert.ok(readTopologyRecord(configMap), 'it is as long as its definition allows');
  const bytes = Buffer.byteLength(canonicalJson(configMap));
  assert.ok(bytes < limits.objectBytes, `${bytes} bytes`);
});

test.run();
