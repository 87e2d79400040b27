/**
 * OVNDBReady: whether both databases of a local OVN central are served by all expected members. NB and SB are judged apart.
 * A member counts by what its own server says of its place in the cluster: neither Ready of its pod nor `connected` alone
 * proves membership. Nothing here authorises a change of members. Pure.
 */
import { broken, type Finding, type Judged, judge, memberName, open, silence } from './finding.ts';
import { type Cluster, clusterFindings, quorumOf } from './ovndb-cluster.ts';
import {
  type DatabaseKey,
  type DatabaseMemory,
  type DatabaseModel,
  databaseNames,
  emptyDatabaseMemory,
  isVoter,
  memberFindings,
  rememberMembers,
  type Seat,
  type SeatReading,
  seatOf,
} from './ovndb-member.ts';
import type { CentralRound, CentralTarget } from './round.ts';

export type DatabasesMemory = Readonly<Record<DatabaseKey, DatabaseMemory>>;
export const emptyDatabasesMemory: DatabasesMemory = { nb: emptyDatabaseMemory, sb: emptyDatabaseMemory };

/** What status tells of a database; members that were not seen are missing. */
export interface DatabaseView {
  readonly name: 'OVN_Northbound' | 'OVN_Southbound';
  readonly model: DatabaseModel;
  readonly clusterID?: string;
  /** Server id of the leader. */
  readonly leader?: string;
  readonly term?: string;
  readonly members: readonly {
    readonly serverID: string;
    readonly address?: string;
    readonly pod?: string;
    readonly node: string;
    readonly index?: string;
  }[];
}

export interface JudgedDatabases extends Judged {
  readonly memory: DatabasesMemory;
  readonly databases: readonly DatabaseView[];
}

interface JudgedDatabase {
  readonly findings: readonly Finding[];
  readonly memory: DatabaseMemory;
  readonly view: DatabaseView | undefined;
  readonly text: string;
}

/** Judges a round; `tick` is its end on the clock that never jumps. */
export function judgeDatabases(
  round: CentralRound,
  want: { readonly model: DatabaseModel; readonly tick: number },
  memory: DatabasesMemory,
): JudgedDatabases {
  const [nb, sb] = (['nb', 'sb'] as const).map((key) => judgeDatabase(round, key, want, memory[key])) as [
    JudgedDatabase,
    JudgedDatabase,
  ];
  const findings = [...placeFindings(round), ...nb.findings, ...sb.findings];
  const text = `${nb.text}; ${sb.text}`;
  const good = { reason: want.model === 'clustered' ? 'MembersAgree' : 'DatabaseServed', message: text };
  return {
    ...judge('OVNDBReady', findings, good, text),
    memory: { nb: nb.memory, sb: sb.memory },
    databases: [nb, sb].flatMap(({ view }) => (view === undefined ? [] : [view])),
  };
}

/** Pods where none is wanted; and a round that expects nobody proves nothing. */
function placeFindings({ samples, strays }: CentralRound): Finding[] {
  const wanted = samples
    .map(({ target }) => target.node.name)
    .sort()
    .join(', ');
  const findings = strays.map(({ name, node }) =>
    broken('MemberMisplaced', `pod ${name}`, { pod: name, observed: node, wanted }),
  );
  if (samples.length > 0) return findings;
  return [...findings, open('NothingExpected', 'OVN central', { message: 'no node of OVN central is accepted' })];
}

function judgeDatabase(
  round: CentralRound,
  key: DatabaseKey,
  { model, tick }: { readonly model: DatabaseModel; readonly tick: number },
  memory: DatabaseMemory,
): JudgedDatabase {
  const rules = { key, model, tick, memory };
  const readings = round.samples.map((sample) => missingPod(sample.target, sample) ?? seatOf(sample, key));
  const seats = readings.flatMap((reading) => ('seat' in reading ? [reading.seat] : []));
  const lost = readings.flatMap((reading) => ('seat' in reading ? [] : [reading]));
  const findings = [...lost.map(({ finding }) => finding), ...seats.flatMap((seat) => memberFindings(seat, rules))];
  const remembered = rememberMembers(readings, rules);
  if (model === 'standalone') {
    const view = standaloneView(key, seats);
    const text =
      `${databaseNames[key]}: ${view === undefined ? 'not seen' : 'standalone'} ${seats[0]?.about ?? ''}`.trim();
    return { findings, memory: { ...memory, ...remembered }, view, text };
  }
  const cluster: Cluster = {
    seats,
    silent: lost.flatMap(({ target, finding }) => (finding.weight === 'open' ? [target] : [])),
    down: lost.flatMap(({ target, finding }) => (finding.weight === 'broken' ? [target] : [])),
  };
  const { findings: found, lagging, leaderless } = clusterFindings(cluster, rules);
  return {
    findings: [...findings, ...found],
    memory: { ...remembered, lagging, leaderless },
    view: clusterView(key, cluster),
    text: quorumText(key, cluster),
  };
}

/** A place without a node or a pod, told by the API server and not by silence. */
function missingPod(
  target: CentralTarget,
  { first, second }: CentralRound['samples'][number],
): SeatReading | undefined {
  if (target.pod !== undefined && target.live !== undefined) return undefined;
  const outcome = second.type === 'Broken' ? second : first;
  const about = memberName(target);
  if (outcome.type === 'Broken')
    return { target, finding: broken('MemberMissing', about, { message: outcome.message }) };
  return { target, finding: silence(outcome, about) ?? open('RoundPending', about) };
}

/** Quorum is told whatever else is wrong: it says how far the cluster is from stopping. */
function quorumText(key: DatabaseKey, cluster: Cluster): string {
  const { leader, alive, size, quorum } = quorumOf(cluster);
  const lead =
    leader === undefined
      ? 'no leader seen'
      : `leader node ${leader.target.node.name}, term ${leader.second.term ?? '?'}`;
  const silent = cluster.silent.length === 0 ? '' : ` and ${cluster.silent.length} silent`;
  const even = size > 0 && size % 2 === 0 ? `; ${size} members bear no more losses than ${size - 1}` : '';
  return `${databaseNames[key]}: ${lead}, ${alive} of ${size} members${silent}, quorum ${quorum}${even}`;
}

const memberView = ({ target, second }: Seat): DatabaseView['members'] =>
  second.sid === undefined
    ? []
    : [
        {
          serverID: second.sid,
          ...(second.address === undefined ? {} : { address: second.address }),
          ...(target.pod === undefined ? {} : { pod: target.pod.name }),
          node: target.node.name,
          ...(second.index === undefined ? {} : { index: second.index }),
        },
      ];

function clusterView(key: DatabaseKey, cluster: Cluster): DatabaseView | undefined {
  const voters = cluster.seats.filter(isVoter);
  if (voters.length === 0) return undefined;
  const { leader } = quorumOf(cluster);
  const ids = new Set(voters.flatMap(({ second }) => second.cid ?? []));
  const [clusterID] = ids.size === 1 ? ids : [];
  return {
    name: databaseNames[key],
    model: 'clustered',
    ...(clusterID === undefined ? {} : { clusterID }),
    ...(leader?.second.sid === undefined ? {} : { leader: leader.second.sid }),
    ...(leader?.second.term === undefined ? {} : { term: leader.second.term }),
    members: voters.flatMap(memberView),
  };
}

const standaloneView = (key: DatabaseKey, seats: readonly Seat[]): DatabaseView | undefined =>
  seats.some(({ second }) => second.model === 'standalone')
    ? { name: databaseNames[key], model: 'standalone', members: [] }
    : undefined;
