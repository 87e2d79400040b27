/** The southbound database as a node reaches it: where its own database says, and with the node's own certificate. */

import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { readFile } from '../../constructs/lib/files.ts';
import type { Look } from '../daemons/look.ts';
import { column, DatabaseServer, onlyRow } from '../daemons/server.ts';
import { parseAddress } from '../jsonrpc/address.ts';
import { errorText, JsonRpcConnection } from '../jsonrpc/connection.ts';
import { dial, type TlsIdentity } from '../jsonrpc/dial.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import { type JsonMap, member } from '../jsonrpc/json.ts';
import { type Selection, select } from '../ovsdb/methods.ts';
import { stringMap, uuid } from '../ovsdb/values.ts';

export interface DrainOptions {
  readonly clock: Clock;
  /** Where Open vSwitch's sockets are. */
  readonly switchDirectory: string;
  /** Where certificate, key and authority of OVN are: `cert`, `key`, `cacert`; needed for `ssl:` only. */
  readonly tlsDirectory: string;
  /** Milliseconds for one component. */
  readonly limitMs: number;
}

/** Rows of one chassis: its ports, and all gateways. */
const limits = {
  maxBytes: 16 * 1024 * 1024,
  maxTokenBytes: 1024 * 1024,
  maxDepth: 64,
  maxPending: 8,
  maxOutgoing: 64 * 1024,
};

const database = 'OVN_Southbound';

/** The chassis of this node in the southbound database. */
export interface Chassis {
  readonly systemID: string;
  /** Absent while the node is not registered. */
  readonly id?: string;
}

export class Southbound {
  readonly #rpc: JsonRpcConnection;
  readonly #look: Look;

  constructor(rpc: JsonRpcConnection, look: Look) {
    this.#rpc = rpc;
    this.#look = look;
  }

  /** Rows of several tables at one moment. */
  async rows(...selections: readonly Selection[]): Promise<Result<readonly (readonly JsonMap[])[]>> {
    const read = await select(this.#rpc, database, selections, this.#look);
    return read.type === 'error' ? fault('refused', `${database}: ${errorText(read.error)}`) : read;
  }

  async chassis(systemID: string): Promise<Result<Chassis>> {
    const where = [['name', '==', systemID]];
    const read = await this.rows({ table: 'Chassis', columns: ['_uuid', 'name'], where });
    if (read.type !== 'ok') return read;
    const id = uuid(member(read.value[0]?.[0] ?? {}, '_uuid'));
    return ok({ systemID, ...(id === undefined ? {} : { id }) });
  }

  close(): void {
    this.#rpc.close();
  }
}

interface Node {
  readonly systemID: string;
  readonly remotes: readonly string[];
}

async function readNode({ switchDirectory }: DrainOptions, look: Look): Promise<Result<Node>> {
  const name = 'ovsdb-server (Open_vSwitch)';
  const opened = await DatabaseServer.open(name, join(switchDirectory, 'db.sock'), look);
  if (opened.type !== 'ok') return opened;
  try {
    const rows = await opened.value.rows('Open_vSwitch', 'Open_vSwitch', ['external_ids']);
    if (rows.type !== 'ok') return rows;
    const row = onlyRow(name, rows.value);
    if (row.type !== 'ok') return row;
    const ids = column(name, row.value[1], 'external_ids', stringMap);
    if (ids.type !== 'ok') return ids;
    const [systemID = '', remote = ''] = [ids.value.get('system-id'), ids.value.get('ovn-remote')];
    if (systemID === '' || remote === '')
      return fault('protocol', `${name}: external_ids has no system-id or no ovn-remote`);
    return ok({ systemID, remotes: remote.split(',') });
  } finally {
    opened.value.close();
  }
}

async function readTls(directory: string): Promise<TlsIdentity | undefined> {
  const file = (name: string): Promise<string> => readFile(join(directory, name), 'utf8');
  try {
    const [ca, cert, key] = await Promise.all([file('cacert'), file('cert'), file('key')]);
    return { ca, cert, key };
  } catch {
    return undefined;
  }
}

/**
 * Whether a server takes part in its cluster, by its own word. One that lost the others still answers, with what was true
 * before: for such a one the next address is asked.
 */
async function takesPart(rpc: JsonRpcConnection, remote: string, look: Look): Promise<Result<true>> {
  const selection = { table: 'Database', columns: ['connected'], where: [['name', '==', database]] };
  const read = await select(rpc, '_Server', [selection], look);
  if (read.type === 'error') return fault('refused', `${remote}: ${errorText(read.error)}`);
  if (read.type !== 'ok') return read;
  const [row] = read.value[0] ?? [];
  if (row === undefined) return fault('refused', `${remote} does not serve ${database}`);
  return member(row, 'connected') === true ? ok(true) : fault('refused', `${remote} is cut off from its cluster`);
}

async function connect(options: DrainOptions, node: Node, look: Look): Promise<Result<Southbound>> {
  const tls = await readTls(options.tlsDirectory);
  const failed: string[] = [];
  // An address that swallows everything must leave time for the others.
  const part = { ...look, limitMs: Math.floor(look.limitMs / node.remotes.length) };
  for (const remote of node.remotes) {
    const address = parseAddress(remote.trim());
    if (address === undefined) continue;
    const dialled = await dial(address, { ...part, ...(tls === undefined ? {} : { tls }) });
    if (dialled.type !== 'ok') {
      failed.push(dialled.message);
      continue;
    }
    const rpc = new JsonRpcConnection(dialled.value, { peer: remote, clock: look.clock, limits });
    const taking = await takesPart(rpc, remote.trim(), part);
    if (taking.type === 'ok') return ok(new Southbound(rpc, look));
    failed.push(taking.message);
    rpc.close();
  }
  return fault('refused', failed.length === 0 ? 'ovn-remote names no address' : failed.join('; '));
}

/** Runs `ask` on a connection of its own. */
export async function withSouthbound<T>(
  options: DrainOptions,
  look: Look,
  ask: (southbound: Southbound, chassis: Chassis) => Promise<Result<T>>,
): Promise<Result<T>> {
  const node = await readNode(options, look);
  if (node.type !== 'ok') return node;
  const opened = await connect(options, node.value, look);
  if (opened.type !== 'ok') return opened;
  try {
    const chassis = await opened.value.chassis(node.value.systemID);
    return chassis.type === 'ok' ? await ask(opened.value, chassis.value) : chassis;
  } finally {
    opened.value.close();
  }
}
