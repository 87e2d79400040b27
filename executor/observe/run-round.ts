/**
 * One round: looks whom to ask, asks the members of OVN central twice, every chassis and every probe pod once, looks again
 * whether those are still there, and puts all of it together. Nothing of an earlier round is in it.
 */
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { ProbeTarget } from '../evidence/target.ts';
import { type AskWays, askByEitherWay } from './ask-ways.ts';
import {
  type ClusterLook,
  centralAbsence,
  type ExpectedCentral,
  type ExpectedChassis,
  type ExpectedNetwork,
  expectCentral,
  expectChassis,
  expectNetwork,
  type NetworkNames,
  type PayloadNode,
} from './expect.ts';
import type { PeerObservation } from './hcp.ts';
import { networkQuestion } from './network-question.ts';
import { judgeNorthd } from './northd.ts';
import { judgeDatabases } from './ovndb.ts';
import { type Asked, type AskedBefore, fingerprint, type Pulls, pullPods } from './pull-pods.ts';
import type { CentralRound, CentralSample, ChassisRound, ChassisSample, Outcome, PodFacts, Rollout } from './round.ts';
import type { RecordRead } from './topology-record.ts';
import type { Memory, Round, Wanted } from './verdict.ts';

export interface RoundDeps extends AskWays, Pick<Pulls, 'clock' | 'atOnce' | 'retryMs'> {
  /** What is known of the cluster now; out of watches, so that it costs the API server nothing. */
  readonly look: () => ClusterLook;
  readonly peer: (signal: AbortSignal) => Promise<PeerObservation>;
  readonly record: (signal: AbortSignal) => Promise<RecordRead | undefined>;
  /** Names of the sidecars' containers. */
  readonly containers: { readonly central: string; readonly chassis: string; readonly network: string };
}

export interface RoundInput {
  readonly wanted: Wanted;
  /** Nodes of OVN central in the order of the accepted payload. */
  readonly centralNodes: readonly PayloadNode[];
  readonly networkNames: NetworkNames | undefined;
  readonly memory: Memory;
  readonly before: AskedBefore;
}

export interface RanRound {
  readonly round: Round;
  readonly asked: AskedBefore;
}

/** A look at members that moves is taken again so often, after so long, and not when that would take too long in all. */
const mostPasses = 7;
const settleMs = 800;
const centralBudgetMs = 12_000;

interface Expected {
  readonly central: ExpectedCentral | undefined;
  readonly chassis: ExpectedChassis | undefined;
  readonly network: ExpectedNetwork | undefined;
}

function expectAll({ wanted, centralNodes, networkNames }: RoundInput, look: ClusterLook): Expected {
  const { spec, installation } = wanted;
  const dataPlane = spec.mode !== 'centralOnly';
  return {
    central: spec.mode === 'nodeNetworking' ? undefined : expectCentral(look, installation.uid, centralNodes),
    chassis: dataPlane ? expectChassis(look, installation.uid) : undefined,
    network:
      dataPlane && networkNames !== undefined && spec.networkProbe !== undefined
        ? expectNetwork(look, installation.uid, networkNames)
        : undefined,
  };
}

/** Runs a round. @throws the signal's reason on abort. */
export async function runRound(input: RoundInput, deps: RoundDeps, signal: AbortSignal): Promise<RanRound> {
  const { clock } = deps;
  const [startedAt, startedTick] = [clock.now(), clock.monotonic()];
  const expected = expectAll(input, deps.look());
  const asked = new Map<string, Asked>();
  const [central, chassis, network, peer, record] = await Promise.all([
    expected.central && runCentral(expected.central, input, deps, signal),
    expected.chassis && runChassis(expected.chassis, { ...deps, before: input.before, asked }, signal),
    expected.network && runNetwork(expected.network, input, { ...deps, before: input.before, asked }, signal),
    deps.peer(signal),
    deps.record(signal),
  ]);
  const after = expectAll(input, deps.look());
  const round: Round = {
    time: { startedAt, startedTick, endedAt: clock.now(), endedTick: clock.monotonic() },
    ...(central === undefined ? {} : { central: recheckCentral(central, after.central) }),
    ...(chassis === undefined ? {} : { chassis: recheckChassis(chassis, after.chassis) }),
    ...(network === undefined || expected.network === undefined
      ? {}
      : { network: { ...network, changed: networkChanges(expected.network, after.network) } }),
    peer,
    ...(record === undefined ? {} : { record }),
  };
  return { round, asked };
}

