import type { Clock } from '../constructs/lib/clock.ts';
import { redact } from '../constructs/lib/redact.ts';
import type { ListDatabases } from '../executor/peer/in-cluster.ts';
import { parseAddress } from '../probes/jsonrpc/address.ts';
import { errorText, JsonRpcConnection } from '../probes/jsonrpc/connection.ts';
import { dial } from '../probes/jsonrpc/dial.ts';
import type { Fault } from '../probes/jsonrpc/fault.ts';
import { listDatabases } from '../probes/ovsdb/methods.ts';

/** The answer is a short list of names. */
const limits = { maxBytes: 64 * 1024, maxTokenBytes: 4096, maxDepth: 8, maxPending: 2, maxOutgoing: 4096 };
const limitMs = 5_000;

const told = ({ code, message }: Fault): Awaited<ReturnType<ListDatabases>> => ({
  type: code === 'denied' ? 'untrusted' : 'unreachable',
  message: redact(message),
});

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
      if (listed.type === 'ok') return { type: 'served', schemas: listed.value };
      if (listed.type === 'error') return { type: 'unreachable', message: redact(errorText(listed.error)) };
      return told(listed);
    } finally {
      rpc.close();
    }
  };
