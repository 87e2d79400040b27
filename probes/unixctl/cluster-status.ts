/** The text of `cluster/status`, as ovsdb-server writes it from 2.17 on: one member's view of its RAFT cluster. */
import { type Line, type LineKind, type Lines, scanLines } from './cluster-lines.ts';
import { type Reading, readAs, unreadable } from './reading.ts';

const statuses = {
  'joining cluster': 'joining',
  'leaving cluster': 'leaving',
  'left cluster': 'left',
  failed: 'failed',
  'disconnected from the cluster (election timeout)': 'disconnected',
  'cluster member': 'member',
} as const;
export type MemberStatus = (typeof statuses)[keyof typeof statuses];

export type Role = 'leader' | 'follower' | 'candidate';
export type Phase = 'stable' | 'adding: catchup' | 'adding: caught up' | 'adding: committing' | 'removing';
export type ElectionReason = 'timeout' | 'leadership_transfer';

/** A member as others name it: by a nickname, which is the prefix of its id unless its address is a path. */
export type Who =
  | { readonly type: 'self' }
  | { readonly type: 'unknown' }
  | { readonly type: 'other'; readonly nickname: string };

/** A server that comes or goes; only a leader knows. */
export interface Change {
  readonly nickname: string;
  /** The first four digits of its id. */
  readonly sid: string;
  readonly address: string;
  readonly phase: Phase;
}

export interface ClusterServer extends Change {
  readonly self: boolean;
  readonly votedFor?: string;
  /** Both from a leader only. */
  readonly nextIndex?: bigint;
  readonly matchIndex?: bigint;
  /** How long ago it was last heard of. From a follower it means nothing: followers do not talk to each other. */
  readonly lastMessageMs?: bigint;
}

export interface ClusterConnection {
  readonly direction: 'in' | 'out';
  /** `0000` while the peer's id is not known. */
  readonly nickname: string;
  readonly up: boolean;
}

export interface ClusterStatus {
  readonly nickname: string;
  readonly name: string;
  readonly cid?: string;
  readonly sid: string;
  readonly address: string;
  readonly status: MemberStatus;
  /** Whom a joining server asks. */
  readonly remotes?: readonly string[];
  readonly adding: readonly Change[];
  readonly removing?: Change;
  readonly role: Role;
  readonly term: bigint;
  readonly leader: Who;
  readonly vote: Who;
  readonly lastElection?: { readonly startedMs: bigint; readonly reason: ElectionReason };
  readonly electionWonMs?: bigint;
  readonly electionTimerMs: bigint;
  readonly electionTimerChangesToMs?: bigint;
  /** `end` is the index of the next entry, not of the last. */
  readonly log: { readonly start: bigint; readonly end: bigint };
  readonly notCommitted: bigint;
  readonly notApplied: bigint;
  /** Computed from the end of the log and the counters as the server counts: 64 bits, unsigned. */
  readonly commitIndex: bigint;
  readonly appliedIndex: bigint;
  readonly connections: readonly ClusterConnection[];
  readonly disconnections?: bigint;
  /** In no order. The prefixes of two of them may be the same. */
  readonly servers: readonly ClusterServer[];
}

const who = (text: string): Who =>
  text === 'self' || text === 'unknown' ? { type: text } : { type: 'other', nickname: text };
const words = (text: string): string[] => text.split(' ').filter((word) => word !== '');

// The patterns of the lines admit no other words than those of the types.
function change({ parts: [nickname = '', sid = '', address = '', phase = 'stable'] }: Line): Change {
  return { nickname, sid, address, phase: phase as Phase };
}

function server(line: Line): ClusterServer {
  const [nickname = '', sid = '', address = '', self, phase = 'stable', votedFor, next, match, lastMessage] =
    line.parts;
  return {
    nickname,
    sid,
    address,
    self: self !== undefined,
    phase: phase as Phase,
    ...(votedFor === undefined ? {} : { votedFor }),
    ...(next === undefined || match === undefined ? {} : { nextIndex: BigInt(next), matchIndex: BigInt(match) }),
    ...(lastMessage === undefined ? {} : { lastMessageMs: BigInt(lastMessage) }),
  };
}

