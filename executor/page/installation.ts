/** An installation of the network as the page shows it: what its status says, and what the last round saw. Pure. */
import { timeText } from '../../constructs/api/conditions.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Observed } from '../network/evidence.ts';
import { type DrainRow, freshDrain } from '../observe/drain.ts';
import type { Cell, Matrix, MemberRow, NodeRow } from '../observe/matrix.ts';
import {
  type DatabaseView,
  type DrainView,
  type InstallationView,
  type MatrixCell,
  type MatrixCount,
  type MatrixRow,
  type MatrixView,
  pageLimits,
} from './model.ts';
import { conditionsView, countOf, markOfCell, short, textOf } from './words.ts';

const cellView = ({ state, word, detail = '' }: Cell): MatrixCell => ({
  mark: markOfCell[state],
  word: state === 'absent' ? 'none' : short(word),
  detail: short(detail),
});

const cellsOf = ({ kubelet, central, chassis, probe }: NodeRow): readonly [Cell, Cell, Cell, Cell] => [
  kubelet,
  central,
  chassis,
  probe,
];

function rowView(row: NodeRow): MatrixRow {
  const [kubelet, central, chassis, probe] = cellsOf(row);
  return { name: row.name, cells: [cellView(kubelet), cellView(central), cellView(chassis), cellView(probe)] };
}

const isWell = (row: NodeRow): boolean =>
  cellsOf(row).every(({ state, word }) => (state === 'well' && word !== 'cordoned') || state === 'absent');

/** The matrix within its bounds: a large cluster shows those who need somebody, the broken ones first. */
export function matrixView({ nodes }: Pick<Matrix, 'nodes'>): MatrixView {
  const count = (column: 0 | 1 | 2 | 3): MatrixCount => {
    const states = nodes.map((row) => cellsOf(row)[column].state);
    const of = (state: Cell['state']): number => states.filter((one) => one === state).length;
    return { well: of('well'), broken: of('broken'), unknown: of('unknown') };
  };
  const summarised = nodes.length > pageLimits.wholeMatrix;
  const broken = (row: NodeRow): number => (cellsOf(row).some(({ state }) => state === 'broken') ? 0 : 1);
  const wanted = summarised ? nodes.filter((row) => !isWell(row)).toSorted((a, b) => broken(a) - broken(b)) : nodes;
  const rows = summarised ? wanted.slice(0, pageLimits.matrixRows) : wanted;
  return {
    nodes: nodes.length,
    counts: [count(0), count(1), count(2), count(3)],
    rows: rows.map(rowView),
    summarised,
    more: wanted.length - rows.length,
  };
}

const highest = (terms: readonly string[]): string =>
  terms.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1)).at(-1) ?? '';

/** One database as its servers told it in the last round. */
function observedDatabase(name: string, members: readonly MemberRow[]): DatabaseView {
  return {
    name,
    model: members.some(({ status }) => status === 'standalone') ? 'standalone' : 'clustered',
    leader: members.find(({ leads }) => leads)?.node ?? '',
    term: highest(members.flatMap(({ term }) => term ?? [])),
    members: members.map(({ node, leads, state, status, serverID = '', index = '', unapplied = '', links = '' }) => ({
      node,
      leads,
      mark: markOfCell[state],
      word: status,
      serverID: serverID.slice(0, 4),
      index,
      unapplied,
      links,
    })),
  };
}

/** One database as the status has it, where this process saw nothing itself. */
function toldDatabase(database: JsonObject): DatabaseView {
  const leader = textOf(database.leader);
  const members = objectsOf(database.members);
  const isLeader = ({ serverID }: JsonObject): boolean => leader !== '' && serverID === leader;
  return {
    name: textOf(database.name),
    model: textOf(database.model),
    leader: textOf(members.find(isLeader)?.node),
    term: textOf(database.term),
    members: members.map((member) => ({
      node: textOf(member.node),
      leads: isLeader(member),
      // A status tells who belongs to it, and not how they are: nobody here has seen that yet.
      mark: 'unknown',
      word: isLeader(member) ? 'leader' : 'member',
      serverID: textOf(member.serverID).slice(0, 4),
      index: textOf(member.index),
      unapplied: '',
      links: '',
    })),
  };
}

function databasesOf(matrix: Matrix | undefined, status: JsonObject): DatabaseView[] {
  if (matrix === undefined || matrix.members.length === 0)
    return objectsOf(objectOf(status.topology).databases).map(toldDatabase);
  const names = [...new Set(matrix.members.map(({ database }) => database))];
  return names.map((name) =>
    observedDatabase(
      name,
      matrix.members.filter(({ database }) => database === name),
    ),
  );
}

/** A node that waits for something is neither well nor broken: somebody is at work there. */
const markOfDrain = { drained: 'well', blocked: 'working', unknown: 'unknown' } as const;

function drainView(row: DrainRow, tick: number): DrainView {
  const verdict = freshDrain(row, tick);
  const why =
    verdict.state === 'drained' ? [] : [...(verdict.state === 'blocked' ? verdict.blockers : []), ...verdict.unknown];
  // An age would make another page of it every second.
  const stale = tick - row.seenTick > row.limitMs;
  const held = `nobody has looked at it for longer than the ${formatDuration(row.limitMs)} that an answer holds`;
  return {
    node: row.node,
    mark: markOfDrain[verdict.state],
    word: verdict.state,
    why: stale ? [held] : why.map(({ message }) => short(message)),
  };
}

/** @param tick now, on the clock that never jumps */
export function installationView(
  installation: KubeObject,
  observed: Observed | undefined,
  tick: number,
): InstallationView {
  const status = objectOf(installation.status);
  const { matrix, drains = [] } = observed ?? {};
  const leaving = drains.filter(({ cordoned }) => cordoned);
  const network = status.network === undefined ? undefined : objectOf(status.network);
  const time = observed?.verdict.time;
  return {
    namespace: installation.metadata.namespace ?? '',
    name: installation.metadata.name ?? '',
    phase: textOf(status.phase) || 'Pending',
    version: textOf(status.observedVersion),
    ...conditionsView(status),
    ...(observed === undefined || time === undefined
      ? {}
      : {
          evidence: {
            seenAt: timeText(time.endedAt),
            tookMs: Math.round(time.endedTick - time.startedTick),
            limitMs: observed.limitMs,
            stale: tick - time.endedTick > observed.limitMs,
          },
        }),
    databases: databasesOf(matrix, status),
    northd: (matrix?.northd ?? []).map(({ node, state, status: word }) => ({ node, mark: markOfCell[state], word })),
    ...(matrix?.progress === undefined ? {} : { progress: matrix.progress }),
    ...(network === undefined
      ? {}
      : {
          network: {
            passed: countOf(network.passed),
            checks: countOf(network.checks),
            families: Array.isArray(network.families) ? network.families.map(String).join(', ') : '',
            missing: Array.isArray(network.missing) ? network.missing.map((one) => short(String(one))) : [],
          },
        }),
    ...(matrix === undefined || matrix.nodes.length === 0 ? {} : { matrix: matrixView(matrix) }),
    drains: leaving.slice(0, pageLimits.drains).map((row) => drainView(row, tick)),
    drainsMore: Math.max(0, leaving.length - pageLimits.drains),
  };
}
