/** What the members of one clustered database say of one another. Pure. */
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { parseEndpoint, plainEndpoint, plainHost, sameEndpoint } from './endpoint.ts';
import { broken, type Finding, open, weak } from './finding.ts';
import { canVote, type DatabaseMemory, databaseNames, isVoter, type MemberRules, type Seat } from './ovndb-member.ts';
import type { CentralTarget } from './round.ts';

export interface Cluster {
  /** Members that answered in both passes. */
  readonly seats: readonly Seat[];
  /** Targets of which nobody knows whether they are members. */
  readonly silent: readonly CentralTarget[];
  /** Targets that were seen not to serve the database. */
  readonly down: readonly CentralTarget[];
}

/** Members and votes of a cluster; `size` counts dead members as well, as the cluster itself does. */
export interface Quorum {
  readonly leader: Seat | undefined;
  readonly alive: number;
  readonly size: number;
  readonly quorum: number;
  /** Members that are none of the pods, and of which nobody has heard: they may run elsewhere. */
  readonly elsewhere: number;
}

type Member = DatabaseFacts['members'][number];

const shown = (members: readonly Member[]): string[] =>
  members.map(({ sid, address }) => `${sid.slice(0, 4)} at ${plainEndpoint(address)}`).sort();

const setText = (members: readonly Member[]): string => `[${shown(members).join(', ')}]`;
const sameSet = (a: readonly Member[], b: readonly Member[]): boolean => setText(a) === setText(b);

/** Whether a member that the leader counts is the server of this seat: its id begins so, and it has that address. */
const isServer = (member: Member, { second }: Seat): boolean =>
  second.sid?.startsWith(member.sid) === true &&
  second.address !== undefined &&
  sameEndpoint(second.address, member.address);

const hostOf = (address: string): string => parseEndpoint(address)?.host ?? '';
const livesAt = (target: CentralTarget, address: string): boolean =>
  target.node.addresses.some((own) => plainHost(own) === hostOf(address));

/** Servers of which a member says that their votes count; dead ones as well. */
const votersTold = ({ members }: DatabaseFacts): readonly Member[] => members.filter(({ voting }) => voting !== false);

/** Whose word on the members counts: the leader's; while nobody leads, that of the member with the longest log. */
function authority(seats: readonly Seat[], leader: Seat | undefined): Seat | undefined {
  if (leader !== undefined) return leader;
  const end = ({ second }: Seat): bigint => BigInt(second.log?.last ?? '0');
  const known = seats.filter(({ second }) => second.status !== 'joining' && votersTold(second).length > 0);
  return known.toSorted((a, b) => {
    const [more, less] = [end(b), end(a)];
    if (more !== less) return more > less ? 1 : -1;
    return votersTold(b.second).length - votersTold(a.second).length || (a.about < b.about ? -1 : 1);
  })[0];
}

export function quorumOf({ seats, silent, down }: Cluster): Quorum {
  const leaders = seats.filter((seat) => isVoter(seat) && seat.second.role === 'leader');
  const leader = leaders.length === 1 ? leaders[0] : undefined;
  const told = authority(seats, leader);
  const voters = told === undefined ? [] : votersTold(told.second);
  const able = seats.filter(canVote);
  if (voters.length === 0) {
    const size = seats.length + silent.length + down.length;
    return { leader, alive: able.length, size, quorum: Math.floor(size / 2) + 1, elsewhere: 0 };
  }
  const unclaimed = voters.filter((member) => !seats.some((seat) => isServer(member, seat)));
  const away = [...silent, ...down];
  const strangers = unclaimed.filter(({ address }) => !away.some((target) => livesAt(target, address)));
  // Whoever is away and at none of the addresses, as where those are names, may be any of them.
  const nameless = away.filter((target) => !unclaimed.some(({ address }) => livesAt(target, address))).length;
  const beyond = (members: readonly Member[]): number => Math.max(0, members.length - nameless);
  // A leader hears of its members whether or not anybody knows their pods.
  const heard = beyond(strangers.filter((member) => leader !== undefined && isHeard(member, leader.second)));
  const answering = able.filter((seat) => voters.some((member) => isServer(member, seat))).length;
  return {
    leader,
    alive: answering + heard,
    size: voters.length,
    quorum: Math.floor(voters.length / 2) + 1,
    elsewhere: Math.max(0, beyond(strangers) - heard),
  };
}

