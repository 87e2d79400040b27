/** One database of OVN central as its own server tells it. */

import { join } from 'node:path';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { statfs } from '../../constructs/lib/files.ts';
import { identify } from '../daemons/identity.ts';
import type { Look } from '../daemons/look.ts';
import { column, DatabaseServer } from '../daemons/server.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import { integer, type JsonMap } from '../jsonrpc/json.ts';
import { optional, setOf, uuid } from '../ovsdb/values.ts';
import { readClusterStatus } from '../unixctl/cluster-status.ts';
import { ControlSocket } from '../unixctl/control.ts';
import { readPid } from '../unixctl/find.ts';
import { readAs } from '../unixctl/reading.ts';
import { readLines } from '../unixctl/words.ts';
import { type ChassisList, chassisBytes, chassisColumns, chassisList } from './chassis.ts';
import { type ClusterFacts, clusterFacts } from './cluster.ts';
import { type CentralOptions, type DatabaseKey, databaseNames } from './options.ts';

export const daemonName = (key: DatabaseKey): string => `ovsdb-server (${databaseNames[key]})`;
export const dataSocket = ({ runDirectory }: CentralOptions, key: DatabaseKey): string =>
  join(runDirectory, `ovn${key}_db.sock`);

/** What the server's own database says of one that it serves. */
type ServerFacts = Pick<DatabaseFacts, 'model' | 'connected' | 'leading'> &
  Pick<ClusterFacts, 'cid' | 'sid'> &
  Partial<Pick<DatabaseFacts, 'index' | 'row'>>;

const serverColumns = ['name', 'model', 'connected', 'leader', 'cid', 'sid', 'index'];
const models = ['standalone', 'clustered', 'relay'] as const;
const flag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined);
const model = (value: unknown): (typeof models)[number] | undefined => models.find((one) => one === value);

function serverFacts(row: JsonMap, what: string): Result<ServerFacts> {
  const read = <T>(name: string, reader: (value: JsonMap[string]) => T | undefined): Result<T> =>
    column(what, row, name, reader);
  const [kind, connected, leading] = [read('model', model), read('connected', flag), read('leader', flag)];
  const [cid, sid, index] = [read('cid', optional), read('sid', optional), read('index', optional)];
  for (const one of [kind, connected, leading, cid, sid, index]) if (one.type !== 'ok') return one;
  if (kind.type !== 'ok' || connected.type !== 'ok' || leading.type !== 'ok') return fault('protocol', what);
  const id = (one: typeof cid): string | undefined =>
    one.type === 'ok' && one.value.present ? uuid(one.value.value) : undefined;
  const at = index.type === 'ok' && index.value.present ? integer(index.value.value) : undefined;
  const [cluster, server] = [id(cid), id(sid)];
  return ok({
    model: kind.value,
    connected: connected.value,
    leading: leading.value,
    ...(cluster === undefined ? {} : { cid: cluster }),
    ...(server === undefined ? {} : { sid: server }),
    ...(at === undefined ? {} : { index: String(at) }),
  });
}

interface Held {
  /** What a server listens on beside its arguments. */
  readonly targets: readonly string[];
  readonly probeMs: readonly number[];
}

/** Listeners are rows of a database of their own where there is one. */
async function heldRows(server: DatabaseServer, names: readonly string[], db: string): Promise<Result<Held>> {
  const targets: string[] = [];
  const probeMs: number[] = [];
  for (const name of names.filter((one) => one === 'Local_Config' || one === db)) {
    const rows = await server.rows(name, 'Connection', ['target', 'inactivity_probe']);
    if (rows.type !== 'ok') return rows;
    for (const row of rows.value.values()) {
      if (typeof row.target === 'string') targets.push(row.target);
      for (const value of setOf(row.inactivity_probe) ?? []) probeMs.push(Number(integer(value) ?? -1n));
    }
  }
  return ok({ targets, probeMs: probeMs.filter((ms) => ms >= 0 && ms <= 86_400_000) });
}

interface Served {
  readonly facts: ServerFacts | undefined;
  readonly held: Held;
  readonly chassis?: ChassisList;
}

async function askServer(options: CentralOptions, key: DatabaseKey, look: Look): Promise<Result<Served>> {
  const [db, name] = [databaseNames[key], daemonName(key)];
  const opened = await DatabaseServer.open(name, dataSocket(options, key), look);
  if (opened.type !== 'ok') return opened;
  const server = opened.value;
  try {
    const names = await server.databases();
    if (names.type !== 'ok') return names;
    const rows = await server.rows('_Server', 'Database', serverColumns);
    if (rows.type !== 'ok') return rows;
    const [found, second] = [...rows.value].filter(([, one]) => one.name === db);
    if (found === undefined) return ok({ facts: undefined, held: { targets: [], probeMs: [] } });
    if (second !== undefined) return fault('protocol', `${name}: more than one row of ${db}`);
    const [id, row] = found;
    const facts = serverFacts(row, name);
    if (facts.type !== 'ok') return facts;
    // A database that has not joined has a name, and neither schema nor rows.
    const readable = names.value.filter((one) => one !== db || facts.value.connected);
    const held = await heldRows(server, readable, db);
    if (held.type !== 'ok') return held;
    const whole = { facts: { ...facts.value, row: id.toLowerCase() }, held: held.value };
    if (key === 'nb' || !facts.value.connected) return ok(whole);
    const chassis = await askChassis(options, look);
    if (chassis.type !== 'ok') return chassis;
    return ok({ ...whole, ...(chassis.value === undefined ? {} : { chassis: chassis.value }) });
  } finally {
    server.close();
  }
}

