/**
 * What one round saw, node by node, for people: what the sidecars said themselves, before it is judged. Conditions say what
 * follows of it. Pure.
 */
import type { CentralFacts, DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { silence } from './finding.ts';
import type { CentralSample, ChassisSample, NodeFacts, Outcome } from './round.ts';
import type { Round } from './verdict.ts';

/** `absent`: nothing of the kind is wanted there. */
export type CellState = 'well' | 'broken' | 'unknown' | 'absent';

export interface Cell {
  readonly state: CellState;
  /** One or two words. */
  readonly word: string;
  readonly detail?: string;
}

export interface NodeRow {
  readonly name: string;
  readonly kubelet: Cell;
  readonly central: Cell;
  readonly chassis: Cell;
  readonly probe: Cell;
}

/** One server of one database, as it tells of itself. */
export interface MemberRow {
  readonly database: string;
  readonly node: string;
  readonly state: CellState;
  /** How it stands in its cluster, or why nothing is known. */
  readonly status: string;
  readonly leads: boolean;
  readonly serverID?: string;
  readonly term?: string;
  readonly index?: string;
  /** Entries that it has and has not applied. */
  readonly unapplied?: string;
  /** Connections to the other members that are up, of all. */
  readonly links?: string;
}

export interface NorthdRow {
  readonly node: string;
  readonly state: CellState;
  /** `active`, `standby`, `paused`, or why nothing is known. */
  readonly status: string;
  readonly version?: string;
}

export interface Matrix {
  /** By name. */
  readonly nodes: readonly NodeRow[];
  readonly members: readonly MemberRow[];
  readonly northd: readonly NorthdRow[];
  /** How far a change has come: northd copies it to SB, chassis carry it out. */
  readonly progress?: { readonly nbCfg: string; readonly sbCfg: string; readonly hvCfg: string };
}

const absent: Cell = { state: 'absent', word: '' };

/** Why there is no evidence, in a word or two. */
const silentWords: Readonly<Record<Exclude<Outcome<'central'>['type'], 'Evidence'>, string>> = {
  Unreachable: 'unreachable',
  Untrusted: 'untrusted',
  Hung: 'hung',
  Unreadable: 'unreadable',
  IdentityChanged: 'moved',
  Broken: 'missing',
};

function silent(outcome: Outcome<'central'> | Outcome<'chassis'> | Outcome<'network'>, about: string): Cell {
  if (outcome.type === 'Evidence') return absent;
  const state = outcome.type === 'Broken' ? 'broken' : 'unknown';
  return { state, word: silentWords[outcome.type], detail: silence(outcome, about)?.message ?? '' };
}

/** A component that its sidecar could not ask. */
function lacking(problems: readonly { component: string; code: string; message: string }[], component: string): Cell {
  const problem = problems.find((one) => one.component === component);
  const state = problem?.code === 'refused' ? 'broken' : 'unknown';
  return { state, word: `${component} ${problem?.code ?? 'absent'}`, detail: problem?.message ?? 'it tells no reason' };
}

const worse: readonly CellState[] = ['broken', 'unknown', 'well', 'absent'];
const worst = (cells: readonly Cell[]): Cell =>
  cells.toSorted((a, b) => worse.indexOf(a.state) - worse.indexOf(b.state))[0] ?? absent;

function kubeletCell(live: NodeFacts | undefined): Cell {
  if (live === undefined) return { state: 'broken', word: 'gone' };
  if (live.ready !== 'True')
    return live.ready === 'False' ? { state: 'broken', word: 'not ready' } : { state: 'unknown', word: 'silent' };
  return live.unschedulable ? { state: 'well', word: 'cordoned' } : { state: 'well', word: 'ready' };
}

/** Servers that serve: a leaving one and one that failed do not. */
const serving = ({ status, connected }: DatabaseFacts): boolean =>
  (status === 'member' || status === 'standalone') && connected;

function memberRow({ target, second }: CentralSample, key: 'nb' | 'sb'): MemberRow {
  const node = target.node.name;
  const database = key === 'nb' ? 'OVN_Northbound' : 'OVN_Southbound';
  const base = { database, node, leads: false };
  if (second.type !== 'Evidence') {
    const { state, word } = silent(second, `node ${node}`);
    return { ...base, state, status: word };
  }
  const facts = second.evidence.facts[key];
  if (facts === undefined) {
    const { state, word } = lacking(second.evidence.problems, key);
    return { ...base, state, status: word };
  }
  const { status, connected, role, sid, term, index, log, connections } = facts;
  // Whoever looks for a leader may find one.
  const passing = status === 'joining' || status === 'leaving' || (serving(facts) && role === 'candidate');
  const state = passing ? 'unknown' : serving(facts) ? 'well' : 'broken';
  return {
    ...base,
    state,
    status: status === 'member' ? (connected ? (role ?? status) : 'disconnected') : status,
    leads: role === 'leader',
    ...(sid === undefined ? {} : { serverID: sid }),
    ...(term === undefined ? {} : { term }),
    ...(index === undefined ? {} : { index }),
    ...(log === undefined ? {} : { unapplied: log.unapplied }),
    ...(connections.length === 0
      ? {}
      : { links: `${connections.filter(({ up }) => up).length}/${connections.length}` }),
  };
}

function northdRow({ target, second }: CentralSample): NorthdRow {
  const node = target.node.name;
  if (second.type !== 'Evidence') {
    const { state, word } = silent(second, `node ${node}`);
    return { node, state, status: word };
  }
  const facts = second.evidence.facts.northd;
  if (facts === undefined) {
    const { state, word } = lacking(second.evidence.problems, 'northd');
    return { node, state, status: word };
  }
  const cut = [facts.nb ? '' : 'NB', facts.sb ? '' : 'SB'].filter((one) => one !== '');
  return {
    node,
    state: facts.state === 'paused' || cut.length > 0 ? 'broken' : 'well',
    status: cut.length === 0 ? facts.state : `${facts.state}, without ${cut.join(' and ')}`,
    ...(facts.version === undefined ? {} : { version: facts.version }),
  };
}

function centralCell(sample: CentralSample): Cell {
  const rows = [memberRow(sample, 'nb'), memberRow(sample, 'sb'), northdRow(sample)];
  const bad = worst(rows.map(({ state, status }) => ({ state, word: status })));
  if (bad.state !== 'well') return { ...bad, ...(sample.second.type === 'Evidence' ? {} : silent(sample.second, '')) };
  const leads = rows.flatMap((row) =>
    'leads' in row && row.leads ? [row.database === 'OVN_Northbound' ? 'NB' : 'SB'] : [],
  );
  return { state: 'well', word: leads.length === 0 ? 'follows' : `leads ${leads.join(' ')}` };
}

function chassisCell({ target, outcome }: ChassisSample): Cell {
  if (outcome.type !== 'Evidence') return silent(outcome, `node ${target.node}`);
  const { facts, problems } = outcome.evidence;
  const { ovsdb, vswitchd, controller } = facts;
  const cells: Cell[] = [];
  if (ovsdb === undefined) cells.push(lacking(problems, 'ovsdb'));
  else if (ovsdb.encaps.length === 0) cells.push({ state: 'broken', word: 'no encap' });
  if (vswitchd === undefined) cells.push(lacking(problems, 'vswitchd'));
  else if (!vswitchd.bridge.inVswitchd) cells.push({ state: 'broken', word: `no ${vswitchd.bridge.name}` });
  if (controller === undefined) cells.push(lacking(problems, 'controller'));
  else if (!controller.connected) cells.push({ state: 'broken', word: 'no SB', detail: ovsdb?.remote ?? '' });
  else if (controller.paused === true) cells.push({ state: 'broken', word: 'paused' });
  else if (controller.frozenByNorthdMatch === true) cells.push({ state: 'broken', word: 'frozen' });
  return cells.length === 0 ? { state: 'well', word: 'connected' } : worst(cells);
}

type NetworkSample = NonNullable<Round['network']>['samples'][number];

function probeCell({ client, outcome }: NetworkSample): Cell {
  if (outcome.type !== 'Evidence') return silent(outcome, `node ${client.node}`);
  const { checks } = outcome.evidence.facts;
  if (checks === undefined) return lacking(outcome.evidence.problems, 'checks');
  const failed = checks.filter((check) => check.outcome !== 'ok');
  const word = `${checks.length - failed.length}/${checks.length}`;
  const [first] = failed;
  if (first === undefined) return checks.length === 0 ? { state: 'unknown', word } : { state: 'well', word };
  const detail = `${first.target} ${first.family} ${first.address}: ${first.outcome}`;
  return { state: 'broken', word, detail };
}

/** The newest of what members tell of the way of a change. */
function progressOf(samples: readonly CentralSample[]): NonNullable<CentralFacts['progress']> | undefined {
  const all = samples.flatMap(({ second }) =>
    second.type === 'Evidence' ? (second.evidence.facts.progress ?? []) : [],
  );
  return all.toSorted((a, b) => (BigInt(a.nbCfg) < BigInt(b.nbCfg) ? 1 : -1))[0];
}

/** The matrix of a round. A node is in it when anything of it was asked. */
export function matrixOf(round: Pick<Round, 'central' | 'chassis' | 'network'>): Matrix {
  const rows = new Map<string, NodeRow>();
  const put = (name: string, cells: Partial<NodeRow>): void => {
    const before = rows.get(name) ?? { name, kubelet: absent, central: absent, chassis: absent, probe: absent };
    rows.set(name, { ...before, ...cells });
  };
  const central = round.central?.samples ?? [];
  for (const sample of central)
    put(sample.target.node.name, { central: centralCell(sample), kubelet: kubeletCell(sample.target.live) });
  for (const sample of round.chassis?.samples ?? [])
    put(sample.target.node, { chassis: chassisCell(sample), kubelet: kubeletCell(sample.target.live) });
  for (const sample of round.network?.samples ?? []) put(sample.client.node, { probe: probeCell(sample) });
  const progress = progressOf(central);
  return {
    nodes: [...rows.values()].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true })),
    members: (['nb', 'sb'] as const).flatMap((key) => central.map((sample) => memberRow(sample, key))),
    northd: central.map(northdRow),
    ...(progress === undefined
      ? {}
      : { progress: { nbCfg: progress.nbCfg, sbCfg: progress.sbCfg, hvCfg: progress.hvCfg } }),
  };
}