/** A sidecar of a pod as it is asked. */
export const targetOf = <K extends EvidenceKind>(
  kind: K,
  pod: PodFacts,
  container: string,
  question?: string,
): ProbeTarget<K> => ({
  ...(question === undefined ? {} : { question }),
  kind,
  namespace: pod.namespace,
  pod: pod.name,
  podUID: pod.uid,
  node: pod.node,
  container,
  addresses: pod.addresses,
});

async function runCentral(
  expected: ExpectedCentral,
  { wanted, memory }: RoundInput,
  deps: RoundDeps,
  signal: AbortSignal,
): Promise<CentralRound> {
  const { clock } = deps;
  const begun = clock.monotonic();
  const pass = (skip: readonly (Outcome<'central'> | undefined)[]): Promise<Outcome<'central'>[]> =>
    Promise.all(
      expected.targets.map(async (target, n) => {
        const known = skip[n] ?? centralAbsence(target, expected);
        if (known !== undefined) return known;
        if (target.pod === undefined) return { type: 'Unreachable', message: 'its pod is not there yet' };
        return askByEitherWay(deps, targetOf('central', target.pod, deps.containers.central), signal);
      }),
    );
  // Whoever said nothing the first time is not waited for once more.
  const silent = (outcomes: readonly Outcome<'central'>[]) =>
    outcomes.map((outcome) => (outcome.type === 'Evidence' ? undefined : outcome));
  let first = await pass([]);
  let second = await pass(silent(first));
  const roundOf = (): CentralRound => ({
    workload: expected.workload,
    strays: expected.strays,
    samples: expected.targets.map((target, n): CentralSample => {
      const none: Outcome<'central'> = { type: 'Unreachable', message: 'it was not asked' };
      return { target, first: first[n] ?? none, second: second[n] ?? none };
    }),
  });
  for (let passes = 2; passes < mostPasses && isMoving(roundOf(), wanted, memory, clock.monotonic()); passes += 1) {
    if (clock.monotonic() - begun > centralBudgetMs) break;
    await clock.sleep(settleMs, signal);
    first = second;
    second = await pass(silent(first));
  }
  return roundOf();
}

/** Reasons that another look may well not find again: leadership moves in ordinary work, and every northd goes after it. */
const passing: ReadonlySet<string> = new Set([
  'LeaderMoving',
  'MemberElecting',
  'MembersDisagree',
  'MemberLagging',
  'MemberUnlisted',
  'NoLeader',
  'LeaderTwice',
  'NorthdHandover',
  'NorthdDisconnected',
  'EvidenceMoved',
]);

function isMoving(central: CentralRound, { spec }: Wanted, memory: Memory, tick: number): boolean {
  const model = spec.central.database === 'raft' ? 'clustered' : 'standalone';
  const { findings } = judgeDatabases(central, { model, tick }, memory.databases);
  const northd = judgeNorthd(central, tick, memory.northd);
  return [...findings, ...northd.findings].some(({ reason }) => passing.has(reason));
}

const unasked = { type: 'Unreachable', message: 'it was not asked' } as const;

async function runChassis(
  { workloads, targets }: ExpectedChassis,
  pulls: RoundDeps & Pulls,
  signal: AbortSignal,
): Promise<ChassisRound> {
  const outcomes = await pullPods(
    'chassis',
    targets.map(({ pod }) => pod),
    pulls,
    (pod) => targetOf('chassis', pod, pulls.containers.chassis),
    signal,
  );
  const samples = targets.map(
    (target): ChassisSample => ({ target, outcome: outcomes.get(target.pod.uid) ?? unasked }),
  );
  return { workloads, samples, changed: [] };
}

