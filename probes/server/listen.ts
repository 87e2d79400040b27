import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { type BackoffPolicy, backoff } from '../../constructs/lib/backoff.ts';
import { type Clock, type Random, rest } from '../../constructs/lib/clock.ts';

export interface ListenOptions {
  readonly server: Server;
  /** Ports in the order in which they are tried. While a pod is replaced, old and new run on one node. */
  readonly ports: readonly number[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: (message: string) => void;
  readonly host?: string;
  readonly backoff?: BackoffPolicy;
}

const patience: BackoffPolicy = { initialMs: 500, factor: 2, maxMs: 15_000, jitter: 0.2 };

/**
 * Listens on the first port that is free. It waits as long as there is none, since a sidecar that exits would take the
 * daemons' pod with it.
 * @returns the port; undefined when the signal aborted before.
 */
export async function listenSomewhere(options: ListenOptions, signal: AbortSignal): Promise<number | undefined> {
  const { server, ports, clock, random, log } = options;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    const failed: string[] = [];
    for (const port of ports) {
      const outcome = await tryPort(server, port, options.host);
      if (typeof outcome === 'number') return outcome;
      failed.push(`${port} (${outcome})`);
    }
    if (attempt === 0) log(`no port is free: ${failed.join(', ')}`);
    await rest(clock, backoff(options.backoff ?? patience, attempt, random), signal);
  }
  return undefined;
}

/** The port, or the code of what is in the way. */
async function tryPort(server: Server, port: number, host: string | undefined): Promise<number | string> {
  server.listen({ port, ...(host === undefined ? {} : { host }) });
  try {
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