/** Of SB; undefined where there are more of them than this process has room for. */
async function askChassis(options: CentralOptions, look: Look): Promise<Result<ChassisList | undefined>> {
  const path = dataSocket(options, 'sb');
  // On a connection of its own: what is too large ends it.
  const opened = await DatabaseServer.open(daemonName('sb'), path, look, chassisBytes);
  if (opened.type !== 'ok') return opened;
  try {
    const rows = await opened.value.tables(databaseNames.sb, chassisColumns);
    if (rows.type === 'ok') return ok(chassisList(rows.value));
    return rows.code === 'tooLarge' ? ok(undefined) : rows;
  } finally {
    opened.value.close();
  }
}

interface Told {
  readonly cluster: ClusterFacts | undefined;
  readonly storage: string;
  readonly remotes: readonly string[];
}

async function askControl(options: CentralOptions, key: DatabaseKey, look: Look): Promise<Result<Told>> {
  const [db, path] = [databaseNames[key], join(options.runDirectory, `ovn${key}_db.ctl`)];
  const opened = await ControlSocket.open({ ...look, daemon: daemonName(key), path });
  if (opened.type !== 'ok') return opened;
  const control = opened.value;
  try {
    const storage = await control.command('ovsdb-server/get-db-storage-status', db);
    if (storage.type === 'fault') return storage;
    const remotes = await control.ask('ovsdb-server/list-remotes', [], (text) => readAs(readLines(text)));
    if (remotes.type !== 'ok') return remotes;
    const text = await control.command('cluster/status', db);
    if (text.type === 'fault') return text;
    // A server without a cluster of that name says so with an error; which case it is, its own database tells.
    const cluster = text.type === 'ok' ? readClusterStatus(text.value) : undefined;
    if (cluster?.type === 'unreadable')
      return fault('protocol', `${daemonName(key)}: cluster/status, line ${cluster.line}: ${cluster.message}`);
    if (cluster !== undefined && cluster.value.name !== db)
      return fault('protocol', `${daemonName(key)}: cluster/status tells of ${cluster.value.name.slice(0, 64)}`);
    return ok({
      cluster: cluster === undefined ? undefined : clusterFacts(cluster.value),
      storage: storageText(storage),
      remotes: remotes.value,
    });
  } finally {
    control.close();
  }
}

function storageText(
  outcome: { readonly type: 'ok'; readonly value: string } | { readonly type: 'error'; readonly error: unknown },
): string {
  const text = outcome.type === 'ok' ? outcome.value.replace(/^status: /, '') : String(outcome.error).trimEnd();
  return text.slice(0, 512);
}

/** Where clients are listened to, of all remotes. */
const isListener = (remote: string): boolean => /^p(tcp|ssl):/.test(remote);

function combined(served: Served, told: Told): Result<Omit<DatabaseFacts, 'name' | 'freeBytes' | 'daemon'>> {
  const { facts, held: found, chassis } = served;
  const { cluster, storage } = told;
  const listeners = [...new Set([...told.remotes, ...found.targets].filter(isListener))].slice(0, 32);
  const [probeMs, other] = [...new Set(found.probeMs)];
  const shared = {
    storage,
    listeners,
    ...(probeMs === undefined || other !== undefined ? {} : { inactivityProbeMs: probeMs }),
    ...(chassis === undefined ? {} : { chassis }),
  };
  if (facts === undefined) {
    // A server that left its cluster, or was put out of it, lets the database go and runs on.
    return ok({
      ...shared,
      model: 'clustered',
      connected: false,
      leading: false,
      status: 'left',
      members: [],
      connections: [],
    });
  }
  if (facts.model !== 'clustered')
    return ok({ ...shared, ...facts, status: 'standalone', members: [], connections: [] });
  if (cluster === undefined) return fault('protocol', 'a clustered database without a cluster/status');
  // Both sockets have to be of one server: a process that was left behind may hold one of them.
  for (const id of ['sid', 'cid'] as const)
    if (facts[id] !== undefined && cluster[id] !== undefined && facts[id] !== cluster[id])
      return fault('protocol', `cluster/status tells the ${id} ${cluster[id]}, and the row of clients ${facts[id]}`);
  return ok({ ...shared, ...cluster, ...facts });
}

/** Looks at one database: its server over both of its sockets, and the file system. */
export async function databaseFacts(
  options: CentralOptions,
  key: DatabaseKey,
  look: Look,
): Promise<Result<DatabaseFacts>> {
  const [daemon, socket] = [daemonName(key), dataSocket(options, key)];
  const { procDirectory } = options;
  const place = { daemon, socket, program: 'ovsdb-server', ...(procDirectory === undefined ? {} : { procDirectory }) };
  const pid = await readPid(join(options.runDirectory, `ovn${key}_db.pid`));
  const [identity, served, told] = await Promise.all([
    identify({ ...place, pid }),
    askServer(options, key, look),
    askControl(options, key, look),
  ]);
  if (identity.type !== 'ok') return identity;
  if (served.type !== 'ok') return served;
  if (told.type !== 'ok') return told;
  const free = await freeBytes(options.dataDirectory);
  if (free.type !== 'ok') return free;
  const rest = combined(served.value, told.value);
  if (rest.type !== 'ok') return fault(rest.code, `${daemon}: ${rest.message}`);
  return ok({ name: databaseNames[key], ...rest.value, freeBytes: String(free.value), daemon: identity.value });
}

async function freeBytes(directory: string): Promise<Result<bigint>> {
  try {
    const { bavail, bsize } = await statfs(directory, { bigint: true });
    return ok(bavail * bsize);
  } catch (error) {
    // The server may well run where its folder can not be seen from here.
    return fault('denied', `${directory}: ${(error as NodeJS.ErrnoException).code ?? 'cannot be looked at'}`);
  }
}
