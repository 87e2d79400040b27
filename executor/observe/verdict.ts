/**
 * From one round to the conditions of an installation. All of them come of the same round, so that Ready is never put
 * together from looks of different times; what a round does not hold was not seen. Pure.
 */
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import { timings } from '../../constructs/api/constants.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { reasonMessage } from '../../constructs/api/reasons.ts';
import type { TopologyRecord } from '../../constructs/api/topology.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { type DataPlaneMemory, judgeDataPlane } from './dataplane.ts';
import { centralNodeFindings, judgeDegraded } from './degraded.ts';
import { type Finding, type Judged, judge, open } from './finding.ts';
import { judgePeer, needsPeer, type PeerObservation, type PeerView, peerNorthd } from './hcp.ts';
import { judgeNetwork, type NetworkRound, type NetworkView, networkUnprobed } from './network.ts';
import { emptyNorthdMemory, judgeNorthd, type NorthdMemory } from './northd.ts';
import { type DatabasesMemory, type DatabaseView, emptyDatabasesMemory, judgeDatabases } from './ovndb.ts';
import { northdVersion } from './progress.ts';
import { behindText, registryOf } from './registry.ts';
import type { CentralRound, ChassisRound, RoundTime } from './round.ts';
import { judgeTopology, type RecordPin, type RecordRead } from './topology-record.ts';

/** Everything that one round saw. A part that the installation does not hold, or that could not be looked at, is absent. */
export interface Round {
  readonly time: RoundTime;
  readonly central?: CentralRound;
  readonly chassis?: ChassisRound;
  readonly network?: NetworkRound;
  readonly peer: PeerObservation;
  /** The ConfigMap of the pinned record. */
  readonly record?: RecordRead;
}

/** What goes from round to round: what can only be seen by comparing. Lost with the process, and then learned anew. */
export interface Memory {
  readonly databases: DatabasesMemory;
  readonly northd: NorthdMemory;
  readonly dataPlane: DataPlaneMemory;
}

export const emptyMemory: Memory = { databases: emptyDatabasesMemory, northd: emptyNorthdMemory, dataPlane: {} };

/** What is asked for. */
export interface Wanted {
  readonly spec: InstallationSpec;
  readonly installation: TopologyRecord['installation'];
  /** Replicas that the Deployment of the chart retains. */
  readonly chartReplicas: number;
  readonly pin: RecordPin | undefined;
}

export interface Verdict {
  /** In the order in which people read them: databases, northd, data plane, network, peer, topology, redundancy. */
  readonly conditions: readonly DomainCondition[];
  readonly memory: Memory;
  readonly databases: readonly DatabaseView[];
  readonly network: NetworkView | undefined;
  readonly peer: PeerView | undefined;
  readonly toRecord: TopologyRecord | undefined;
  readonly time: RoundTime;
}

/** Bridge that carries the pods. */
const bridge = 'br-int';

/** A part that the round does not hold. */
const unseen = (type: string): Judged =>
  judge(type, [open('RoundPending', type)], { reason: 'RoundPending', message: '' });

interface Central {
  readonly judged: readonly Judged[];
  readonly more: readonly Finding[];
  readonly verdict: Pick<Verdict, 'databases' | 'toRecord'>;
  readonly memory: Pick<Memory, 'databases' | 'northd'>;
}

function judgeCentral(round: Round, wanted: Wanted, memory: Memory): Central {
  const { central } = round;
  const clustered = wanted.spec.central.database === 'raft';
  if (central === undefined) {
    const types = ['OVNDBReady', 'NorthdReady', ...(clustered ? ['TopologyRecorded'] : [])];
    return { judged: types.map(unseen), more: [], verdict: { databases: [], toRecord: undefined }, memory };
  }
  const tick = round.time.endedTick;
  const databases = judgeDatabases(central, { model: clustered ? 'clustered' : 'standalone', tick }, memory.databases);
  const northd = judgeNorthd(central, tick, memory.northd, behindText(central, round.chassis));
  const topology = clustered
    ? judgeTopology({
        round: central,
        installation: wanted.installation,
        chartReplicas: wanted.chartReplicas,
        databasesReady: databases.condition.status === 'True',
        pin: wanted.pin,
        read: round.record,
      })
    : undefined;
  return {
    judged: [databases, northd, ...(topology === undefined ? [] : [topology])],
    more: [...centralNodeFindings(central), ...northd.chassis],
    verdict: { databases: databases.databases, toRecord: topology?.toRecord },
    memory: { databases: databases.memory, northd: northd.memory },
  };
}

