/** The lines of `cluster/status`: which there are, how often, and the parts of each. */
import { type Reading, readAs, unreadable } from './reading.ts';

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const phase = 'stable|adding: catchup|adding: caught up|adding: committing|removing';
const changing = `server (\\S+) \\(([0-9a-f]{4}) at (\\S+)\\) \\((${phase})\\)`;

/** By kind: how the line begins, and the whole of it. A line that begins like one and does not go on like it is refused. */
const grammar = {
  name: ['Name: ', /^Name: (\S+)$/],
  cid: ['Cluster ID: ', new RegExp(`^Cluster ID: (?:not yet known|[0-9a-f]{4} \\((${uuid})\\))$`)],
  sid: ['Server ID: ', new RegExp(`^Server ID: [0-9a-f]{4} \\((${uuid})\\)$`)],
  address: ['Address: ', /^Address: (\S+)$/],
  status: [
    'Status: ',
    /^Status: (joining cluster|leaving cluster|left cluster|failed|disconnected from the cluster \(election timeout\)|cluster member)$/,
  ],
  remotes: ['Remotes for joining:', /^Remotes for joining:((?: \S+)*)$/],
  adding: ['Adding server ', new RegExp(`^Adding ${changing}$`)],
  removing: ['Removing server ', new RegExp(`^Removing ${changing}$`)],
  role: ['Role: ', /^Role: (leader|follower|candidate)$/],
  term: ['Term: ', /^Term: ([0-9]+)$/],
  leader: ['Leader: ', /^Leader: (\S+)$/],
  vote: ['Vote: ', /^Vote: (\S+)$/],
  election: [
    'Last Election started ',
    /^Last Election started ([0-9]+) ms ago, reason: (timeout|leadership_transfer)$/,
  ],
  won: ['Last Election won: ', /^Last Election won: ([0-9]+) ms ago$/],
  timer: ['Election timer: ', /^Election timer: ([0-9]+)(?: \(changing to ([0-9]+)\))?$/],
  log: ['Log: ', /^Log: \[([0-9]+), ([0-9]+)\]$/],
  uncommitted: ['Entries not yet committed: ', /^Entries not yet committed: ([0-9]+)$/],
  unapplied: ['Entries not yet applied: ', /^Entries not yet applied: ([0-9]+)$/],
  connections: ['Connections:', /^Connections:((?: \S+)*) ?$/],
  disconnections: ['Disconnections: ', /^Disconnections: ([0-9]+)$/],
  servers: ['Servers:', /^Servers:$/],
  server: [
    '    ',
    new RegExp(
      `^ {4}(\\S+) \\(([0-9a-f]{4}) at (\\S+)\\)( \\(self\\))?(?: \\((${phase})\\))?(?: \\(voted for (\\S+)\\))?` +
        '(?: next_index=([0-9]+) match_index=([0-9]+))?(?: last msg ([0-9]+) ms ago)?$',
    ),
  ],
} as const satisfies Readonly<Record<string, readonly [string, RegExp]>>;

export type LineKind = keyof typeof grammar;
const kinds = Object.keys(grammar) as readonly LineKind[];
const repeated: ReadonlySet<LineKind> = new Set(['adding', 'server']);

/** Lines of every member in every state. */
const required: readonly LineKind[] = [
  ...(['name', 'cid', 'sid', 'address', 'status', 'role', 'term', 'leader', 'vote', 'timer'] as const),
  ...(['log', 'uncommitted', 'unapplied', 'connections', 'servers'] as const),
];

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** What the groups of its pattern hold, in their order. */
  readonly parts: readonly (string | undefined)[];
}

export interface Lines {
  readonly nickname: string;
  /** The line of a kind that stands at most once. */
  one(kind: LineKind): Line | undefined;
  all(kind: LineKind): readonly Line[];
}

const maxUnsigned = 2n ** 64n - 1n;
const tooLarge = (part: string | undefined): boolean =>
  part !== undefined && /^[0-9]+$/.test(part) && (part.length > 20 || BigInt(part) > maxUnsigned);

/** Sorts the lines by kind. A line `Key: value` of no known kind is passed over: a newer server may tell more. */
export function scanLines(text: string): Reading<Lines> {
  const [nickname = '', ...rest] = text.trimEnd().split('\n');
  if (!/^\S+$/.test(nickname)) return unreadable(1, 'the first line is no nickname');
  const found = new Map<LineKind, Line[]>(kinds.map((kind) => [kind, []]));
  for (const [index, line] of rest.entries()) {
    const number = index + 2;
    const kind = kinds.find((candidate) => line.startsWith(grammar[candidate][0]));
    if (kind === undefined) {
      if (line === '' || /^[A-Z][A-Za-z ]*: \S/.test(line)) continue;
      return unreadable(number, 'a line of no known form');
    }
    const parts = grammar[kind][1].exec(line)?.slice(1);
    if (parts === undefined || parts.some(tooLarge)) return unreadable(number, `not a line of the ${kind}`);
    const lines = found.get(kind) ?? [];
    if (lines.length > 0 && !repeated.has(kind)) return unreadable(number, `a second line of the ${kind}`);
    if (kind === 'server' && found.get('servers')?.length === 0)
      return unreadable(number, 'a server before their head');
    lines.push({ number, parts });
  }
  const missing = required.find((kind) => found.get(kind)?.length === 0);
  if (missing !== undefined) return unreadable(rest.length + 1, `no line of the ${missing}`);
  const all = (kind: LineKind): readonly Line[] => found.get(kind) ?? [];
  return readAs({ nickname, all, one: (kind) => all(kind)[0] });
}
