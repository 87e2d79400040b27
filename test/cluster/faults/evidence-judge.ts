/**
 * What conditions did while something was wrong, and after it was mended: whether exactly the right ones moved, in time, and
 * nothing else did. Times are milliseconds of one clock that never jumps. Pure.
 */

export type Status = 'True' | 'False' | 'Unknown';

export interface ConditionState {
  readonly status: Status;
  readonly reason: string;
  readonly message: string;
}

/** Conditions of an installation by their type, as one write of its status left them. */
export interface Snapshot {
  readonly at: number;
  readonly conditions: Readonly<Record<string, ConditionState>>;
}

/** A condition that has to move, and where to. `*` in its message is anything. */
export interface Move {
  readonly type: string;
  readonly status: Status;
  readonly reason: string;
  readonly message: string;
  /** What its message has to hold besides, wherever that is. */
  readonly mentions?: string;
}

/** What was seen since something was done. */
export interface Seen {
  /** How everything is when nothing is wrong. */
  readonly before: Snapshot;
  /** How everything was when it was done. */
  readonly from: Snapshot;
  readonly doneAt: number;
  /** What was written afterwards, in order. */
  readonly snapshots: readonly Snapshot[];
  /** When rounds of observation ended, in order. */
  readonly rounds: readonly number[];
  readonly now: number;
}

interface Patience {
  /** For the conditions to move. */
  readonly limitMs: number;
  /** Rounds in which nothing may move afterwards. */
  readonly rounds: number;
}

export type Judged =
  | { readonly type: 'waiting'; readonly why: string }
  | { readonly type: 'wrong'; readonly why: string }
  /** As it has to be, and for how many milliseconds it was not. */
  | { readonly type: 'right'; readonly afterMs: number };

/** What follows of all others: how much is lost, and whether the whole is ready. */
const derived = { degraded: 'Degraded', ready: 'Ready' } as const;

/** Parts whose conditions decide over Ready; HCPReady is no part of an installation with a central of its own. */
export const parts = [
  'WorkloadsReady',
  'OVNDBReady',
  'NorthdReady',
  'DataPlaneReady',
  'NetworkReady',
  'TopologyRecorded',
] as const;

const said = (state: ConditionState | undefined): string =>
  state === undefined ? 'absent' : `${state.status} ${state.reason}: ${state.message}`;

