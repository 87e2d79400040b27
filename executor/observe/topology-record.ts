/**
 * TopologyRecorded: whether the identities of OVN central are those of the retained record. The record is made once, when
 * all members were seen to agree in one round; afterwards every round compares anew. A server that was seen not to run is
 * confirmed by the leader, which counts its recorded address under the recorded id: OVNDBReady tells that it is away. Pure.
 */
import { type TopologyMember, type TopologyRecord, topologyVersion } from '../../constructs/api/topology.ts';
import { plainEndpoint, sameEndpoint } from './endpoint.ts';
import { broken, type Finding, type Judged, judge, memberName, open } from './finding.ts';
import { type DatabaseKey, databaseNames, isVoter, type Seat, seatOf } from './ovndb-member.ts';
import type { CentralRound, CentralSample, Rollout } from './round.ts';

/** What status pins. */
export interface RecordPin {
  readonly name: string;
  readonly uid: string;
  readonly digest: string;
}

/** What the API server answered for the ConfigMap that status pins, or would be pinned. */
export type RecordRead =
  | { readonly type: 'absent' }
  | { readonly type: 'unread'; readonly message: string }
  /** `held` is absent where its content can not be read as a record. */
  | {
      readonly type: 'found';
      readonly uid: string;
      readonly held?: { readonly record: TopologyRecord; readonly digest: string };
    };

export interface TopologyInput {
  readonly round: CentralRound;
  readonly installation: TopologyRecord['installation'];
  readonly chartReplicas: number;
  /** Whether OVNDBReady is True by the same round; nothing is recorded otherwise. */
  readonly databasesReady: boolean;
  readonly pin: RecordPin | undefined;
  /** Of the pinned ConfigMap; not looked at while nothing is pinned. */
  readonly read: RecordRead | undefined;
}

export interface JudgedTopology extends Judged {
  /** What is to be recorded now: all members were seen, and there is no record yet. */
  readonly toRecord?: TopologyRecord;
}

const keys = ['nb', 'sb'] as const;

type Seats = Readonly<Record<DatabaseKey, Seat | undefined>>;

function seatsOf(sample: CentralSample): Seats {
  const [nb, sb] = keys.map((key) => {
    const reading = seatOf(sample, key);
    return 'seat' in reading && isVoter(reading.seat) ? reading.seat : undefined;
  });
  return { nb, sb };
}

/** Judges a round against the record. */
export function judgeTopology(input: TopologyInput): JudgedTopology {
  const { pin, read } = input;
  const recorded = pin === undefined ? undefined : recordFinding(pin, read);
  if (recorded !== undefined && !('record' in recorded)) return judged([recorded]);
  if (recorded === undefined) return unrecorded(input);
  const findings = compare(input, recorded.record);
  const members = recorded.record.members.length;
  return judged(findings, `${members} members are as ${pin?.name ?? ''} has them`);
}

const judged = (findings: readonly Finding[], message = ''): Judged =>
  judge('TopologyRecorded', findings, { reason: 'TopologyMatches', message });

function unrecorded(input: TopologyInput): JudgedTopology {
  const discovered = discover(input);
  const message = 'record' in discovered ? 'all members were seen' : discovered.message;
  const finding = open('TopologyNotRecorded', 'OVN central', { message });
  return { ...judged([finding]), ...('record' in discovered ? { toRecord: discovered.record } : {}) };
}

/** Whether the pinned record is there and whole. */
function recordFinding(pin: RecordPin, read: RecordRead | undefined): Finding | { readonly record: TopologyRecord } {
  const about = `ConfigMap ${pin.name}`;
  if (read === undefined || read.type === 'unread')
    return open('TopologyUnconfirmed', about, { message: read?.message ?? 'it was not read' });
  if (read.type === 'absent') return broken('TopologyRecordMissing', about, { wanted: pin.name });
  if (read.uid !== pin.uid)
    return broken('TopologyRecordReplaced', about, { name: pin.name, observed: read.uid, wanted: pin.uid });
  if (read.held === undefined || read.held.digest !== pin.digest)
    return broken('TopologyRecordChanged', about, {
      name: pin.name,
      observed: read.held?.digest ?? 'none that can be read',
      wanted: pin.digest,
    });
  return { record: read.held.record };
}

/** The identities of a round in which everybody was seen, or why there are none. */
function discover(input: TopologyInput): { readonly record: TopologyRecord } | { readonly message: string } {
  const { round, installation, chartReplicas, databasesReady } = input;
  if (!databasesReady) return { message: 'the databases are not ready' };
  if (round.workload === undefined) return { message: 'the workload of OVN central was not found' };
  if (!isRolledOut(round.workload)) return { message: 'the rollout of OVN central is under way' };
  const members: TopologyMember[] = [];
  for (const sample of round.samples) {
    const member = memberOf(sample);
    if (member === undefined) return { message: `${memberName(sample.target)} was not seen whole` };
    members.push(member);
  }
  const ids = (key: DatabaseKey): string[] => [
    ...new Set(round.samples.flatMap((sample) => seatsOf(sample)[key]?.second.cid ?? [])),
  ];
  const [[nb], [sb]] = [ids('nb'), ids('sb')];
  if (nb === undefined || sb === undefined) return { message: 'no cluster was seen' };
  const { kind, name, uid } = round.workload;
  const record: TopologyRecord = {
    version: topologyVersion,
    installation,
    workload: { kind, name, uid },
    chartReplicas,
    centralAddresses: round.samples.flatMap(({ target }) => target.node.addresses.slice(0, 1)),
    nb: { clusterID: nb },
    sb: { clusterID: sb },
    members,
  };
  return { record };
}

