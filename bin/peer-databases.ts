import type { Clock } from '../constructs/lib/clock.ts';
import { redact } from '../constructs/lib/redact.ts';
import type { ListDatabases } from '../executor/peer/in-cluster.ts';
import { parseAddress } from '../probes/jsonrpc/address.ts';
import { errorText, JsonRpcConnection } from '../probes/jsonrpc/connection.ts';
import { dial } from '../probes/jsonrpc/dial.ts';
import type { Fault } from '../probes/jsonrpc/fault.ts';
import { member } from '../probes/jsonrpc/json.ts';
import { listDatabases, snapshot } from '../probes/ovsdb/methods.ts';
import { stringMap } from '../probes/ovsdb/values.ts';

/** The answers are a short list of names and a few small rows. */
const limits = { maxBytes: 64 * 1024, maxTokenBytes: 4096, maxDepth: 16, maxPending: 2, maxOutgoing: 4096 };
const limitMs = 5_000;

const told = ({ code, message }: Fault): Awaited<ReturnType<ListDatabases>> => ({
  type: code === 'denied' ? 'untrusted' : 'unreachable',
  message: redact(message),
});

type Served = Extract<Awaited<ReturnType<ListDatabases>>, { readonly type: 'served' }>;
const southbound = 'OVN_Southbound';

/** What stands behind the names: a server lists a database as well while it joins, or after it has lost its cluster. */
async function lookInto(
  rpc: JsonRpcConnection,
  schemas: readonly string[],
  signal: AbortSignal,
): Promise<Served | Fault> {
  const rows = await snapshot(rpc, '_Server', { Database: ['name', 'connected'] }, { limitMs, signal });
  if (rows.type === 'fault') return rows;
  const connected = (name: string): boolean =>
    rows.type === 'ok' &&
    [...(rows.value.get('Database')?.values() ?? [])].some((row) => row.name === name && row.connected === true);
  const unconnected = schemas.filter((name) => name !== '_Server' && !connected(name));
  const served: Served = { type: 'served', schemas, unconnected };
  if (!connected(southbound)) return served;
  const settings = await snapshot(rpc, southbound, { SB_Global: ['options'] }, { limitMs, signal });
  const [row] = settings.type === 'ok' ? (settings.value.get('SB_Global')?.values() ?? []) : [];
  const version = stringMap(member(row, 'options'))?.get('northd_internal_version');
  return version === undefined ? served : { ...served, northdVersion: version.slice(0, 128) };
}

/** Asks the databases of a peer in their own protocol: that somebody listens proves nothing. */
export const peerDatabases =
  (clock: Clock): ListDatabases =>
  async (endpoint, keys, signal) => {
    const address = parseAddress(endpoint);
    if (address === undefined || address.type === 'unix')
      return { type: 'unreachable', message: `${endpoint} is no endpoint` };
    const dialled = await dial(address, { clock, limitMs, signal, ...(keys === undefined ? {} : { tls: keys }) });
    if (dialled.type !== 'ok') return told(dialled);
    const rpc = new JsonRpcConnection(dialled.value, { peer: endpoint, clock, limits });
    try {
      const listed = await listDatabases(rpc, { limitMs, signal });
      if (listed.type === 'ok') {
        const seen = await lookInto(rpc, listed.value, signal);
        return seen.type === 'fault' ? told(seen) : seen;
      }
      if (listed.type === 'error') return { type: 'unreachable', message: redact(errorText(listed.error)) };
      return told(listed);
    } finally {
      rpc.close();
    }
  };