/** Whether a message is as a pattern has it, in which `*` stands for anything. */
function matches(pattern: string, message: string): boolean {
  const escaped = pattern.split('*').map((piece) => piece.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`, 's').test(message);
}

const isAs = (state: ConditionState | undefined, { status, reason, message, mentions = '' }: Move): boolean =>
  state?.status === status &&
  state.reason === reason &&
  matches(message, state.message) &&
  state.message.includes(mentions);

/** What Ready has to be in a write with these conditions. */
export function readyOf(conditions: Snapshot['conditions']): Status {
  const all = parts.map((type) => conditions[type]?.status);
  if (all.includes('False')) return 'False';
  return all.every((status) => status === 'True') ? 'True' : 'Unknown';
}

/** What Degraded comes to where exactly these moves were made. */
export function degradedBy(moves: readonly Move[]): Status {
  const own = moves.find(({ type }) => type === derived.degraded);
  if (own !== undefined) return own.status;
  if (moves.some(({ status }) => status === 'False')) return 'True';
  return moves.length === 0 ? 'False' : 'Unknown';
}

/**
 * How a write contradicts itself; all of it comes of one look. A Release looks at its gates at its own pace: Ready may wait for
 * that, but never be True beside a part that is not, nor hide what was seen to be broken.
 */
function contradiction({ conditions }: Snapshot): string | undefined {
  const ready = conditions[derived.ready];
  const open = parts.filter((type) => conditions[type]?.status !== 'True');
  const broken = open.some((type) => type !== 'WorkloadsReady' && conditions[type]?.status === 'False');
  if (open.length === 0 || (ready?.status !== 'True' && (!broken || ready?.status === 'False'))) return undefined;
  return `Ready is ${said(ready)} where ${open.join(', ')} is not True`;
}

/** Whether a condition is as before, apart from its words: a leader's name or an index may change in them. */
const stands = (before: Snapshot, now: Snapshot, type: string): boolean => {
  const [was, is] = [before.conditions[type], now.conditions[type]];
  return was?.status === is?.status && was?.reason === is?.reason;
};

/** A condition outside of `free` that moved. */
function strayed({ before }: Seen, snapshot: Snapshot, free: ReadonlySet<string>): string | undefined {
  const type = parts.find((one) => !free.has(one) && !stands(before, snapshot, one));
  if (type === undefined) return undefined;
  return `${type} moved from ${said(before.conditions[type])} to ${said(snapshot.conditions[type])}`;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** How many rounds ended after a moment. */
const roundsSince = (rounds: readonly number[], at: number): number => rounds.filter((end) => end > at).length;

const wrong = (seen: Seen, at: number, why: string): Judged => ({
  type: 'wrong',
  why: `after ${seconds(at - seen.doneAt)}: ${why}`,
});

/**
 * Whether something that was broken is told: each of the moves is made within the limit, on the way at most through Unknown,
 * and stands for so many rounds, in which no other condition moves. Those of `follow` may move along later, or further where
 * they have moved already.
 */
export function judgeFault(
  seen: Seen,
  moves: readonly Move[],
  follow: readonly string[],
  { limitMs, rounds }: Patience,
): Judged {
  const moving = new Set([...moves.map(({ type }) => type), ...follow]);
  const degraded = degradedBy(moves);
  const standing = moves.filter(({ type }) => !follow.includes(type));
  let since = moves.length === 0 ? seen.doneAt : undefined;
  for (const snapshot of seen.snapshots) {
    const { at, conditions } = snapshot;
    const wanted = since === undefined ? moves : standing;
    const bad = contradiction(snapshot) ?? strayed(seen, snapshot, moving) ?? detour(seen, snapshot, wanted);
    if (bad !== undefined) return wrong(seen, at, bad);
    const made = wanted.every((move) => isAs(conditions[move.type], move));
    if (since !== undefined && !made) return wrong(seen, at, `it did not stand: ${missing(snapshot, wanted)}`);
    if (made && conditions[derived.degraded]?.status !== degraded)
      return wrong(seen, at, `Degraded is ${said(conditions[derived.degraded])}, wanted ${degraded}`);
    if (made) since ??= at;
  }
  if (since === undefined) {
    if (seen.now - seen.doneAt <= limitMs) return { type: 'waiting', why: missing(latest(seen), moves) };
    return wrong(seen, seen.now, missing(latest(seen), moves));
  }
  if (since - seen.doneAt > limitMs) return wrong(seen, since, `that is later than ${seconds(limitMs)}`);
  const ended = roundsSince(seen.rounds, since);
  if (ended < rounds) return { type: 'waiting', why: `${ended} of ${rounds} rounds have ended since` };
  return { type: 'right', afterMs: since - seen.doneAt };
}

const latest = ({ from, snapshots }: Seen): Snapshot => snapshots.at(-1) ?? from;

const missing = ({ conditions }: Snapshot, moves: readonly Move[]): string =>
  moves
    .filter((move) => !isAs(conditions[move.type], move))
    .map((move) => `${move.type} is ${said(conditions[move.type])}, wanted ${said(move)}`)
    .join('; ');

/** On its way a condition is as it was, Unknown, or as it has to be; a passing False would be a false alarm. */
function detour({ before }: Seen, snapshot: Snapshot, moves: readonly Move[]): string | undefined {
  for (const { type, status, reason } of moves) {
    const state = snapshot.conditions[type];
    if (type === derived.degraded || state?.status === 'Unknown') continue;
    if (state?.status === status && state.reason === reason) continue;
    if (!stands(before, snapshot, type)) return `${type} went to ${said(state)}, wanted ${status}`;
  }
  return undefined;
}

/**
 * Whether everything is as before again within the limit, and stays so for so many rounds. On the way only those of `touched`
 * may move.
 */
export function judgeRepair(seen: Seen, touched: readonly string[], { limitMs, rounds }: Patience): Judged {
  const free = new Set(touched);
  const all = [...parts, derived.degraded, derived.ready];
  const differs = (snapshot: Snapshot): string[] => all.filter((type) => !stands(seen.before, snapshot, type));
  const now = latest(seen);
  let since = differs(seen.from).length === 0 ? seen.doneAt : undefined;
  for (const snapshot of seen.snapshots) {
    const { at } = snapshot;
    const bad = contradiction(snapshot) ?? strayed(seen, snapshot, free);
    if (bad !== undefined) return wrong(seen, at, bad);
    since = differs(snapshot).length === 0 ? (since ?? at) : undefined;
  }
  if (since === undefined) {
    const why = differs(now).map((type) => `${type} is still ${said(now.conditions[type])}`);
    if (seen.now - seen.doneAt <= limitMs) return { type: 'waiting', why: why.join('; ') };
    return wrong(seen, seen.now, why.join('; '));
  }
  if (since - seen.doneAt > limitMs) return wrong(seen, since, `that is later than ${seconds(limitMs)}`);
  const ended = roundsSince(seen.rounds, since);
  if (ended < rounds) return { type: 'waiting', why: `${ended} of ${rounds} rounds have ended since` };
  return { type: 'right', afterMs: since - seen.doneAt };
}

/** What was seen since something was done, a line for each change, for whoever has to find out why it was wrong. */
export function storyOf({
  from,
  doneAt,
  snapshots,
  rounds,
}: Pick<Seen, 'from' | 'doneAt' | 'snapshots' | 'rounds'>): string[] {
  const told: { at: number; text: string }[] = rounds
    .filter((at) => at > doneAt)
    .map((at) => ({ at, text: 'a round ended' }));
  let before = from;
  for (const snapshot of snapshots) {
    for (const type of [...parts, derived.degraded, derived.ready])
      if (said(snapshot.conditions[type]) !== said(before.conditions[type]))
        told.push({ at: snapshot.at, text: `${type} ${said(snapshot.conditions[type])}` });
    before = snapshot;
  }
  return told.toSorted((a, b) => a.at - b.at).map(({ at, text }) => `  ${seconds(at - doneAt)}: ${text}`);
}
