/** Pages of clusters in all conditions, made the way the executor makes them: from objects, and from rounds. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { Observed } from '../../executor/network/evidence.ts';
import type { DrainRow, DrainVerdict, DrainWhy } from '../../executor/observe/drain.ts';
import { matrixOf } from '../../executor/observe/matrix.ts';
import type { NetworkSample } from '../../executor/observe/network.ts';
import { emptyMemory, judgeRound, type Round } from '../../executor/observe/verdict.ts';
import type { Known } from '../../executor/page/page.ts';
import { specOf } from './network-fixture.ts';
import { answer, centralRound, chassisRound, podFacts } from './observe-support.ts';

/** 2026-01-02T03:04:05Z. */
export const moment = Date.UTC(2026, 0, 2, 3, 4, 5);
const ago = (seconds: number): string => `${new Date(moment - seconds * 1000).toISOString().slice(0, 19)}Z`;
const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

export const observedOf = (changes: Partial<Round> = {}, endedTick = 0): Observed => {
  const time = { startedAt: moment - 2_400, endedAt: moment, startedTick: endedTick - 2_400, endedTick };
  const round: Round = {
    time,
    central: centralRound(),
    chassis: chassisRound(),
    peer: { type: 'noProvider' },
    ...changes,
  };
  const installation = { namespace: 'kube-system', name: 'main', uid: 'uid-1' };
  const wanted = { spec: specOf(), installation, chartReplicas: 3, pin: undefined };
  const verdict = judgeRound(round, wanted, emptyMemory);
  return { verdict, limitMs: 60_000, matrix: matrixOf(round) };
};

/** A probe pod whose checks pass, but the first `failed`. */
const networkSample = (n: number, failed = 0): NetworkSample => {
  const client = podFacts('keelson-network-probe', n);
  const checks = (['sameNode', 'nextNode', 'service', 'name'] as const).map((target, at) => ({
    target,
    family: 'IPv4' as const,
    address: `10.16.0.${at + 1}`,
    port: 8080,
    outcome: at < failed ? ('timeout' as const) : ('ok' as const),
    elapsedMs: 3,
  }));
  return { client, outcome: answer('network', client, { addresses: [`10.16.0.${n}`], checks }) };
};

export const networkRound = (size = 3, failed: (n: number) => number = () => 0): NonNullable<Round['network']> => ({
  clients: undefined,
  servers: undefined,
  samples: Array.from({ length: size }, (_, n) => networkSample(n + 1, failed(n + 1))),
  serverPods: [],
  service: undefined,
  changed: [],
});

const condition = (type: string, status: string, reason: string, message: string, seconds = 5_400): JsonObject => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: ago(seconds),
});

/** An installation whose evidence conditions are those of the round. */
export function installationOf(observed: Observed, ready: JsonObject, more: JsonObject = {}): KubeObject {
  const common = [
    ready,
    condition('Available', 'True', 'Serving', 'the network serves pods'),
    condition('Progressing', 'False', 'Completed', 'nothing is left to do'),
    condition('WorkloadsReady', 'True', 'Ready', 'all workloads are ready'),
  ];
  // Rounds of this file see neither the probe nor a record; one that is Ready has seen both.
  const good = (type: string): string => (type === 'Degraded' ? 'False' : 'True');
  const seen = observed.verdict.conditions.map(({ type, status, reason, message }) =>
    ready.status === 'True' && status !== good(type)
      ? condition(type, good(type), 'Verified', 'seen in the last round')
      : condition(type, status, reason, message),
  );
  return {
    apiVersion: 'network.keelson.dev/v1alpha1',
    kind: 'KubeOVNInstallation',
    metadata: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
    status: { phase: 'Ready', observedVersion: '1.16.12', conditions: [...common, ...seen], ...more },
  };
}

export const readyCondition = condition(
  'Ready',
  'True',
  'VerificationComplete',
  'every part was observed and passed in one round',
);

const gate = (type: string, scope: string, state: string, reason: string, message: string): JsonObject => ({
  type,
  scope,
  state,
  reason,
  message,
  since: ago(4_000),
  ...(state === 'True' ? { evidenceTime: ago(3_990) } : {}),
});

const phase = (name: string, state: string, applied: number, total: number, gates: JsonObject[] = []): JsonObject => ({
  name,
  state,
  applied,
  total,
  since: ago(4_100),
  gates,
});

const history = (count: number): JsonObject[] =>
  Array.from({ length: count }, (_, n) => ({
    digest: digest('abcdef'[n % 6] ?? 'a'),
    state: n === 1 ? 'Partial' : 'Completed',
    startedAt: ago(4_300 + n * 86_400),
    ...(n === 1 ? {} : { completedAt: ago(4_000 + n * 86_400) }),
    ...(n === 2 ? { acceptedRisks: 'prune over the brake, approved by plan' } : {}),
  }));