/** Judges a round. A part that the mode does not hold has no condition. */
export function judgeRound(round: Round, wanted: Wanted, memory: Memory): Verdict {
  const { spec, installation } = wanted;
  const central = spec.mode === 'nodeNetworking' ? undefined : judgeCentral(round, wanted, memory);
  const peer = needsPeer(spec) ? judgePeer({ ...installation, spec }, round.peer) : undefined;
  const dataPlane =
    spec.mode === 'centralOnly' || round.chassis === undefined
      ? undefined
      : judgeDataPlane(
          round.chassis,
          {
            tick: round.time.endedTick,
            bridge,
            northd:
              round.central !== undefined
                ? northdVersion(round.central)
                : // Of the other half only once it was seen to be that.
                  peer?.condition.status === 'True'
                  ? peerNorthd(round.peer)
                  : undefined,
            images: round.central?.samples.flatMap(({ target }) => target.image ?? []) ?? [],
            ...(round.central === undefined ? {} : { registry: registryOf(round.central) }),
          },
          memory.dataPlane,
        );
  const network = spec.mode === 'centralOnly' ? undefined : judgeNetworkPart(round, spec);
  const [databases, northd, topology] = central?.judged ?? [];
  const judged = [
    databases,
    northd,
    spec.mode === 'centralOnly' ? undefined : (dataPlane ?? unseen('DataPlaneReady')),
    network,
    peer,
    topology,
  ].filter((one): one is Judged => one !== undefined);
  return {
    conditions: [...judged, judgeDegraded(judged, central?.more ?? [])].map(({ condition }) => condition),
    memory: {
      databases: central?.memory.databases ?? memory.databases,
      northd: central?.memory.northd ?? memory.northd,
      dataPlane: dataPlane?.memory ?? memory.dataPlane,
    },
    databases: central?.verdict.databases ?? [],
    network: network?.view,
    peer: peer?.view,
    toRecord: central?.verdict.toRecord,
    time: round.time,
  };
}

function judgeNetworkPart(round: Round, spec: InstallationSpec) {
  if (spec.networkProbe === undefined) return networkUnprobed();
  return round.network === undefined
    ? { ...unseen('NetworkReady'), view: undefined }
    : judgeNetwork(round.network, spec.networkStack);
}

/** Types that an installation of this specification has, in order; a test holds {@link judgeRound} to it. */
export function evidenceTypes(spec: InstallationSpec): string[] {
  const local = spec.mode !== 'nodeNetworking';
  return [
    ...(local ? ['OVNDBReady', 'NorthdReady'] : []),
    ...(spec.mode === 'centralOnly' ? [] : ['DataPlaneReady', 'NetworkReady']),
    ...(needsPeer(spec) ? ['HCPReady'] : []),
    ...(local && spec.central.database === 'raft' ? ['TopologyRecorded'] : []),
    'Degraded',
  ];
}

/** How long a verdict holds, in milliseconds: two rounds, but a minute at least. */
export const freshnessLimitMs = (everyMs: number): number => Math.max(timings.evidence.freshMs, 2 * everyMs);

/** The conditions of a verdict as they may be told now: what is older than the limit is known no more. */
export function freshConditions(
  { conditions, time }: Pick<Verdict, 'conditions' | 'time'>,
  now: { readonly tick: number; readonly limitMs: number },
): DomainCondition[] {
  const age = now.tick - time.endedTick;
  if (age <= now.limitMs) return [...conditions];
  return conditions.map(({ type }) => ({
    type,
    status: 'Unknown',
    reason: 'EvidenceStale',
    message: reasonMessage('EvidenceStale', { subject: type, age: formatDuration(age) }),
  }));
}
