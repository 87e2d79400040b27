/** What one member of OVN central says of one database, by itself. Pure. */
import type { CentralFacts, DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { broken, type Finding, memberName, missing, open, silence, weak } from './finding.ts';
import type { CentralSample, CentralTarget } from './round.ts';

export type DatabaseKey = 'nb' | 'sb';

export const databaseNames = { nb: 'OVN_Northbound', sb: 'OVN_Southbound' } as const satisfies Record<
  DatabaseKey,
  string
>;

export type DatabaseModel = 'clustered' | 'standalone';

/** What is remembered of the members of one database from one round to the next. */
export interface DatabaseMemory {
  /** Since when a member is joining, by pod; on the clock that never jumps. */
  readonly joining: Readonly<Record<string, number>>;
  /** Highest index told to clients, by cluster and server. */
  readonly indexes: Readonly<Record<string, string>>;
  /** Servers that were behind the leader in the last round. */
  readonly lagging: readonly string[];
  /** Rounds in a row in which nobody led. */
  readonly leaderless: number;
}

export const emptyDatabaseMemory: DatabaseMemory = { joining: {}, indexes: {}, lagging: [], leaderless: 0 };

/** A target and what its server said in both passes of a round. */
export interface Seat {
  readonly target: CentralTarget;
  readonly about: string;
  readonly first: DatabaseFacts;
  readonly second: DatabaseFacts;
}

export type SeatReading =
  | { readonly seat: Seat }
  /** Why there is none; a silent one may well be a member. */
  | { readonly target: CentralTarget; readonly finding: Finding };

const sameDaemon = (a: DatabaseFacts, b: DatabaseFacts): boolean =>
  a.daemon.socketInode === b.daemon.socketInode && a.daemon.startTicks === b.daemon.startTicks;

/** What must not be another between two answers. A server that joins learns of its cluster meanwhile. */
const fixed = ['row', 'sid', 'cid'] as const;
const sameDatabase = (a: DatabaseFacts, b: DatabaseFacts): boolean =>
  fixed.every((one) => a[one] === undefined || b[one] === undefined || a[one] === b[one]);

/** Both passes of a member, or why they do not count. */
export function seatOf({ target, first, second }: CentralSample, key: DatabaseKey): SeatReading {
  const about = memberName(target);
  const silent = silence(first, about) ?? silence(second, about);
  if (silent !== undefined || first.type !== 'Evidence' || second.type !== 'Evidence')
    return { target, finding: silent ?? open('RoundPending', about) };
  const found = (facts: CentralFacts): DatabaseFacts | undefined => facts[key];
  const [before, after] = [found(first.evidence.facts), found(second.evidence.facts)];
  if (after === undefined) return { target, finding: missing(second.evidence, key, about) };
  if (before === undefined || !sameDaemon(before, after))
    return {
      target,
      finding: open('EvidenceMoved', about, { message: `ovsdb-server of ${databaseNames[key]} was started anew` }),
    };
  if (!sameDatabase(before, after))
    return { target, finding: open('EvidenceMoved', about, { message: `${databaseNames[key]} was opened anew` }) };
  return { seat: { target, about, first: before, second: after } };
}

/** A member that joins for longer than this does not get there by itself. */
const joiningLimitMs = 120_000;
/** Less room than this is told. */
const leastFreeBytes = 256n * 1024n * 1024n;
/** With less than this the next entry may find no place. */
const fullBelowBytes = 1024n * 1024n;

export interface MemberRules {
  readonly key: DatabaseKey;
  readonly model: DatabaseModel;
  /** On the clock that never jumps. */
  readonly tick: number;
  readonly memory: DatabaseMemory;
}

const podKey = ({ target }: Pick<Seat, 'target'>): string => target.pod?.uid ?? target.node.name;

/** Name of a server in what is remembered: an index counts within its cluster only. */
const serverKey = ({ cid, sid }: DatabaseFacts): string => `${cid ?? 'standalone'}/${sid ?? ''}`;

/** What is wrong with one member, whatever the others say. */
export function memberFindings(seat: Seat, rules: MemberRules): Finding[] {
  const { about, second: facts } = seat;
  const database = databaseNames[rules.key];
  if (facts.name !== database)
    return [broken('DatabaseOther', about, { database, observed: facts.name, wanted: database })];
  if (facts.model !== rules.model)
    return [broken('DatabaseOther', about, { database, observed: facts.model, wanted: rules.model })];
  const findings: Finding[] = [];
  if (facts.storage !== 'ok') findings.push(broken('StorageFailed', about, { database, observed: facts.storage }));
  const room = roomFinding(seat, database);
  if (room !== undefined) findings.push(room);
  const standing = standingFinding(seat, rules);
  return standing === undefined ? [...findings, ...indexFindings(seat, rules)] : [...findings, standing];
}

/**
 * A follower without room says that its storage is well and goes on in memory; only that the leader hears nothing of it any more
 * would tell, and that reads like a broken link.
 */
function roomFinding({ about, second }: Seat, database: string): Finding | undefined {
  const free = BigInt(second.freeBytes);
  if (free < fullBelowBytes) return broken('DiskFull', about, { database, observed: `${free / 1_024n} KiB` });
  if (free >= leastFreeBytes) return undefined;
  const [observed, wanted] = [free, leastFreeBytes].map((bytes) => `${bytes / 1_048_576n} MiB`) as [string, string];
  return weak('DiskNearlyFull', about, { database, observed, wanted });
}

/** Whether it is a member at all. Ready of the pod says nothing about it, nor does `connected` alone. */
function standingFinding(seat: Seat, rules: MemberRules): Finding | undefined {
  const { about, second: facts } = seat;
  const database = databaseNames[rules.key];
  const other = (observed: string): Finding => broken('MemberNotMember', about, { database, observed });
  if (rules.model === 'standalone') {
    if (facts.status !== 'standalone')
      return broken('DatabaseOther', about, { database, observed: facts.status, wanted: 'standalone' });
    return facts.connected ? undefined : other('not connected to its storage');
  }
  if (facts.status === 'joining') {
    const elapsed = rules.tick - (rules.memory.joining[podKey(seat)] ?? rules.tick);
    return elapsed < joiningLimitMs
      ? open('MemberJoining', about, { database, elapsed: formatDuration(elapsed) })
      : other(`joining for ${formatDuration(elapsed)}`);
  }
  if (facts.status !== 'member') return other(facts.status);
  if (facts.role === 'candidate') return open('MemberElecting', about, { database });
  if (!facts.connected) return other('not connected to its storage');
  const lacks = (['cid', 'sid', 'address', 'role', 'term', 'log'] as const).filter((one) => facts[one] === undefined);
  if (lacks.length === 0) return undefined;
  return open('EvidenceIncomplete', about, { component: database, message: `it tells no ${lacks.join(', ')}` });
}

function indexFindings(seat: Seat, { key, model, memory }: MemberRules): Finding[] {
  const { about, first, second } = seat;
  if (model === 'standalone') return [];
  const database = databaseNames[key];
  const now = BigInt(second.index ?? '0');
  if (now <= 0n) return [broken('IndexMissing', about, { database, observed: second.index ?? 'none' })];
  const [told, remembered] = [BigInt(first.index ?? '0'), BigInt(memory.indexes[serverKey(second)] ?? '0')];
  const highest = told > remembered ? told : remembered;
  if (serverKey(first) !== serverKey(second) || now >= highest) return [];
  return [broken('IndexBackwards', about, { database, observed: String(now), wanted: String(highest) })];
}

/** Whether a server is a member that can vote, also while it looks for a leader. */
export const canVote = ({ second }: Seat): boolean =>
  second.model === 'clustered' && second.status === 'member' && second.connected;

/** Whether it has a leader, or is one: only then does what it says of the others count. */
export const isVoter = (seat: Seat): boolean => canVote(seat) && seat.second.role !== 'candidate';

/** What to remember. A member that was not seen is remembered as it was: a silence makes nobody start anew. */
export function rememberMembers(
  readings: readonly SeatReading[],
  { tick, memory }: MemberRules,
): Pick<DatabaseMemory, 'joining' | 'indexes'> {
  const joining: Record<string, number> = {};
  const indexes: Record<string, string> = {};
  // What two pods tell of one server only one of them knows.
  const tellers = Map.groupBy(
    readings.flatMap((reading) => ('seat' in reading ? [serverKey(reading.seat.second)] : [])),
    (server) => server,
  );
  const keep = (key: string): void => {
    const since = memory.joining[key];
    if (since !== undefined) joining[key] = since;
  };
  for (const reading of readings) {
    if (!('seat' in reading)) {
      keep(reading.target.pod?.uid ?? reading.target.node.name);
      continue;
    }
    const { seat } = reading;
    const server = serverKey(seat.second);
    if (seat.second.status === 'joining') joining[podKey(seat)] = memory.joining[podKey(seat)] ?? tick;
    const [seen, before] = [seat.second.index, memory.indexes[server]];
    if (seen !== undefined && seat.second.sid !== undefined && tellers.get(server)?.length === 1)
      indexes[server] = before !== undefined && BigInt(before) > BigInt(seen) ? before : seen;
  }
  // Servers that were not seen keep their index, as many as there can be; what is gone for good falls out at the end.
  for (const [server, index] of Object.entries(memory.indexes))
    if (indexes[server] === undefined && Object.keys(indexes).length < mostServers) indexes[server] = index;
  return { joining, indexes };
}

const mostServers = 32;
