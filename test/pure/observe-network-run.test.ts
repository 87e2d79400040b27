import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import { type NetworkQuestion, parseNetworkQuestion } from '../../constructs/api/evidence/question.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';
import type { AskedBefore } from '../../executor/observe/pull-pods.ts';
import { type RanRound, runRound } from '../../executor/observe/run-round.ts';
import { emptyMemory, judgeRound, type Wanted } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { clusterLook, networkNames } from './observe-look-support.ts';
import { answer, chassisFacts } from './observe-support.ts';
import { VirtualClock } from './virtualClock.ts';

const external = { northbound: 'tcp:192.0.2.1:6641', southbound: 'tcp:192.0.2.1:6642' };
const wantedOf = (networkStack?: 'ipv4' | 'dual_stack'): Wanted => ({
  spec: specOf({
    mode: 'nodeNetworking',
    external,
    networkProbe: { image: 'registry.example.com/probe:1' },
    ...(networkStack === undefined ? {} : { networkStack }),
  }),
  installation: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
  chartReplicas: 3,
  pin: undefined,
});

/** Nodes with addresses of their own for clients and servers. */
function look(change: (pod: KubeObject) => KubeObject = (pod) => pod): ClusterLook {
  const seen = clusterLook();
  const pods = seen.pods.map((pod) => {
    const name = pod.metadata.name ?? '';
    const n = name.slice(-1);
    const ip = name.startsWith('server-') ? `10.16.0.${n}` : name.startsWith('client-') ? `10.16.1.${n}` : undefined;
    return change(ip === undefined ? pod : { ...pod, status: { ...pod.status, podIPs: [{ ip }] } });
  });
  return { ...seen, pods };
}

/** A client whose every check is answered by the server of its node's ring that was meant. */
function well({ checks, service }: NetworkQuestion, node: string): NetworkCheck[] {
  assert.equal(service, { namespace: 'kube-system', name: 'probe' });
  const own = checks.find(({ target }) => target === 'sameNode')?.server;
  if (own === undefined) throw new Error(`${node} is asked for no server of its own`);
  return checks.map(({ server = own, ...check }) => ({
    ...check,
    outcome: 'ok',
    answered: server,
    ...(check.target === 'name' ? { resolved: [check.address] } : {}),
    elapsedMs: 1,
  }));
}

interface Ran extends RanRound {
  readonly questions: ReadonlyMap<string, NetworkQuestion>;
}

async function run(looks: readonly ClusterLook[], wanted = wantedOf()): Promise<Ran> {
  const clock = new VirtualClock();
  const questions = new Map<string, NetworkQuestion>();
  const before: AskedBefore = new Map();
  let looked = 0;
  const ran = await runRound(
    { wanted, centralNodes: [], networkNames, memory: emptyMemory, before },
    {
      clock,
      atOnce: 4,
      containers: { central: 'probe', chassis: 'probe', network: 'probe' },
      look: () => looks[Math.min(looked++, looks.length - 1)] ?? look(),
      peer: () => Promise.resolve({ type: 'noProvider' }),
      record: () => Promise.resolve(undefined),
      async ask(target: ProbeTarget) {
        const pod = { ...target, name: target.pod, uid: target.podUID, containers: [] };
        if (target.kind === 'chassis') {
          assert.is(target.question, undefined, 'who looks at what is beside it is told nothing');
          return answer('chassis', pod, chassisFacts(Number(target.node.slice(1)))) as never;
        }
        const question = parseNetworkQuestion(target.question ?? '');
        if (question === undefined) throw new Error(`no question to ${target.node}`);
        questions.set(target.node, question);
        return answer('network', pod, { addresses: [], checks: well(question, target.node) }) as never;
      },
    },
    new AbortController().signal,
  );
  return { ...ran, questions };
}

const networkReady = (ran: RanRound, wanted = wantedOf()) => {
  const found = judgeRound(ran.round, wanted, emptyMemory).conditions.find(({ type }) => type === 'NetworkReady');
  return { head: `${found?.status}/${found?.reason}`, message: found?.message ?? '' };
};

test('P2: each client is asked what it is judged by: its own server, the next of the ring, address and name of the Service', async () => {
  const ran = await run([look()]);
  assert.equal([...ran.questions.keys()].sort(), ['n1', 'n2', 'n3']);
  assert.equal(
    ran.questions
      .get('n3')
      ?.checks.map(({ target, address, server }) => `${target} ${address} ${server?.node ?? 'any'}`),
    ['sameNode 10.16.0.3 n3', 'nextNode 10.16.0.1 n1', 'service 10.96.0.9 any', 'name 10.96.0.9 any'],
  );
  assert.ok(ran.questions.get('n1')?.checks.every(({ port }) => port === networkNames.echoPort));
  assert.equal(networkReady(ran).head, 'True/PacketsDelivered');
});

test('X22: of a family that nobody has nothing is asked, and it is missing all the same', async () => {
  const wanted = wantedOf('dual_stack');
  const ran = await run([look()], wanted);
  assert.ok(ran.questions.get('n1')?.checks.every(({ family }) => family === 'IPv4'));
  const { head, message } = networkReady(ran, wanted);
  assert.is(head, 'False/FamilyMissing');
  assert.match(message, /IPv6/);
  assert.match(message, /node n1/);
});

test('P5: restarts, addresses, nodes, DaemonSets and the Service are looked at again after the last packet', async () => {
  const pod = (name: string, status: (was: KubeObject['status']) => KubeObject['status']) =>
    look((one) => (one.metadata.name === name ? ({ ...one, status: status(one.status) } as KubeObject) : one));
  const seen = look();
  const cases: [string, ClusterLook][] = [
    [
      'pod server-n2',
      pod('server-n2', (was) => ({
        ...was,
        containerStatuses: [{ name: 'main', containerID: 'another', restartCount: 1 }],
      })),
    ],
    ['pod client-n1', pod('client-n1', (was) => ({ ...was, podIPs: [{ ip: '10.16.1.9' }] }))],
    ['pod server-n3', { ...seen, pods: seen.pods.filter(({ metadata }) => metadata.name !== 'server-n3') }],
    [
      'node n2',
      {
        ...seen,
        nodes: seen.nodes.map((node) =>
          node.metadata.name === 'n2' ? { ...node, metadata: { ...node.metadata, uid: 'another' } } : node,
        ),
      },
    ],
    [
      'DaemonSet probe-server',
      {
        ...seen,
        daemonSets: seen.daemonSets.map((one) =>
          one.metadata.name === 'probe-server' ? { ...one, metadata: { ...one.metadata, generation: 2 } } : one,
        ),
      },
    ],
    [
      'Service probe',
      {
        ...seen,
        services: seen.services.map((one) => ({ ...one, spec: { ...one.spec, sessionAffinity: 'ClientIP' } })),
      },
    ],
    ['Service probe', { ...seen, services: [] }],
  ];
  for (const [what, after] of cases) {
    const ran = await run([look(), after]);
    assert.equal(ran.round.network?.changed, [what]);
    const { head, message } = networkReady(ran);
    assert.is(head, 'Unknown/EvidenceMoved', what);
    assert.match(message, what);
  }
});

test.run();