/** The Release of the network, whose third phase waits for `waits` when that is given. */
export function networkRelease(waits?: { gate: string; reason: string; message: string }): KubeObject {
  const done = waits === undefined;
  const gates = [
    gate('WorkloadsReady', 'central', 'True', 'Ready', 'ovn-central is ready'),
    done
      ? gate('OVNDBReady', 'central', 'True', 'MembersAgree', 'both databases agree')
      : gate('OVNDBReady', 'central', 'Unknown', waits.reason, waits.message),
    gate('NorthdReady', 'central', 'True', 'OneActive', 'northd of n1 is active'),
  ];
  return {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { namespace: 'keelson-system', name: 'network-main', uid: 'uid-2', generation: 3 },
    spec: { payload: { digest: digest('a') } },
    status: {
      observedGeneration: 3,
      state: done ? 'Reconciling' : 'Syncing',
      desired: digest('a'),
      actual: done ? digest('a') : digest('b'),
      conditions: [
        done
          ? condition('Ready', 'True', 'Completed', 'everything is applied')
          : condition('Ready', 'Unknown', waits.reason, waits.message),
      ],
      plan: { digest: digest('c'), changeClass: 'versionOnly', counts: { created: 0, configured: 6, unchanged: 61 } },
      sync: {
        step: done ? 'data-plane' : 'central',
        done: done ? 67 : 41,
        total: 67,
        ...(done
          ? {}
          : {
              blocker: {
                gate: waits.gate,
                reason: waits.reason,
                message: waits.message,
                since: ago(185),
                softLimit: '10m0s',
              },
            }),
      },
      phases: [
        phase('definitions', 'Done', 18, 18, [
          gate('Established', 'definitions', 'True', 'Established', 'all definitions are established'),
        ]),
        phase('access', 'Done', 14, 14),
        phase('central', done ? 'Done' : 'Waiting', 9, 9, gates),
        phase('data-plane', done ? 'Done' : 'Pending', done ? 26 : 0, 26, [
          gate('WorkloadsReady', 'data-plane', done ? 'True' : 'Unknown', done ? 'Ready' : 'Pending', 'not begun'),
          gate(
            'DataPlaneReady',
            'data-plane',
            done ? 'True' : 'Unknown',
            done ? 'ChassisConnected' : 'Pending',
            'not begun',
          ),
        ]),
      ],
      history: history(15),
      ledger: { count: 67, digest: digest('d'), configMaps: 1 },
    },
  };
}

/** A Release of plain manifests that has failed and is pinned. */
export const failedRelease = (): KubeObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: {
    namespace: 'keelson-system',
    name: 'manifests-monitoring',
    uid: 'uid-3',
    annotations: { 'keelson.dev/pin': digest('e') },
  },
  status: {
    state: 'Error',
    desired: digest('e'),
    actual: digest('e'),
    conditions: [condition('Ready', 'False', 'Conflict', 'Deployment monitoring/agent: field is held by helm', 900)],
    sync: { step: 'main', done: 11, total: 12 },
    phases: [phase('main', 'Failed', 11, 12, [gate('WorkloadsReady', 'main', 'Unknown', 'Pending', 'not reached')])],
    failures: [
      {
        object: 'apps/Deployment monitoring/agent',
        reason: 'Conflict',
        message: 'spec.replicas is held by manager helm (Apply)',
      },
    ],
    history: history(2),
  },
});

/** Four nodes: two that are being taken away, one of them drained; one that nobody has looked at for long; one at work. */
export function drainRows(): DrainRow[] {
  const why = (reason: string, message: string): DrainWhy => ({ reason, message });
  const row = (node: string, verdict: DrainVerdict, changes: Partial<DrainRow> = {}): DrainRow => ({
    ...{ node, cordoned: true, verdict, seenAt: moment, seenTick: 0, limitMs: 60_000 },
    ...changes,
  });
  const blocked = (...blockers: DrainWhy[]): DrainVerdict => ({ state: 'blocked', blockers, unknown: [] });
  const gateway = why('GatewayActive', 'traffic goes through node n2 as the gateway of cr-out (1 could take over)');
  return [
    row('n1', { state: 'drained' }),
    row('n2', blocked(why('PodsRemain', '2 pods are left on node n2: shop/web-1, shop/web-2'), gateway)),
    row('n3', { state: 'drained' }, { seenTick: -70_000 }),
    row('n4', blocked(why('NodeNotCordoned', 'node n4 is not cordoned')), { cordoned: false, limitMs: 900_000 }),
  ];
}

export const knownOf = (
  installation: KubeObject,
  observed: Observed | undefined,
  releases: readonly KubeObject[],
): Known => ({ since: moment - 7_260_000, installations: [installation], releases, observed: () => observed });
