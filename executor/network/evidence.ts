/** What rounds of observation say of an installation: for its gates, and for its status. Pure. */
import { type DomainCondition, timeText } from '../../constructs/api/conditions.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Gate } from '../../constructs/api/payload.ts';
import { reasonMessage } from '../../constructs/api/reasons.ts';
import type { TopologyRecord } from '../../constructs/api/topology.ts';
import { cut } from '../../constructs/lib/cut.ts';
import { deepEqual, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { DrainRow } from '../observe/drain.ts';
import type { Matrix } from '../observe/matrix.ts';
import type { RecordPin } from '../observe/topology-record.ts';
import { evidenceTypes, freshConditions, type Verdict } from '../observe/verdict.ts';
import type { GateVerdict } from '../release/domain.ts';

/** The last round of an installation. */
export interface Observed {
  readonly verdict: Verdict;
  /** How long it holds. */
  readonly limitMs: number;
  /** What it saw, node by node; nothing is decided by it. */
  readonly matrix?: Matrix;
  /** What would be lost with each node; looked at beside the rounds. Nothing is decided by it either. */
  readonly drains?: readonly DrainRow[];
}

/** What is known of installations by their UID. */
export interface Observations {
  of(installationUID: string): Observed | undefined;
  /** Asks for a round now. It shortens a wait; it decides nothing. */
  hurry(installationUID: string): void;
}

/** Gates that only evidence opens, and why one is shut where nothing observes. */
const unobserved: Readonly<Record<string, string>> = {
  OVNDBReady: 'no probe reads the OVN databases',
  NorthdReady: 'no probe asks northd',
  DataPlaneReady: 'no probe asks OVS and ovn-controller on the nodes',
  NetworkReady: 'no probe sends packets',
};

export const isEvidenceGate = ({ type }: Pick<Gate, 'type'>): boolean => Object.hasOwn(unobserved, type);

/** What the gates of a phase are judged by; times are on the clock that never jumps. */
export interface GateEvidence {
  readonly observed: Observed | undefined;
  /** When the gates of this phase were first looked at: the phase was written before. */
  readonly since: number;
  readonly tick: number;
}

/** The verdict of a gate of this domain, or undefined for the common gates. */
export function evidenceGate(
  gate: Pick<Gate, 'type' | 'scope'>,
  evidence: GateEvidence | undefined,
): GateVerdict | undefined {
  if (!isEvidenceGate(gate)) return undefined;
  if (evidence === undefined) {
    const message = `${unobserved[gate.type]}, and nothing is ready because it was applied: spec.images.probe of cluster.yaml brings one`;
    return { state: 'Unknown', reason: 'NoEvidence', message };
  }
  const { observed, since, tick } = evidence;
  const pending = (message: string): GateVerdict => ({ state: 'Unknown', reason: 'EvidencePending', message });
  if (observed === undefined) return pending('the first round of evidence is not complete');
  const { verdict, limitMs } = observed;
  // What was seen before the phase was written says nothing about what was written.
  if (verdict.time.startedTick < since) return pending('no round of evidence has begun since the phase was written');
  const found = freshConditions(verdict, { tick, limitMs }).find(({ type }) => type === gate.type);
  if (found === undefined) return pending(`${gate.type} is no part of what is observed here`);
  const { status, reason, message } = found;
  return { state: status, reason, message, evidenceTime: verdict.time.endedAt };
}

/** What is told where nothing observes, and where something does and has not ended a round. */
const unseen = (type: string, observing: boolean): DomainCondition => ({
  type,
  status: 'Unknown',
  reason: observing ? 'RoundPending' : 'NoEvidence',
  message: observing
    ? reasonMessage('RoundPending')
    : 'it is not observed: spec.images.probe of cluster.yaml names no probe',
});

/** The conditions of an installation from its last round, as they may be told now. `observing`: a round will come. */
export function evidenceConditions(
  spec: InstallationSpec,
  observed: Observed | undefined,
  { tick, observing }: { readonly tick: number; readonly observing: boolean },
): DomainCondition[] {
  const fresh = observed === undefined ? [] : freshConditions(observed.verdict, { tick, limitMs: observed.limitMs });
  // A round of an earlier generation may know other parts than the specification has now.
  return evidenceTypes(spec).map(
    (type) => fresh.find((condition) => condition.type === type) ?? unseen(type, observing),
  );
}

/** How long a status may show what moves in ordinary work as it was: indexes, and when it was looked. */
const restMs = 300_000;

/** A part of a status with its time; the one that is told already, while it says the same and is not too old. */
function timed(before: JsonValue | undefined, part: JsonObject, endedAt: number): JsonObject {
  const told = isObject(before) ? before : {};
  const at = typeof told.observedAt === 'string' ? Date.parse(told.observedAt) : Number.NaN;
  const same = deepEqual(essence(told), essence(part)) && endedAt - at >= 0 && endedAt - at < restMs;
  return same ? told : { observedAt: timeText(endedAt), ...part };
}

/** What of a part is worth a write by itself. */
function essence(part: JsonObject): JsonObject {
  const { observedAt: _observedAt, ...rest } = part;
  return JSON.parse(JSON.stringify(rest, (key, value) => (key === 'index' ? undefined : value)));
}

const freshVerdict = (observed: Observed | undefined, tick: number): Verdict | undefined =>
  observed === undefined || tick - observed.verdict.time.endedTick > observed.limitMs ? undefined : observed.verdict;

/** The topology to record, while it may be taken for what is: a record never changes. */
export const recordable = (observed: Observed | undefined, tick: number): TopologyRecord | undefined =>
  freshVerdict(observed, tick)?.toRecord;

/** How many nodes a status names of those that are not well. */
const mostNamed = 20;

const northdPart = ({ northd }: Matrix): JsonObject | undefined =>
  northd.length === 0 ? undefined : { members: northd.map(({ node, status }) => ({ node, state: cut(status, 64) })) };

/** Chassis by their number; of those that are not well the first by name, as a cluster may have thousands. */
function dataPlanePart({ nodes }: Matrix): JsonObject | undefined {
  const carriers = nodes.filter(({ chassis }) => chassis.state !== 'absent');
  if (carriers.length === 0) return undefined;
  const others = carriers.filter(({ chassis }) => chassis.state !== 'well');
  const missing = others.slice(0, mostNamed).map(({ name, chassis }) => cut(`${name}: ${chassis.word}`, 300));
  return {
    nodes: carriers.length,
    connected: carriers.length - others.length,
    ...(missing.length === 0 ? {} : { missing }),
  };
}

/**
 * The parts of a status that hold evidence. What the last round did not see, or is too old, is absent; the pin of the
 * record stays.
 */
export function evidenceStatus(
  before: JsonObject,
  observed: Observed | undefined,
  tick: number,
  pin?: RecordPin,
): JsonObject {
  const { topology: topologyBefore, ...others } = before;
  const { northd: northdBefore, dataPlane: dataPlaneBefore, network: networkBefore, hcp: hcpBefore, ...rest } = others;
  const { inventory: pinnedBefore, ...databasesBefore } = isObject(topologyBefore) ? topologyBefore : {};
  const inventory = pin === undefined ? pinnedBefore : ({ ...pin } as JsonObject);
  const held = freshVerdict(observed, tick);
  const part = (told: JsonValue | undefined, name: string, seen: object | undefined): JsonObject =>
    held === undefined || seen === undefined
      ? {}
      : { [name]: timed(told, seen as unknown as JsonObject, held.time.endedAt) };
  const databases = held === undefined || held.databases.length === 0 ? undefined : { databases: held.databases };
  const { topology = {} } = part(databasesBefore, 'topology', databases) as { topology?: JsonObject };
  const whole: JsonObject = { ...topology, ...(inventory === undefined ? {} : { inventory }) };
  const matrix = observed?.matrix;
  return {
    ...rest,
    ...(Object.keys(whole).length === 0 ? {} : { topology: whole }),
    ...part(northdBefore, 'northd', matrix && northdPart(matrix)),
    ...part(dataPlaneBefore, 'dataPlane', matrix && dataPlanePart(matrix)),
    ...part(networkBefore, 'network', held?.network),
    ...part(hcpBefore, 'hcp', held?.peer),
  };
}
