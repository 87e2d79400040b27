import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { systemClock } from '../../constructs/lib/clock.ts';
import { type AddressWorker, runAddresses } from '../../executor/addresses/role.ts';
import type { Transport } from '../../executor/kube/transport.ts';
import { leaseTimings } from '../../executor/lease/timings.ts';
import type { ApiServerHandle } from '../apiserver/server.ts';
import { staticCredentials } from './kubeBed.ts';

/** Role `addresses` as one process runs it, with short Leases. */
export interface Role {
  readonly registry: Registry;
  /** Lines of its log, each with its level. */
  readonly said: readonly string[];
  /** Ends it, and gives its Leases up. */
  stop(): Promise<void>;
}

interface RoleOptions {
  readonly server: ApiServerHandle;
  readonly workers: (registry: Registry) => readonly AddressWorker[];
  readonly leaseNamespace: string;
  /** Of the account that it works as; an administrator when absent. */
  readonly token?: string;
  readonly wrapTransport?: (inner: Transport) => Transport;
}

export function startRole({ server, workers, leaseNamespace, token, wrapTransport }: RoleOptions): Role {
  const registry = new Registry();
  const said: string[] = [];
  const stopping = new AbortController();
  const ended = runAddresses(
    {
      credentials: staticCredentials(server, token),
      clock: systemClock,
      random: Math.random,
      uniqueId: () => randomBytes(6).toString('hex'),
      identity: 'test',
      registry,
      workers: workers(registry),
      leaseNamespace,
      lease: leaseTimings(3_000),
      ...(wrapTransport === undefined ? {} : { wrapTransport }),
      log: (level, message) => said.push(`${level} ${message}`),
    },
    stopping.signal,
  );
  return {
    registry,
    said,
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
