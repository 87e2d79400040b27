/** Clients and servers of the network probe as processes, asked by the executor's own end over mutual TLS, round after round. */
import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { questionLimits } from '../../constructs/api/evidence/question.ts';
import { pullEvidence } from '../../executor/evidence/pull.ts';
import { directWay } from '../../executor/evidence/way.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';
import type { NetworkStack } from '../../executor/observe/network.ts';
import type { Verdict } from '../../executor/observe/verdict.ts';
import { executorBed, tokenOf } from './evidence-bed.ts';
import { networkProcesses, type ProbePod } from './network-processes.ts';
import { networkContainer as container, observeNetwork } from './network-round.ts';
import { clusterLook } from './observe-look-support.ts';

const test = suite('network probe process');
const bed = await executorBed();
const trust = await bed.believe([await bed.newAuthority('first')]);
const run = await networkProcesses('kube-system');
const signal = new AbortController().signal;
test.after(async () => {
  await run.close();
  await bed.stop();
});

const podOf = (part: 'client' | 'server', n: number, addresses: readonly string[]): ProbePod => ({
  name: `${part}-n${n}`,
  uid: `00000000-0000-4000-8000-00000000000${part === 'client' ? n : n + 4}`,
  node: `n${n}`,
  addresses,
});
const subjectOf = (pod: ProbePod) => ({
  namespace: 'kube-system',
  pod: pod.name,
  podUID: pod.uid,
  node: pod.node,
  container,
  nodeBootID: '',
});

/** What the API server has: these pods, and the Service at these addresses. */
function look(pods: readonly ProbePod[], clusterIPs: readonly string[], nodes: number): ClusterLook {
  const seen = clusterLook(nodes);
  return {
    ...seen,
    pods: seen.pods.flatMap((pod) => {
      const here = pods.find(({ name }) => name === pod.metadata.name);
      if (here === undefined) return [];
      const status = { ...pod.status, podIPs: here.addresses.map((ip) => ({ ip })) };
      return [{ ...pod, metadata: { ...pod.metadata, uid: here.uid }, status }];
    }),
    services: seen.services.map((one) => ({
      ...one,
      metadata: { ...one.metadata, name: 'keelson-network-probe' },
      spec: { clusterIPs: [...clusterIPs] },
    })),
  };
}

const pulling = bed.pulling([], {
  ways: ({ addresses }) => addresses.slice(0, 1).map((address) => directWay(address, 2_000)),
  ports: ({ podUID }) => [run.evidencePorts.get(podUID) ?? 0],
  limitMs: 20_000,
});

async function ready(seen: ClusterLook, wanted: string, stack?: NetworkStack): Promise<Verdict & { message: string }> {
  const { clock } = bed;
  const networkStack = stack === undefined ? {} : { networkStack: stack };
  const verdict = await observeNetwork({ seen, ...networkStack, echoPort: run.echoPort, pulling, clock, signal });
  const found = verdict.conditions.find(({ type }) => type === 'NetworkReady');
  assert.is(`${found?.status}/${found?.reason}`, wanted, found?.message ?? '');
  return { ...verdict, message: found?.message ?? '' };
}

async function client(pod: ProbePod): Promise<ChildProcess> {
  bed.know(subjectOf(pod));
  return run.ask(pod, { token: tokenOf(subjectOf(pod)), authorities: trust.authorities });
}

const gateway = '127.0.0.13';
const [serverA, serverB] = [podOf('server', 1, ['127.0.0.11']), podOf('server', 2, ['127.0.0.12'])];
const [clientA, clientB] = [podOf('client', 1, ['127.0.0.21']), podOf('client', 2, ['127.0.0.22'])];
const both = look([serverA, serverB, clientA, clientB], [gateway], 2);
let processB: ChildProcess;
let processA: ChildProcess;

test('P2: two nodes: both servers are asked from both sides, and the Service by address and name', async () => {
  processA = await client(clientA);
  const [, second] = await Promise.all([
    run.serve(serverA),
    run.serve(serverB),
    run.serve(serverB, [gateway]),
    client(clientB),
  ]);
  processB = second;
  run.dns.names.set(run.serviceName, [gateway]);
  const { network } = await ready(both, 'True/PacketsDelivered', 'ipv4');
  assert.equal(network, { nodes: 2, families: ['ipv4'], checks: 8, passed: 8, missing: [] });
});

