/** Writes `cluster/status` by its grammar, and makes statuses up: for properties. The captured texts come from real servers. */
import fc from 'fast-check';
import type { Change, ClusterServer, ClusterStatus, Phase, Who } from '../../probes/unixctl/cluster-status.ts';

const statusWords = {
  joining: 'joining cluster',
  leaving: 'leaving cluster',
  left: 'left cluster',
  failed: 'failed',
  disconnected: 'disconnected from the cluster (election timeout)',
  member: 'cluster member',
} as const;

const whoText = (who: Who): string => (who.type === 'other' ? who.nickname : who.type);
const changeText = ({ nickname, sid, address, phase }: Change): string =>
  `${nickname} (${sid} at ${address}) (${phase})`;

function serverText(server: ClusterServer): string {
  const { nickname, sid, address, self, phase, votedFor, nextIndex, matchIndex, lastMessageMs } = server;
  return [
    `    ${nickname} (${sid} at ${address})`,
    self ? ' (self)' : '',
    phase === 'stable' ? '' : ` (${phase})`,
    votedFor === undefined ? '' : ` (voted for ${votedFor})`,
    nextIndex === undefined ? '' : ` next_index=${nextIndex} match_index=${matchIndex}`,
    lastMessageMs === undefined ? '' : ` last msg ${lastMessageMs} ms ago`,
  ].join('');
}

export function clusterStatusText(status: ClusterStatus): string {
  const { lastElection, electionWonMs, electionTimerChangesToMs, removing, remotes, disconnections } = status;
  const connections = status.connections.map(({ direction, nickname, up }) => {
    const arrow = `${direction === 'out' ? '->' : '<-'}${nickname}`;
    return up ? ` ${arrow}` : ` (${arrow})`;
  });
  return [
    status.nickname,
    `Name: ${status.name}`,
    `Cluster ID: ${status.cid === undefined ? 'not yet known' : `${status.cid.slice(0, 4)} (${status.cid})`}`,
    `Server ID: ${status.sid.slice(0, 4)} (${status.sid})`,
    `Address: ${status.address}`,
    `Status: ${statusWords[status.status]}`,
    ...(remotes === undefined ? [] : [`Remotes for joining:${remotes.map((remote) => ` ${remote}`).join('')}`]),
    ...status.adding.map((change) => `Adding server ${changeText(change)}`),
    ...(removing === undefined ? [] : [`Removing server ${changeText(removing)}`]),
    `Role: ${status.role}`,
    `Term: ${status.term}`,
    `Leader: ${whoText(status.leader)}`,
    `Vote: ${whoText(status.vote)}`,
    '',
    ...(lastElection === undefined
      ? []
      : [`Last Election started ${lastElection.startedMs} ms ago, reason: ${lastElection.reason}`]),
    ...(electionWonMs === undefined ? [] : [`Last Election won: ${electionWonMs} ms ago`]),
    `Election timer: ${status.electionTimerMs}${electionTimerChangesToMs === undefined ? '' : ` (changing to ${electionTimerChangesToMs})`}`,
    `Log: [${status.log.start}, ${status.log.end}]`,
    `Entries not yet committed: ${status.notCommitted}`,
    `Entries not yet applied: ${status.notApplied}`,
    `Connections:${connections.join('')}`,
    ...(disconnections === undefined ? [] : [`Disconnections: ${disconnections}`]),
    'Servers:',
    ...status.servers.map(serverText),
    '',
  ].join('\n');
}

const count = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const uuid = fc.uuid();
const address = fc.constantFrom('tcp:127.0.0.1:6643', 'ssl:[fd00::1]:6643', 'tcp:[10.0.0.1]:6644', 'unix:/run/s1.raft');
const nickname = fc.constantFrom('0000', 'abcd', 's1', '1e10', 'feed');
const who: fc.Arbitrary<Who> = fc.oneof(
  fc.constantFrom<Who>({ type: 'self' }, { type: 'unknown' }),
  nickname.map((name): Who => ({ type: 'other', nickname: name })),
);
const phase = fc.constantFrom<Phase>(
  'stable',
  'adding: catchup',
  'adding: caught up',
  'adding: committing',
  'removing',
);
const change: fc.Arbitrary<Change> = fc.record({
  nickname,
  sid: uuid.map((id) => id.slice(0, 4)),
  address,
  phase,
});
/** Members that are left out where there are none: exact optional members and undefined ones are not the same. */
const maybe = <T extends object>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | Record<never, never>> =>
  fc.oneof(arbitrary, fc.constant({}));

const otherServer: fc.Arbitrary<ClusterServer> = fc
  .tuple(
    change,
    maybe(fc.record({ votedFor: nickname })),
    maybe(fc.record({ nextIndex: count, matchIndex: count })),
    maybe(fc.record({ lastMessageMs: count })),
  )
  .map(([base, ...rest]) => Object.assign({ ...base, self: false }, ...rest));

/** Statuses that a server could tell, and many that it never would. */
export const clusterStatuses: fc.Arbitrary<ClusterStatus> = fc
  .tuple(
    fc.record({
      nickname,
      name: fc.constantFrom('OVN_Northbound', 'OVN_Southbound'),
      sid: uuid,
      address,
      status: fc.constantFrom(...(Object.keys(statusWords) as (keyof typeof statusWords)[])),
      adding: fc.array(change, { maxLength: 2 }),
      role: fc.constantFrom('leader', 'follower', 'candidate'),
      term: count,
      leader: who,
      vote: who,
      electionTimerMs: count,
      log: fc.record({ start: count, end: count }),
      notCommitted: count,
      notApplied: count,
      connections: fc.array(fc.record({ direction: fc.constantFrom('in', 'out'), nickname, up: fc.boolean() }), {
        maxLength: 4,
      }),
    }),
    fc.array(otherServer, { maxLength: 4 }),
    maybe(fc.record({ cid: uuid })),
    maybe(fc.record({ remotes: fc.array(address, { maxLength: 3 }) })),
    maybe(fc.record({ removing: change })),
    maybe(
      fc.record({
        lastElection: fc.record({ startedMs: count, reason: fc.constantFrom('timeout', 'leadership_transfer') }),
      }),
    ),
    maybe(fc.record({ electionWonMs: count })),
    maybe(fc.record({ electionTimerChangesToMs: count })),
    maybe(fc.record({ disconnections: count })),
  )
  .map(([base, others, ...rest]) => {
    const self: ClusterServer = {
      nickname: base.nickname,
      sid: base.sid.slice(0, 4),
      address: base.address,
      self: true,
      phase: 'stable',
    };
    const behind = (entries: bigint): bigint => BigInt.asUintN(64, base.log.end - 1n - entries);
    const whole = {
      ...base,
      servers: [...others, self],
      commitIndex: behind(base.notCommitted),
      appliedIndex: behind(base.notApplied),
    };
    return Object.assign(whole, ...rest) as ClusterStatus;
  });