/** Whether the leader has heard of a member within its election timer. */
const isHeard = ({ lastMessageMs }: Member, { electionTimerMs }: DatabaseFacts): boolean =>
  lastMessageMs !== undefined && electionTimerMs !== undefined && BigInt(lastMessageMs) <= BigInt(electionTimerMs);

/** All findings about the cluster as a whole, and who is behind now. */
export function clusterFindings(
  cluster: Cluster,
  rules: MemberRules,
): { readonly findings: Finding[] } & Pick<DatabaseMemory, 'lagging' | 'leaderless'> {
  const database = databaseNames[rules.key];
  const voters = cluster.seats.filter(isVoter);
  if (cluster.seats.length + cluster.silent.length + cluster.down.length === 0)
    return { findings: [], lagging: [], leaderless: 0 };
  const leaderless = leaderlessRounds(cluster, voters, rules.memory);
  const findings = [
    ...identityFindings(database, voters),
    ...leaderFindings(database, voters, leaderless, cluster.silent.length),
  ];
  const { leader } = quorumOf(cluster);
  const votes = quorumFinding(database, cluster, leaderless);
  if (votes !== undefined) findings.push(votes);
  if (leader === undefined) return { findings, lagging: rules.memory.lagging, leaderless };
  const moving = movingFinding(database, leader);
  // What a leader counts while it changes is no measure for anybody.
  if (moving !== undefined) return { findings: [...findings, moving], lagging: rules.memory.lagging, leaderless };
  findings.push(...membershipFindings(database, cluster, leader));
  const lagging: string[] = [];
  for (const seat of voters) {
    if (seat === leader) continue;
    findings.push(...followerFindings(database, seat, leader));
    const behind = lagFinding(database, seat, leader, rules.memory);
    if (behind === undefined) continue;
    findings.push(behind);
    lagging.push(seat.second.sid ?? '');
  }
  findings.push(...timerFindings(database, voters));
  return { findings, lagging, leaderless };
}

function identityFindings(database: string, voters: readonly Seat[]): Finding[] {
  const findings: Finding[] = [];
  const byCluster = Map.groupBy(voters, ({ second }) => second.cid ?? '');
  if (byCluster.size > 1) {
    const sides = [...byCluster].map(
      ([cid, seats]) =>
        `${cid} on ${seats
          .map(({ target }) => target.node.name)
          .sort()
          .join(', ')}`,
    );
    findings.push(
      broken('ClusterSplit', database, { database, observed: byCluster.size, message: sides.sort().join('; ') }),
    );
  }
  for (const [sid, seats] of Map.groupBy(voters, ({ second }) => second.sid ?? ''))
    if (seats.length > 1)
      findings.push(
        broken('ServerIDTwice', database, {
          database,
          observed: seats
            .map(({ about }) => about)
            .sort()
            .join(' and '),
          member: sid,
        }),
      );
  return findings;
}

const leads = ({ second }: Seat): boolean => second.role === 'leader';

/** How many rounds in a row nobody led; unchanged by a round that does not tell. */
function leaderlessRounds({ silent, seats }: Cluster, voters: readonly Seat[], memory: DatabaseMemory): number {
  if (voters.some(leads)) return 0;
  // Whoever is silent may lead; and a cluster that is still being built has no leader yet.
  const untold = silent.length > 0 || seats.every(({ second }) => second.status === 'joining');
  return untold ? memory.leaderless : memory.leaderless + 1;
}

