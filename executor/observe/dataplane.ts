/**
 * DataPlaneReady: on every node that carries Open vSwitch the node is Ready, ovs-vswitchd runs its bridge, ovn-controller is
 * connected to SB and changes flows, and the chassis is the one that it was, and nobody else's. Pure.
 */
import type { ChassisFacts } from '../../constructs/api/evidence/chassis.ts';
import { cut } from '../../constructs/lib/cut.ts';
import { broken, chassisName, type Finding, type Judged, judge, missing, open, silence } from './finding.ts';
import type { Registry } from './registry.ts';
import type { ChassisRound, ChassisSample, Rollout } from './round.ts';

/** One chassis as it was told last, and until when a change of it is told; on the clock that never jumps. */
export interface ChassisMemory {
  readonly systemID: string;
  readonly was?: string;
  readonly until?: number;
  /** Whether SB did not know it in the last round that told. */
  readonly unlisted?: boolean;
}

/** By UID of the node: a node that is made anew has a right to another chassis. Under its name while it is gone. */
export type DataPlaneMemory = Readonly<Record<string, ChassisMemory>>;

export interface JudgedDataPlane extends Judged {
  readonly memory: DataPlaneMemory;
}

/** A chassis that became another one is told for so long; pods of the node hang on what was lost. */
const changeToldMs = 600_000;

export interface DataPlaneRules {
  readonly tick: number;
  /** Bridge that carries the pods. */
  readonly bridge: string;
  /** Version of northd as SB tells it; undefined while it is not known. */
  readonly northd: string | undefined;
  /** Images of the daemons of OVN central; empty where they are not known. */
  readonly images?: readonly string[];
  /** What SB knows of chassis; absent where SB is none of this installation's. */
  readonly registry?: Registry;
}

/** Judges a round against what was told of the same nodes before. */
export function judgeDataPlane(round: ChassisRound, rules: DataPlaneRules, memory: DataPlaneMemory): JudgedDataPlane {
  const next: Record<string, ChassisMemory> = {};
  const findings: Finding[] = twins(round.samples);
  for (const what of round.changed) findings.push(open('EvidenceMoved', what, { message: 'the round counts no more' }));
  for (const sample of round.samples) {
    const { node, live } = sample.target;
    const key = live?.uid ?? `${byName}${node}`;
    const known = continued(sample, memory[key], rules.tick);
    const unlisted = isUnlisted(sample, rules.registry) ?? memory[key]?.unlisted ?? false;
    if (known !== undefined) next[key] = { ...known, ...(unlisted ? { unlisted } : {}) };
    findings.push(...nodeFindings(sample), ...chassisFindings(sample, rules, known));
    if (unlisted) findings.push(...unlistedFindings(sample, rules.registry, memory[key]?.unlisted === true));
  }
  carryOver(next, memory);
  // Whoever asked no SB knows of no chassis that it stands there.
  if (rules.registry?.unseen === true && round.samples.length > 0)
    findings.push(
      open('EvidenceIncomplete', 'the data plane', {
        component: 'what SB knows of its chassis',
        message: 'no member of OVN central tells it',
      }),
    );
  // What the nodes say themselves is more exact than a count of ready pods.
  if (findings.length === 0) findings.push(...rolloutFindings(round));
  const ready = round.samples.length;
  const good = {
    reason: 'ChassisConnected',
    message: `${ready} of ${ready} chassis are connected and run ${rules.bridge}`,
  };
  return { ...judge('DataPlaneReady', findings, good), memory: next };
}

/** The rollout of the DaemonSets, and that there is a pod for each node that they want one on. */
function rolloutFindings({ workloads, samples }: ChassisRound): Finding[] {
  const nothing = (message: string): Finding[] => [open('NothingExpected', 'the data plane', { message })];
  if (workloads.length === 0) return nothing('its DaemonSet does not exist');
  const wanted = workloads.reduce((sum, { desired }) => sum + desired, 0);
  const short = workloads.flatMap((workload) => {
    const why = shortfall(workload);
    return why === undefined ? [] : [open('RolloutInProgress', `${workload.kind} ${workload.name}`, why)];
  });
  if (short.length > 0) return short;
  if (wanted <= 0) return nothing('its DaemonSet wants no pod');
  if (samples.length >= wanted) return [];
  return [open('RolloutInProgress', 'the data plane', { has: samples.length, wanted, what: 'nodes have a pod' })];
}

