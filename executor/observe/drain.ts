/**
 * Whether a node could be taken away: from what the daemons of the node say, what the API server has on it, and what others
 * know of it. It is told and authorises nothing. What was not looked at leaves the answer open, and never makes a node
 * drained. Pure.
 */
import type { FactsOf } from '../../constructs/api/evidence.ts';
import { reasonMessage } from '../../constructs/api/reasons.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import type { NodeLoad } from './drain-load.ts';
import { broken, type Finding, open, ordered, silence, told } from './finding.ts';
import type { NodeFacts, Outcome } from './round.ts';

/** What the API server told of a node's pods and volumes; `unread`: it did not. */
export type LoadRead =
  | { readonly type: 'read'; readonly load: NodeLoad }
  | { readonly type: 'unread'; readonly message: string };

/** Everything that one look at a node saw. */
export interface DrainLook {
  readonly node: string;
  /** The node of that name now; undefined when it is gone. */
  readonly live: NodeFacts | undefined;
  readonly host: Outcome<'drain'>;
  /** Undefined: not asked for, as pods may come to the node anyway. */
  readonly load: LoadRead | undefined;
  /** What others know of the node: what is broken blocks, what is open leaves the answer open. */
  readonly others: readonly Finding[];
}

/** A blocker in the words of the table of reasons. */
export type DrainWhy = Pick<Finding, 'reason' | 'message'>;

export type DrainVerdict =
  | { readonly state: 'drained' }
  /** Something was seen that would be lost. What could not be seen is told besides. */
  | { readonly state: 'blocked'; readonly blockers: readonly DrainWhy[]; readonly unknown: readonly DrainWhy[] }
  | { readonly state: 'unknown'; readonly unknown: readonly DrainWhy[] };

export function judgeDrain(look: DrainLook): DrainVerdict {
  const findings = ordered([...nodeFindings(look), ...loadFindings(look), ...hostFindings(look), ...look.others]);
  const of = (weight: Finding['weight']): DrainWhy[] =>
    findings.filter((one) => one.weight === weight).map(({ reason, message }) => ({ reason, message }));
  const [blockers, unknown] = [of('broken'), of('open')];
  if (blockers.length > 0) return { state: 'blocked', blockers, unknown };
  return unknown.length > 0 ? { state: 'unknown', unknown } : { state: 'drained' };
}

const aboutOf = ({ node }: Pick<DrainLook, 'node'>): string => `node ${node}`;

function nodeFindings(look: DrainLook): Finding[] {
  const { live } = look;
  const about = aboutOf(look);
  if (live === undefined)
    return [open('EvidenceIncomplete', about, { component: 'the node', message: 'the API server does not have it' })];
  return [
    ...(live.unschedulable ? [] : [broken('NodeNotCordoned', about)]),
    // What a kubelet does not tell any more may still run.
    ...(live.ready === 'True' ? [] : [open('NodeNotReady', about)]),
  ];
}

function loadFindings(look: DrainLook): Finding[] {
  const { load } = look;
  const about = aboutOf(look);
  if (load?.type === 'unread')
    return [open('EvidenceIncomplete', about, { component: 'pods and volumes', message: load.message })];
  if (load === undefined) {
    // That pods may come is told already; of a node that is gone nothing is.
    return look.live?.unschedulable === true
      ? [open('EvidenceIncomplete', about, { component: 'pods and volumes', message: 'they were not looked at' })]
      : [];
  }
  const { pods, attached } = load.load;
  const remain = pods.filter(({ stays }) => !stays).map(({ namespace, name }) => `${namespace}/${name}`);
  const claims = pods.flatMap(({ namespace, name, claims: used }) =>
    used.map((claim) => `${namespace}/${claim} of pod ${name}`),
  );
  const volumes = attached.map(({ volume, driver }) => `${volume} (${driver})`);
  const some = (reason: string, names: readonly string[]): Finding[] =>
    names.length === 0 ? [] : [broken(reason, about, { observed: names.length, message: told(names) })];
  return [...some('PodsRemain', remain), ...some('ClaimsInUse', claims), ...some('VolumesAttached', volumes)];
}