/** `->abcd` or `<-abcd`, in parentheses when it is down; undefined for what is none. */
function connection(token: string): ClusterConnection | undefined {
  const [, upArrow, upName, downArrow, downName] = /^(?:(->|<-)([^\s()]+)|\((->|<-)([^\s()]+)\))$/.exec(token) ?? [];
  const [arrow, nickname] = [upArrow ?? downArrow, upName ?? downName];
  if (arrow === undefined || nickname === undefined) return undefined;
  return { direction: arrow === '->' ? 'out' : 'in', nickname, up: upArrow !== undefined };
}

/** What the text says against itself. */
function contradiction(status: ClusterStatus, lines: Lines): Reading<ClusterStatus> | undefined {
  const numbers = lines.all('server').map(({ number }) => number);
  const head = lines.one('servers')?.number ?? 1;
  const selves = status.servers.flatMap((one, index) => (one.self ? [{ one, line: numbers[index] ?? head }] : []));
  const [self, second] = selves;
  if (second !== undefined) return unreadable(second.line, 'a second member that is this server');
  if (self !== undefined && self.one.address !== status.address)
    return unreadable(self.line, 'this server has another address among the members');
  if (self !== undefined && !status.sid.startsWith(self.one.sid))
    return unreadable(self.line, 'this server has another id among the members');
  if (status.status === 'member' && status.servers.length === 0)
    return unreadable(head, 'a member of a cluster that has none');
  return undefined;
}

/** Reads the whole text. */
export function readClusterStatus(text: string): Reading<ClusterStatus> {
  const scanned = scanLines(text);
  if (scanned.type !== 'read') return scanned;
  const lines = scanned.value;
  const part = (kind: LineKind, index = 0): string | undefined => lines.one(kind)?.parts[index];
  const number = (kind: LineKind, index = 0): bigint => BigInt(part(kind, index) ?? 0);
  const given = <T>(kind: LineKind, make: () => T, index?: number): T | Record<never, never> =>
    (index === undefined ? lines.one(kind) : part(kind, index)) === undefined ? {} : make();

  const connections = words(part('connections') ?? '').map(connection);
  const broken = connections.indexOf(undefined);
  if (broken >= 0) return unreadable(lines.one('connections')?.number ?? 1, `connection ${broken + 1} is none`);
  const end = number('log', 1);
  const removing = lines.one('removing');
  const before = (count: bigint): bigint => BigInt.asUintN(64, end - 1n - count);
  const value: ClusterStatus = {
    nickname: lines.nickname,
    name: part('name') ?? '',
    ...given('cid', () => ({ cid: part('cid') ?? '' }), 0),
    sid: part('sid') ?? '',
    address: part('address') ?? '',
    status: statuses[part('status') as keyof typeof statuses],
    ...given('remotes', () => ({ remotes: words(part('remotes') ?? '') })),
    adding: lines.all('adding').map(change),
    ...(removing === undefined ? {} : { removing: change(removing) }),
    role: part('role') as Role,
    term: number('term'),
    leader: who(part('leader') ?? ''),
    vote: who(part('vote') ?? ''),
    ...given('election', () => ({
      lastElection: { startedMs: number('election'), reason: part('election', 1) as ElectionReason },
    })),
    ...given('won', () => ({ electionWonMs: number('won') })),
    electionTimerMs: number('timer'),
    ...given('timer', () => ({ electionTimerChangesToMs: number('timer', 1) }), 1),
    log: { start: number('log'), end },
    notCommitted: number('uncommitted'),
    notApplied: number('unapplied'),
    commitIndex: before(number('uncommitted')),
    appliedIndex: before(number('unapplied')),
    connections: connections.filter((one) => one !== undefined),
    ...given('disconnections', () => ({ disconnections: number('disconnections') })),
    servers: lines.all('server').map(server),
  };
  return contradiction(value, lines) ?? readAs(value);
}
