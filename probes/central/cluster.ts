/** What a member's `cluster/status` is among the facts of a database. Pure. */
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import type { Change, ClusterServer, ClusterStatus, Phase, Who } from '../unixctl/cluster-status.ts';

export type ClusterFacts = Pick<DatabaseFacts, 'status' | 'members' | 'connections'> &
  Partial<
    Pick<
      DatabaseFacts,
      'cid' | 'sid' | 'address' | 'role' | 'term' | 'leader' | 'electionTimerMs' | 'log' | 'joiningFrom'
    >
  >;

const isPrefix = (text: string): boolean => /^[0-9a-f]{4}[0-9a-f-]{0,32}$/.test(text);

/** How a leader is named; a nickname that is no prefix of an id names nobody outside of this server. */
const leaderText = (leader: Who): string | undefined => {
  if (leader.type !== 'other') return leader.type;
  return isPrefix(leader.nickname) ? leader.nickname : undefined;
};

const phases: Readonly<Record<Phase, 'stable' | 'adding' | 'removing'>> = {
  stable: 'stable',
  'adding: catchup': 'adding',
  'adding: caught up': 'adding',
  'adding: committing': 'adding',
  removing: 'removing',
};

function memberFacts(server: ClusterServer, leading: boolean): DatabaseFacts['members'][number] {
  const { nextIndex, matchIndex, lastMessageMs } = server;
  return {
    sid: server.sid,
    address: server.address,
    self: server.self,
    ...(leading ? { phase: phases[server.phase] } : {}),
    ...(nextIndex === undefined ? {} : { nextIndex: String(nextIndex) }),
    ...(matchIndex === undefined ? {} : { matchIndex: String(matchIndex) }),
    // A follower does not talk to other followers: what it would tell of them grows in a healthy cluster as well.
    ...(leading && lastMessageMs !== undefined ? { lastMessageMs: String(lastMessageMs) } : {}),
  };
}

/** A leader tells servers that come or go on lines of their own: they are no members yet, or no longer, and do not vote. */
function membersOf({ role, servers, adding, removing }: ClusterStatus): DatabaseFacts['members'] {
  const changing = [...adding, ...(removing === undefined ? [] : [removing])];
  const known = ({ sid, address }: Change): boolean =>
    servers.some((one) => one.sid === sid && one.address === address);
  return [
    ...servers.map((server) => memberFacts(server, role === 'leader')),
    ...changing
      .filter((change) => !known(change))
      .map(({ sid, address, phase }) => ({ sid, address, self: false, phase: phases[phase], voting: false })),
  ];
}

/** Undefined when the counters contradict the end of the log. */
function logFacts({ log, commitIndex, appliedIndex, notCommitted, notApplied }: ClusterStatus): DatabaseFacts['log'] {
  if (commitIndex >= log.end || appliedIndex >= log.end) return undefined;
  return {
    first: String(log.start),
    last: String(log.end - 1n),
    committed: String(commitIndex),
    applied: String(appliedIndex),
    unapplied: String(notApplied),
    uncommitted: String(notCommitted),
  };
}

/** No server has a longer election timer, nor a cluster more members than a few: such a text is no longer told whole. */
const longestTimerMs = 600_000n;
const mostConnections = 128;

export function clusterFacts(status: ClusterStatus): ClusterFacts {
  const [log, leader] = [logFacts(status), leaderText(status.leader)];
  return {
    status: status.status,
    ...(status.cid === undefined ? {} : { cid: status.cid }),
    sid: status.sid,
    address: status.address,
    role: status.role,
    term: String(status.term),
    ...(leader === undefined ? {} : { leader }),
    ...(status.electionTimerMs > longestTimerMs ? {} : { electionTimerMs: Number(status.electionTimerMs) }),
    ...(log === undefined ? {} : { log }),
    members: membersOf(status),
    connections: status.connections
      .filter(({ nickname }) => isPrefix(nickname))
      .slice(0, mostConnections)
      .map(({ direction, nickname, up }) => ({ direction, sid: nickname, up })),
    ...(status.remotes === undefined ? {} : { joiningFrom: [...status.remotes] }),
  };
}