type Facts = FactsOf<'drain'>;

function hostFindings(look: DrainLook): Finding[] {
  const { host } = look;
  const about = aboutOf(look);
  const silent = silence(host, about);
  // A sidecar that is gone takes no gateway along: it only says nothing.
  if (silent !== undefined || host.type !== 'Evidence')
    return [{ ...(silent ?? open('RoundPending', about)), weight: 'open' }];
  const { facts, problems } = host.evidence;
  const lacks = (component: keyof Facts): Finding => {
    const message = problems.find((one) => one.component === component)?.message ?? 'it tells no reason';
    return open('EvidenceIncomplete', about, { component: names[component], message });
  };
  const { chassis, gateways, ports } = facts;
  if (chassis === undefined) return [lacks('chassis')];
  if (chassis.chassisUUID === undefined) return [open('ChassisUnregistered', about, { observed: chassis.systemID })];
  return [
    ...(gateways === undefined ? [lacks('gateways')] : gatewayFindings(gateways, about)),
    ...(ports === undefined ? [lacks('ports')] : portFindings(ports, look)),
  ];
}

const names: Readonly<Record<keyof Facts, string>> = {
  chassis: 'its chassis',
  gateways: 'its gateways',
  ports: 'its logical ports',
};

/** That others could take a gateway over is no reason to take it away while traffic goes through it. */
function gatewayFindings({ count, first }: NonNullable<Facts['gateways']>, about: string): Finding[] {
  const active = first
    .filter((gateway) => gateway.active)
    .map(({ port, others }) => `${port} (${others === 0 ? 'no other could take over' : `${others} could take over`})`);
  if (active.length > 0) return [broken('GatewayActive', about, { message: told(active) })];
  return count > first.length ? [cut('gateways', first.length, count, about)] : [];
}

const cut = (component: keyof Facts, told: number, count: number, about: string): Finding =>
  open('EvidenceIncomplete', about, { component: names[component], message: `only ${told} of ${count} were told` });

/** Ports of Kube-OVN: the one of the node itself, and `<pod>.<namespace>`, followed by a provider for further networks. */
function portFindings({ count, first }: NonNullable<Facts['ports']>, look: DrainLook): Finding[] {
  const { node, load } = look;
  // Without the pods nobody can tell whose a port is; that they lack is told already.
  if (load?.type !== 'read') return [];
  const ofPods = load.load.pods.map(({ namespace, name }) => `${name}.${namespace}`);
  const isKnown = (port: string): boolean =>
    port === `node-${node}` || ofPods.some((pod) => port === pod || port.startsWith(`${pod}.`));
  // Those of gateways are told as gateways.
  const stray = first.filter(({ name, type }) => type !== 'chassisredirect' && !isKnown(name)).map(({ name }) => name);
  const about = aboutOf(look);
  if (stray.length > 0) return [broken('PortsBound', about, { observed: stray.length, message: told(stray) })];
  return count > first.length ? [cut('ports', first.length, count, about)] : [];
}

/** What is told of one node. Times: of the wall clock for people, and of the clock that never jumps for ages. */
export interface DrainRow {
  readonly node: string;
  /** Whether somebody has begun to take it away. */
  readonly cordoned: boolean;
  readonly verdict: DrainVerdict;
  readonly seenAt: number;
  readonly seenTick: number;
  /** How long it holds, in milliseconds. */
  readonly limitMs: number;
}

/** A row as it may be told now: what is older than its limit is known no more. */
export function freshDrain(row: DrainRow, tick: number): DrainVerdict {
  const age = tick - row.seenTick;
  if (age <= row.limitMs) return row.verdict;
  const message = reasonMessage('EvidenceStale', { subject: aboutOf(row), age: formatDuration(age) });
  return { state: 'unknown', unknown: [{ reason: 'EvidenceStale', message }] };
}
