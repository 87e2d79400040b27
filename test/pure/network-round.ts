/** A round over the network probe alone: databases are somewhere else, and no chassis is asked. */
import type { Clock } from '../../constructs/lib/clock.ts';
import { type PullOptions, pullEvidence } from '../../executor/evidence/pull.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';
import type { NetworkStack } from '../../executor/observe/network.ts';
import { runRound } from '../../executor/observe/run-round.ts';
import { emptyMemory, judgeRound, type Verdict } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { networkNames } from './observe-look-support.ts';

/** The container that is asked. */
export const networkContainer = 'keelson-network-probe';

interface NetworkRound {
  /** What the API server has. */
  readonly seen: ClusterLook;
  readonly networkStack?: NetworkStack;
  readonly echoPort: number;
  readonly pulling: PullOptions;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function observeNetwork(asked: NetworkRound): Promise<Verdict> {
  const { seen, networkStack, echoPort, pulling, clock, signal } = asked;
  const external = { northbound: 'tcp:192.0.2.1:6641', southbound: 'tcp:192.0.2.1:6642' };
  const networkProbe = { image: 'registry.example.com/probe:1' };
  const stack = networkStack === undefined ? {} : { networkStack };
  const wanted = {
    spec: specOf({ mode: 'nodeNetworking', external, networkProbe, ...stack }),
    installation: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
    chartReplicas: 3,
    pin: undefined,
  };
  const names = { ...networkNames, service: 'keelson-network-probe', echoPort };
  const { round } = await runRound(
    { wanted, centralNodes: [], networkNames: names, memory: emptyMemory, before: new Map() },
    {
      clock,
      atOnce: 4,
      containers: { central: '-', chassis: '-', network: networkContainer },
      look: () => seen,
      peer: async () => ({ type: 'noProvider' }),
      record: async () => undefined,
      ask: (target, stop) => pullEvidence(target, pulling, stop),
    },
    signal,
  );
  return judgeRound(round, wanted, emptyMemory);
}