test('P6 X22: a family that was asked for and is not there is named with its node', async () => {
  const { message } = await ready(both, 'False/FamilyMissing', 'dual_stack');
  assert.match(message, /IPv6/);
  assert.match(message, /node n1/);
});

test('P2: both families of one node, where there is no ring', async () => {
  const dual = podOf('server', 3, ['127.0.0.31', '::1']);
  const asking = podOf('client', 3, ['127.0.0.33', '::1']);
  const addresses = [gateway, '::1'];
  const server = await run.serve(dual);
  const process = await client(asking);
  run.dns.names.set(run.serviceName, addresses);
  const seen = look([dual, asking], addresses, 3);
  const alone = {
    ...seen,
    daemonSets: seen.daemonSets.map((one) => ({
      ...one,
      status: { observedGeneration: 1, desiredNumberScheduled: 1, updatedNumberScheduled: 1, numberReady: 1 },
    })),
  };
  // The IPv4 address of the Service leads to a server that is none of this installation.
  const { network, message } = await ready(alone, 'False/ProbeWrongPeer', 'dual_stack');
  assert.match(message, serverB.uid);
  assert.equal([network?.checks, network?.passed], [6, 4]);
  const own = await run.serve(dual, ['127.0.0.14']);
  run.dns.names.set(run.serviceName, ['127.0.0.14', '::1']);
  const right = {
    ...alone,
    services: alone.services.map((one) => ({ ...one, spec: { clusterIPs: ['127.0.0.14', '::1'] } })),
  };
  assert.is((await ready(right, 'True/PacketsDelivered', 'dual_stack')).network?.passed, 6);
  await Promise.all([server, process, own].map((child) => run.stop(child)));
  run.dns.names.set(run.serviceName, [gateway]);
});

test('P3: a name that leads elsewhere, one that leads nowhere, and a resolver that says nothing', async () => {
  run.dns.names.set(run.serviceName, ['127.0.0.99']);
  assert.match((await ready(both, 'False/ProbeWrongAddress')).message, /127\.0\.0\.99/);
  run.dns.names.delete(run.serviceName);
  assert.match((await ready(both, 'False/ProbeFailed')).message, /has no IPv4 address/);
  run.dns.silent = true;
  assert.match((await ready(both, 'False/ProbeFailed')).message, /DNS: no answer/);
  run.dns.silent = false;
  run.dns.names.set(run.serviceName, [gateway]);
  await ready(both, 'True/PacketsDelivered');
});

test('a server that hangs is named, and the other checks are answered', async () => {
  processB.kill('SIGSTOP');
  const { network, message } = await ready(both, 'False/ProbeFailed');
  assert.match(message, /the server on node n2.*no answer/);
  assert.is(network?.passed, 6);
  processB.kill('SIGCONT');
  await ready(both, 'True/PacketsDelivered');
});

test('X21: a healthy server that is another pod makes NetworkReady False', async () => {
  await run.stop(processB);
  assert.match((await ready(both, 'False/ProbeFailed')).message, /ECONNREFUSED/);
  const impostor = await run.serve({ ...serverB, uid: '00000000-0000-4000-8000-0000000000ff' });
  const { message } = await ready(both, 'False/ProbeWrongPeer');
  assert.match(message, /0000000000ff/);
  assert.match(message, serverB.uid);
  await run.stop(impostor);
  processB = await run.serve(serverB);
  await ready(both, 'True/PacketsDelivered');
});

test('nothing is asked without a question that can be read, and none that is too large is', async () => {
  const target = { ...subjectOf(clientA), kind: 'network' as const, addresses: clientA.addresses };
  for (const more of [{}, { question: '{}' }]) {
    const outcome = await pullEvidence({ ...target, ...more }, pulling, signal);
    if (outcome.type !== 'Evidence') throw new Error(JSON.stringify(outcome));
    assert.is(outcome.evidence.complete, false);
    assert.equal(
      outcome.evidence.problems.map(({ component, code }) => `${component} ${code}`),
      ['checks protocol'],
    );
  }
  const large = await pullEvidence({ ...target, question: ' '.repeat(questionLimits.bytes + 1) }, pulling, signal);
  assert.match(JSON.stringify(large), /Unreadable.*413/);
});

test('client and server stay within their memory', async () => {
  for (const [what, child] of [
    ['client', processA],
    ['server', processB],
  ] as const) {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    const peak = Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]);
    console.log(`network ${what}: ${(peak / 1024).toFixed(1)} MiB at most`);
    assert.ok(peak < 64 * 1024, `${what}: ${peak} KiB`);
  }
});

test.run();