/** An election takes a moment in which nobody leads; what another round finds again is no such moment. */
function leaderFindings(database: string, voters: readonly Seat[], leaderless: number, silent: number): Finding[] {
  const leaders = voters.filter(leads);
  if (leaders.length > 1) {
    const observed = leaders.map(({ about, second }) => `${about} in term ${second.term ?? '?'}`).sort();
    return [broken('LeaderTwice', database, { database, observed: observed.join(' and ') })];
  }
  if (leaders.length === 1 || leaderless === 0) return [];
  return [(leaderless > 1 && silent === 0 ? broken : open)('NoLeader', database, { database })];
}

function quorumFinding(database: string, cluster: Cluster, leaderless: number): Finding | undefined {
  const { leader, alive, size, quorum, elsewhere } = quorumOf(cluster);
  // Without a leader nobody knows how many the cluster counts; a silent member might be the one.
  if (leader === undefined && cluster.silent.length > 0) return undefined;
  // A cluster of which nobody is a member yet has lost nothing.
  if (authority(cluster.seats, leader) === undefined && cluster.seats.some(({ second }) => second.status === 'joining'))
    return undefined;
  // Whoever runs elsewhere may vote in an election under way; where another round finds no leader, nobody does.
  const unseen = leader === undefined && leaderless > 1 ? 0 : elsewhere;
  if (alive + cluster.silent.length + unseen >= quorum) return undefined;
  return broken('QuorumLost', database, { database, observed: alive, size, wanted: quorum });
}

/** A leader that was another one a moment ago makes the look stale. */
function movingFinding(database: string, { about, first, second }: Seat): Finding | undefined {
  const moving = (observed: string, wanted: string): Finding =>
    open('LeaderMoving', about, { database, observed, wanted });
  if (first.role !== 'leader' || first.term !== second.term)
    return moving(
      `leader of term ${second.term ?? '?'}`,
      `the ${first.role ?? '?'} of term ${first.term ?? '?'} that it was before`,
    );
  if (!sameSet(first.members, second.members))
    return moving(`it counts ${setText(second.members)}`, setText(first.members));
  return second.leading ? undefined : moving('it leads, and tells clients that it does not', 'both to agree');
}

/** The members that the leader counts against the pods. */
function membershipFindings(database: string, cluster: Cluster, { second }: Seat): Finding[] {
  const findings: Finding[] = [];
  for (const { sid, address, phase = 'stable' } of second.members)
    if (phase !== 'stable')
      findings.push(
        open('MembershipChanging', database, {
          database,
          observed: phase,
          member: sid,
          address: plainEndpoint(address),
        }),
      );
  findings.push(...ghostFindings(database, second.members, cluster));
  return findings;
}

/**
 * Members that are none of the pods. Whoever said nothing, or is down, may be the member at its address, or any that no pod
 * claims.
 */
function ghostFindings(database: string, members: readonly Member[], { seats, silent, down }: Cluster): Finding[] {
  const away = [...silent, ...down];
  const unclaimed = members.filter((member) => !seats.some((seat) => isServer(member, seat)));
  if (unclaimed.length <= away.length) return [];
  return unclaimed
    .filter(({ address }) => !away.some((target) => livesAt(target, address)))
    .map(({ sid, address }) => {
      const at = plainEndpoint(address);
      return broken('GhostMember', `${database} at ${at}`, { database, member: sid, address: at });
    });
}

/** A follower against the leader of the same round. */
function followerFindings(database: string, seat: Seat, leader: Seat): Finding[] {
  const { about, second: own } = seat;
  const { second: lead } = leader;
  const moving = (observed: string, wanted: string): Finding =>
    open('LeaderMoving', about, { database, observed, wanted });
  if (own.role === 'leader') return [];
  if (own.leading) return [moving('it follows, and tells clients that it leads', 'both to agree')];
  if (!lead.members.some((member) => isServer(member, seat)))
    return [broken('MemberUnlisted', about, { database, wanted: leader.about })];
  if (own.term !== lead.term)
    return [moving(`it is in term ${own.term ?? '?'}`, `term ${lead.term ?? '?'} of the leader`)];
  if (own.leader === undefined || own.leader === 'unknown' || !lead.sid?.startsWith(own.leader))
    return [moving(`its leader is ${own.leader ?? 'not told'}`, `${lead.sid?.slice(0, 4) ?? '?'}, ${leader.about}`)];
  const findings: Finding[] = [];
  const changing = lead.members.some(({ phase = 'stable' }) => phase !== 'stable');
  if (!changing && !sameSet(own.members, lead.members))
    findings.push(
      broken('MembersDisagree', about, { database, observed: setText(own.members), wanted: setText(lead.members) }),
    );
  return [...findings, ...linkFindings(database, seat, leader)];
}