const isRolledOut = ({ generation, observedGeneration, desired, updated, ready }: Rollout): boolean =>
  observedGeneration >= generation && updated >= desired && ready >= desired;

function memberOf(sample: CentralSample): TopologyMember | undefined {
  const { nb, sb } = seatsOf(sample);
  const { live, storage } = sample.target;
  const [north, south] = [nb, sb].map((seat) => (seat === undefined ? undefined : serverOf(seat)));
  if (live === undefined || storage === undefined || north === undefined || south === undefined) return undefined;
  return { node: { name: live.name, uid: live.uid }, storage, nb: north, sb: south };
}

function serverOf(seat: Seat): TopologyMember['nb'] | undefined {
  const { sid, address, listeners } = seat.second;
  if (sid === undefined || address === undefined || listeners === undefined) return undefined;
  return { serverID: sid, address: plainEndpoint(address), listeners: listeners.toSorted() };
}

/** Every recorded member against what was seen of it, by itself or by the leader. */
function compare({ round }: TopologyInput, record: TopologyRecord): Finding[] {
  const findings: Finding[] = [];
  const { workload } = round;
  if (workload !== undefined && workload.uid !== record.workload.uid)
    findings.push(changed('the UID', `${workload.kind} ${workload.name}`, workload.uid, record.workload.uid));
  for (const member of record.members) {
    const sample = round.samples.find(({ target }) => target.node.name === member.node.name);
    const about = sample === undefined ? `node ${member.node.name}` : memberName(sample.target);
    if (sample === undefined) {
      findings.push(changed('the place in OVN central', about, 'not asked for any more', 'a member'));
      continue;
    }
    findings.push(...placeFindings(sample, member, about));
    for (const key of keys) findings.push(...serverFindings(round, sample, member, key, record[key].clusterID));
  }
  for (const { target } of round.samples)
    if (!record.members.some(({ node }) => node.name === target.node.name))
      findings.push(changed('the place in OVN central', memberName(target), 'a member', 'none'));
  return findings;
}

const changed = (what: string, about: string, observed: string, wanted: string): Finding =>
  broken('TopologyChanged', about, { what, observed, wanted });

/** Node and storage, as the API server has them. A node that is gone stays in the record, and people decide. */
function placeFindings({ target }: CentralSample, member: TopologyMember, about: string): Finding[] {
  const findings: Finding[] = [];
  if (target.live === undefined) findings.push(changed('the node', about, 'gone', `UID ${member.node.uid}`));
  else if (target.live.uid !== member.node.uid)
    findings.push(changed('the node', about, `UID ${target.live.uid}`, `UID ${member.node.uid}`));
  const [seen, wanted] = [target.storage, member.storage].map((one) =>
    one === undefined ? undefined : storageText(one),
  );
  if (seen !== undefined && wanted !== undefined && seen !== wanted)
    findings.push(changed('the storage', about, seen, wanted));
  // A pod whose databases lie where nobody can tell confirms no record.
  if (seen === undefined && target.pod !== undefined)
    findings.push(open('TopologyUnconfirmed', about, { message: `the storage of ${about} could not be told` }));
  return findings;
}

const storageText = (storage: TopologyMember['storage']): string =>
  storage.type === 'hostPath' ? `hostPath ${storage.path}` : `claim ${storage.name} with UID ${storage.uid}`;

function serverFindings(
  round: CentralRound,
  sample: CentralSample,
  member: TopologyMember,
  key: DatabaseKey,
  clusterID: string,
): Finding[] {
  const wanted = member[key];
  const reading = seatOf(sample, key);
  const about = memberName(sample.target);
  const what = (part: string): string => `the ${part} of ${databaseNames[key]}`;
  if (!('seat' in reading)) return unseenFindings(round, wanted, key, about, reading.finding);
  const { cid, sid, address, listeners } = reading.seat.second;
  const findings: Finding[] = [];
  const compareText = (part: string, observed: string | undefined, recorded: string): void => {
    if (observed === undefined)
      findings.push(open('TopologyUnconfirmed', about, { message: `${about} does not tell ${what(part)}` }));
    else if (observed !== recorded) findings.push(changed(what(part), about, observed, recorded));
  };
  compareText('cluster id', cid, clusterID);
  compareText('server id', sid, wanted.serverID);
  compareText('RAFT address', address === undefined ? undefined : plainEndpoint(address), wanted.address);
  compareText('listeners', listeners?.toSorted().join(' '), wanted.listeners.join(' '));
  return findings;
}

/**
 * A server that was seen not to run can not have become another one: the leader's word is enough that its place is still
 * its own. Of one that merely said nothing nobody knows.
 */
function unseenFindings(
  round: CentralRound,
  wanted: TopologyMember['nb'],
  key: DatabaseKey,
  about: string,
  { weight }: Finding,
): Finding[] {
  const why = (message: string): Finding[] => [
    open('TopologyUnconfirmed', about, { message: `${databaseNames[key]} of ${about}: ${message}` }),
  ];
  if (weight !== 'broken') return why('it was not seen');
  const leaders = round.samples.flatMap((sample) => {
    const seat = seatsOf(sample)[key];
    return seat?.second.role === 'leader' ? [seat] : [];
  });
  const [leader] = leaders;
  if (leader === undefined || leaders.length > 1) return why('it does not run, and no leader tells of it');
  const counted = leader.second.members.some(
    ({ sid, address }) => wanted.serverID.startsWith(sid) && sameEndpoint(address, wanted.address),
  );
  return counted ? [] : why('it does not run, and the leader does not count it as recorded');
}