function shortfall(workload: Rollout): { has: number; wanted: number; what: string } | undefined {
  const { desired: wanted, updated, ready, generation, observedGeneration } = workload;
  if (observedGeneration < generation)
    return { has: observedGeneration, wanted: generation, what: 'is the generation that its controller has seen' };
  if (updated < wanted) return { has: updated, wanted, what: 'nodes have the updated pod' };
  return ready < wanted ? { has: ready, wanted, what: 'nodes have a ready pod' } : undefined;
}

function nodeFindings({ target }: ChassisSample): Finding[] {
  const about = chassisName(target);
  const { live, pod } = target;
  if (live === undefined) return [broken('NodeGone', about, { pod: pod.name })];
  if (live.ready === 'False') return [broken('NodeNotReady', about)];
  // A kubelet that has stopped telling anything is out of reach; whether the node works is not known.
  return live.ready === 'Unknown'
    ? [open('EvidenceUnreachable', about, { message: 'its kubelet tells nothing any more' })]
    : [];
}

const factsOf = ({ outcome }: ChassisSample): ChassisFacts | undefined =>
  outcome.type === 'Evidence' ? outcome.evidence.facts : undefined;

const byName = 'name ';
/** More nodes than a cluster has; beyond it nothing is kept of those that have no pod now. */
const mostKept = 10_000;

/** Keeps what is known of nodes without a pod: one that is made anew is away for a moment, and may come back as another chassis. */
function carryOver(next: Record<string, ChassisMemory>, memory: DataPlaneMemory): void {
  let kept = Object.keys(next).length;
  for (const [key, { unlisted: _unlisted, ...known }] of Object.entries(memory)) {
    if (key in next || key.startsWith(byName) || kept >= mostKept) continue;
    next[key] = known;
    kept += 1;
  }
}

/** What is known of a chassis after this round. One that said nothing stays as it was. */
function continued(sample: ChassisSample, before: ChassisMemory | undefined, tick: number): ChassisMemory | undefined {
  const systemID = factsOf(sample)?.ovsdb?.systemID;
  if (systemID === undefined || systemID === '') return before;
  if (before === undefined) return { systemID };
  if (before.systemID !== systemID) {
    // Whoever takes the old identity up again has undone the change.
    if (before.was === systemID) return { systemID };
    return { systemID, was: before.systemID, until: tick + changeToldMs };
  }
  return before.until !== undefined && before.until > tick ? before : { systemID };
}

/** Whether SB lacks the chassis of a node; undefined where that can not be told. */
function isUnlisted(sample: ChassisSample, registry: Registry | undefined): boolean | undefined {
  const facts = factsOf(sample);
  // One that is not connected is told as that.
  if (registry?.names === undefined || facts?.ovsdb === undefined || facts.controller?.connected !== true)
    return undefined;
  return !registry.names.has(facts.ovsdb.systemID);
}

/** Missing once may be a chassis that comes; what all members miss once more is none. */
function unlistedFindings(sample: ChassisSample, registry: Registry | undefined, again: boolean): Finding[] {
  const systemID = factsOf(sample)?.ovsdb?.systemID;
  const seen = isUnlisted(sample, registry) === true && registry?.complete === true;
  const make = seen && again ? broken : open;
  return [
    make('ChassisUnlisted', chassisName(sample.target), {
      member: systemID === undefined ? 'of it' : cut(systemID, 64),
    }),
  ];
}

function chassisFindings(sample: ChassisSample, rules: DataPlaneRules, known: ChassisMemory | undefined): Finding[] {
  const { outcome, target } = sample;
  const about = chassisName(target);
  const silent = silence(outcome, about);
  if (silent !== undefined || outcome.type !== 'Evidence') return [silent ?? open('RoundPending', about)];
  const { ovsdb, controller, vswitchd } = outcome.evidence.facts;
  const findings: Finding[] = [];
  if (ovsdb === undefined) findings.push(missing(outcome.evidence, 'ovsdb', about));
  else findings.push(...ovsdbFindings(ovsdb, about, known));
  if (vswitchd === undefined) findings.push(missing(outcome.evidence, 'vswitchd', about));
  else if (!vswitchd.bridge.inVswitchd || vswitchd.bridge.name !== rules.bridge)
    findings.push(broken('BridgeMissing', about, { wanted: rules.bridge }));
  if (controller === undefined) findings.push(missing(outcome.evidence, 'controller', about));
  else findings.push(...controllerFindings(controller, ovsdb, about, { ...rules, image: target.image }));
  return findings;
}