/**
 * Links as both ends tell them. One live direction carries RAFT; the other end may know the peer only by address yet. Ends
 * name one another by the beginning of an id: where two members share it, a link is nobody's.
 */
function linkFindings(database: string, seat: Seat, leader: Seat): Finding[] {
  const { about, second: own } = seat;
  const { second: lead } = leader;
  const between = (from: DatabaseFacts, to: DatabaseFacts): DatabaseFacts['connections'] =>
    from.connections.filter(({ sid }) => sid !== '0000' && to.sid?.startsWith(sid));
  const named = ({ sid }: DatabaseFacts): boolean =>
    lead.members.filter((member) => sid?.startsWith(member.sid)).length <= 1;
  const links = [...(named(own) ? between(lead, own) : []), ...(named(lead) ? between(own, lead) : [])];
  const counted = lead.members.find((member) => isServer(member, seat));
  const [heard, timer] = [counted?.lastMessageMs, lead.electionTimerMs];
  if (counted !== undefined && heard !== undefined && timer !== undefined && !isHeard(counted, lead))
    return [
      broken('MemberUnlinked', about, {
        database,
        observed: `the leader heard of it ${heard}ms ago, its election timer is ${timer}ms`,
      }),
    ];
  if (!links.some(({ up }) => up)) {
    const observed = 'no connection with the leader is up';
    if (named(own) && named(lead)) return [broken('MemberUnlinked', about, { database, observed })];
    // What it said within the timer of the leader came over some link.
    const message = 'its links can not be told from those of a member whose id begins alike';
    return heard === undefined ? [open('EvidenceIncomplete', about, { component: database, message })] : [];
  }
  const down = links.filter(({ up }) => !up).length;
  return down === 0
    ? []
    : [
        weak('LinkPartlyDown', about, {
          database,
          observed: `${down} of ${links.length} connections with the leader are down`,
        }),
      ];
}

/**
 * A member has to have applied what the leader had committed before it was asked, and the leader to have heard that it has
 * it: a new leader takes nobody's word from before. Behind once may be chance.
 */
function lagFinding(database: string, seat: Seat, leader: Seat, memory: DatabaseMemory): Finding | undefined {
  const [fence, applied] = [leader.first.log?.committed, seat.second.log?.applied];
  const matched = leader.second.members.find((member) => isServer(member, seat))?.matchIndex;
  // Nothing to measure by is no proof that nobody is behind.
  if (fence === undefined)
    return open('EvidenceIncomplete', leader.about, {
      component: database,
      message: 'it told no log when it was asked first',
    });
  const behind = (index: string | undefined): boolean => index !== undefined && BigInt(index) < BigInt(fence);
  const observed = behind(applied) ? `applied ${applied}` : behind(matched) ? `confirmed ${matched}` : undefined;
  if (observed === undefined) return undefined;
  const make = memory.lagging.includes(seat.second.sid ?? '') ? broken : open;
  return make('MemberLagging', seat.about, { database, observed, wanted: fence });
}

function timerFindings(database: string, voters: readonly Seat[]): Finding[] {
  const timers = [...new Set(voters.flatMap(({ second }) => second.electionTimerMs ?? []))].sort((a, b) => a - b);
  if (timers.length < 2) return [];
  return [weak('ElectionTimersDiffer', database, { database, observed: timers.map((ms) => `${ms}ms`).join(', ') })];
}
