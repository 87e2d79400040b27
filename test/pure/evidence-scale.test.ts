// time limit: 90s
/** Rounds over two hundred evidence servers with TLS and enrolment, of which some hang and some are not there. */
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { probeContainers } from '../../constructs/api/constants.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import { type PullOptions, pullEvidence } from '../../executor/evidence/pull.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { directWay, type Way } from '../../executor/evidence/way.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { Observer } from '../../executor/network/observer.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { executorBed } from './evidence-bed.ts';
import { loopbackOf, type Member, startFleet } from './evidence-fleet.ts';
import { installation } from './network-support.ts';
import { clusterLook } from './observe-look-support.ts';

const test = suite('evidence at scale');
const size = 200;
const atOnce = 16;
const hangs = (n: number): boolean => n % 20 === 0;
const refuses = (n: number): boolean => n % 50 === 7;
const [hanging, refusing] = [size / 20, size / 50];

const bed = await executorBed();
await bed.believe([await bed.newAuthority('first')]);
/** Pods as the API server has them, at addresses of this host. */
const look = clusterLook(size);
look.pods = look.pods.filter(({ metadata }) => metadata.name?.startsWith('ovs-ovn-') === true);
const members = look.pods.map((pod, n): Member & { readonly n: number } => {
  const { name = '', uid = '', namespace = '' } = pod.metadata;
  const node = String(pod.spec?.nodeName);
  const subject = { namespace, pod: name, podUID: uid, node, container: probeContainers.chassis, nodeBootID: 'boot' };
  bed.know(subject);
  return { n, subject, address: loopbackOf(n), token: `token-of-${uid}`, manner: hangs(n) ? 'hangs' : 'answers' };
});
look.pods = look.pods.map((pod, n) => ({ ...pod, status: { ...pod.status, podIPs: [{ ip: loopbackOf(n) }] } }));
const fleet = await startFleet({
  directory: join(bed.directory, 'fleet'),
  authoritiesFile: bed.authoritiesFile,
  members: members.filter(({ n }) => !refuses(n)),
  ports: [0],
  latencyMs: 50,
});
test.after(async () => {
  await fleet.stop();
  await bed.stop();
});

interface Counts {
  readonly outcomes: Map<string, Outcome<EvidenceKind>>;
  readonly retried: string[];
  asked: number;
  most: number;
}

/** An executor's end that counts; its API server is never called. */
function observe(rounds: number) {
  const calls: string[] = [];
  const counts: Counts[] = [];
  let [running, counted] = [0, { asked: 0, most: 0, outcomes: new Map(), retried: [] } as Counts];
  const pulling: PullOptions = bed.pulling([], {
    limitMs: 4_000,
    ways: ({ addresses: [address = ''] }) => [directWay(address, 1_000)],
    // Where nobody listens there is no port to be known; that one is closed.
    ports: ({ addresses: [address = ''] }) => [fleet.ports.get(address) ?? 1],
  });
  const noKubelet: Way = async (port) => ({ type: 'unreachable', message: `port-forward to port ${port}: no kubelet` });
  const ask = async <K extends EvidenceKind>(target: ProbeTarget<K>, signal: AbortSignal): Promise<Outcome<K>> => {
    const now = counted;
    now.asked += 1;
    running += 1;
    now.most = Math.max(now.most, running);
    const outcome = await pullEvidence(target, pulling, signal);
    running -= 1;
    now.outcomes.set(target.node, outcome);
    return outcome;
  };
  const stop = new AbortController();
  const observer = new Observer({
    client: new Proxy({}, { get: (_none, verb) => () => calls.push(String(verb)) }) as KubeClient,
    clock: bed.clock,
    namespace: 'keelson-system',
    look: () => look,
    atOnce,
    openEveryMs: 10,
    log: (_level, message) => calls.push(message),
    source: {
      containers: { central: 'keelson-probe', chassis: probeContainers.chassis, network: 'keelson-network-probe' },
      ask,
      async retry(target, signal) {
        counted.retried.push(target.node);
        return pullEvidence(target, { ...pulling, ways: () => [noKubelet] }, signal);
      },
    },
  });
  const external = { northbound: 'tcp:10.0.0.1:6641', southbound: 'tcp:10.0.0.1:6642' };
  const one = installation({ mode: 'nodeNetworking', external });
  // Asked for what is to be observed at the begin of each round.
  const begin = (): (typeof one)[] => {
    if (counted.asked > 0) counts.push(counted);
    counted = { asked: 0, most: 0, outcomes: new Map(), retried: [] };
    if (counts.length === rounds) stop.abort();
    return counts.length === rounds ? [] : [one];
  };
  return { calls, counts, observer, run: () => observer.run(begin, () => undefined, stop.signal) };
}

test('each is asked once a round, sixteen at a time; who hangs and who is not there is told apart; the API server is not called', async () => {
  const bench = observe(2);
  await bench.run();
  assert.is(bench.counts.length, 2);
  for (const { asked, most, outcomes, retried } of bench.counts) {
    assert.is(asked, size);
    assert.is(outcomes.size, size);
    assert.is(most, atOnce);
    const kinds = Map.groupBy(outcomes.values(), ({ type }) => type);
    assert.equal(
      Object.fromEntries([...kinds].map(([type, { length }]) => [type, length])),
      { Evidence: size - hanging - refusing, Hung: hanging, Unreachable: refusing },
      JSON.stringify([...outcomes.values()].find(({ type }) => type === 'Untrusted' || type === 'Unreadable')),
    );
    assert.is(retried.length, refusing);
  }
  for (const { n, address, manner } of members.filter((one) => !refuses(one.n)))
    assert.is(fleet.asked.get(address), 2, `${manner} ${n}`);
  // Enrolment has a token reviewed, once for each probe; a round asks nothing of the API server.
  assert.is(bed.reviewed.length, size - hanging - refusing);
  assert.equal(bench.calls, []);
});

test.run();