function ovsdbFindings(
  facts: NonNullable<ChassisFacts['ovsdb']>,
  about: string,
  known: ChassisMemory | undefined,
): Finding[] {
  const findings: Finding[] = [];
  if (facts.encaps.length === 0) findings.push(broken('EncapMissing', about));
  if (known?.was !== undefined)
    findings.push(broken('ChassisIDChanged', about, { observed: known.systemID, wanted: known.was }));
  return findings;
}

function controllerFindings(
  facts: NonNullable<ChassisFacts['controller']>,
  ovsdb: ChassisFacts['ovsdb'],
  about: string,
  { northd, images = [], image }: DataPlaneRules & { readonly image: string | undefined },
): Finding[] {
  const findings: Finding[] = [];
  if (!facts.connected)
    findings.push(broken('ChassisDisconnected', about, { wanted: ovsdb?.remote ?? 'the address that it was given' }));
  if (facts.paused === true) findings.push(broken('ChassisPaused', about));
  const frozen = isFrozen(facts, ovsdb, northd);
  const observed = facts.version ?? 'of a version that it does not tell';
  if (frozen === true) findings.push(broken('ChassisFrozen', about, { observed, wanted: northd ?? 'another one' }));
  const unknown =
    frozen === undefined
      ? 'one of the two versions is not known'
      : ovsdb?.matchNorthdVersion === true && frozen === false && images.some((one) => isOtherBuild(one, image))
        ? 'OVN central runs another image of the same release'
        : undefined;
  if (unknown !== undefined)
    findings.push(
      open('EvidenceIncomplete', about, {
        component: 'the pace of ovn-controller',
        message: `it follows only a northd of its own version, and ${unknown}`,
      }),
    );
  return findings;
}

/**
 * Whether two images of one repository differ. Builds of one release differ in what ovn-controller compares and does not tell;
 * images of two repositories may well hold the same build.
 */
function isOtherBuild(one: string, other: string | undefined): boolean {
  if (other === undefined || one === other) return false;
  const repository = (image: string): string => image.replace(/@[^@]*$/, '');
  return repository(one) === repository(other);
}

/**
 * Whether ovn-controller has stopped because northd is of another version, in which it still says that it is connected;
 * undefined where that can not be told. The version that northd tells begins with that of its release.
 */
function isFrozen(
  facts: NonNullable<ChassisFacts['controller']>,
  ovsdb: ChassisFacts['ovsdb'],
  northd: string | undefined,
): boolean | undefined {
  if (facts.frozenByNorthdMatch !== undefined) return facts.frozenByNorthdMatch;
  if (ovsdb?.matchNorthdVersion !== true) return false;
  const [own] = /[0-9]+\.[0-9]+\.[0-9]+/.exec(facts.version ?? '') ?? [];
  if (own === undefined || northd === undefined) return undefined;
  return !northd.startsWith(`${own}-`) && northd !== own;
}

/** Two nodes with one identity push one another's ports away. */
function twins(samples: readonly ChassisSample[]): Finding[] {
  const found = (what: string, idOf: (facts: NonNullable<ChassisFacts['ovsdb']>) => string | undefined): Finding[] => {
    const nodes = new Map<string, string[]>();
    for (const sample of samples) {
      const facts = factsOf(sample)?.ovsdb;
      const id = facts === undefined ? undefined : idOf(facts);
      if (id !== undefined && id !== '') nodes.set(id, [...(nodes.get(id) ?? []), chassisName(sample.target)]);
    }
    return [...nodes]
      .filter(([, names]) => names.length > 1)
      .map(([id, names]) =>
        broken('ChassisIDTwice', names.toSorted()[0] ?? '', {
          observed: cut(names.toSorted().join(' and '), 300),
          what,
          member: id,
        }),
      );
  };
  return [
    ...found('system-id', ({ systemID }) => systemID),
    ...found('chassis UUID', ({ chassisUUID }) => chassisUUID),
  ];
}