async function runNetwork(
  { clients, servers, clientPods, serverPods, service }: ExpectedNetwork,
  { wanted, networkNames }: RoundInput,
  pulls: RoundDeps & Pulls,
  signal: AbortSignal,
): Promise<Omit<NonNullable<Round['network']>, 'changed'>> {
  const seen = { serverPods, service };
  const questionTo = (client: PodFacts): string | undefined =>
    networkNames === undefined
      ? undefined
      : networkQuestion(seen, client, wanted.spec.networkStack, networkNames.echoPort);
  const outcomes = await pullPods(
    'network',
    clientPods,
    pulls,
    (client) => targetOf('network', client, pulls.containers.network, questionTo(client)),
    signal,
  );
  const samples = clientPods.map((client) => ({ client, outcome: outcomes.get(client.uid) ?? unasked }));
  return { clients, servers, samples, serverPods, service };
}

function movedPod(before: PodFacts | undefined, after: PodFacts | undefined): string | undefined {
  if (before === undefined) return undefined;
  if (after === undefined || after.uid !== before.uid) return 'its pod was replaced';
  return fingerprint(before) === fingerprint(after) ? undefined : 'one of its containers was started anew, or it moved';
}

/** Answers of pods that are no longer the same ones are no answers. */
function recheckCentral(round: CentralRound, after: ExpectedCentral | undefined): CentralRound {
  const samples = round.samples.map((sample): CentralSample => {
    const now = after?.targets.find(({ node }) => node.name === sample.target.node.name);
    const why = movedNode(sample.target.live?.uid, now?.live?.uid) ?? movedPod(sample.target.pod, now?.pod);
    if (why === undefined || sample.second.type !== 'Evidence') return sample;
    return { ...sample, second: { type: 'IdentityChanged', message: why } };
  });
  return { ...round, samples };
}

const movedNode = (before: string | undefined, after: string | undefined): string | undefined =>
  before === after ? undefined : 'its node was replaced';

function recheckChassis(round: ChassisRound, after: ExpectedChassis | undefined): ChassisRound {
  const now = new Map(after?.targets.map((target) => [target.node, target]));
  const samples = round.samples.map((sample): ChassisSample => {
    const next = now.get(sample.target.node);
    const why = movedNode(sample.target.live?.uid, next?.live?.uid) ?? movedPod(sample.target.pod, next?.pod);
    if (why === undefined || sample.outcome.type !== 'Evidence') return sample;
    return { ...sample, outcome: { type: 'IdentityChanged', message: why } };
  });
  return { ...round, samples, changed: workloadChanges(round.workloads, after?.workloads ?? []) };
}

/** A workload that was replaced, or whose specification changed. How far it is rolled out may well change meanwhile. */
function workloadChanges(before: readonly Rollout[], after: readonly Rollout[]): string[] {
  const key = ({ name, uid, generation }: Rollout): string => `${name} ${uid} ${generation}`;
  const kept = new Set(after.map(key));
  return before.filter((one) => !kept.has(key(one))).map(({ kind, name }) => `${kind} ${name}`);
}

function networkChanges(before: ExpectedNetwork, after: ExpectedNetwork | undefined): string[] {
  if (after === undefined) return ['the network probe'];
  const rollouts = ({ clients, servers }: ExpectedNetwork): Rollout[] =>
    [clients, servers].filter((one) => one !== undefined);
  const changed = workloadChanges(rollouts(before), rollouts(after));
  const pods = ({ clientPods, serverPods }: ExpectedNetwork) =>
    new Map([...clientPods, ...serverPods].map((pod) => [pod.name, pod]));
  const [were, are] = [pods(before), pods(after)];
  for (const [name, pod] of were) if (movedPod(pod, are.get(name)) !== undefined) changed.push(`pod ${name}`);
  for (const name of are.keys()) if (!were.has(name)) changed.push(`pod ${name}`);
  const nodes = new Map(after.nodes.map(({ name, uid }) => [name, uid]));
  for (const { name, uid } of before.nodes) if (nodes.get(name) !== uid) changed.push(`node ${name}`);
  if (JSON.stringify(before.service) !== JSON.stringify(after.service))
    changed.push(`Service ${before.service?.name ?? after.service?.name ?? ''}`);
  return changed;
}
