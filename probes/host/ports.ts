import { join } from 'node:path';
import { readFile } from '../../constructs/lib/files.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import type { ComponentFacts } from '../server/collector.ts';

const listening = '0A';

/** Local ports of the listening sockets in a table of the kernel (`/proc/net/tcp`). */
export function listeningPorts(table: string): Set<number> {
  const found = new Set<number>();
  for (const line of table.split('\n').slice(1)) {
    const [, local, , state] = line.trim().split(/\s+/);
    const port = local?.split(':')[1];
    if (state === listening && port !== undefined) found.add(Number.parseInt(port, 16));
  }
  return found;
}

/** Who listens is read from the kernel: to listen there oneself would be no look, and might meet a client. */
export async function portsInUse(
  procDirectory: string,
  wanted: readonly number[],
): Promise<Result<ComponentFacts<'host', 'ports'>>> {
  const table = (name: string) => readFile(join(procDirectory, 'net', name), 'utf8').catch(() => undefined);
  const [four, six] = await Promise.all([table('tcp'), table('tcp6')]);
  if (four === undefined) return fault('protocol', 'the kernel does not tell its TCP sockets');
  // A kernel without IPv6 has no second table.
  const taken = new Set([...listeningPorts(four), ...listeningPorts(six ?? '')]);
  return ok(wanted.map((port) => ({ port, free: !taken.has(port) })));
}
