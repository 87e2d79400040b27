/** Role `addresses` of `keelson executor`. It is loaded by itself: what another role needs costs this one no memory. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type pino from 'pino';
import { Registry } from 'prom-client';
import { redact } from '../../constructs/lib/redact.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { metallbWorker } from '../../executor/addresses/metallb/metallb-worker.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import { runAddresses } from '../../executor/addresses/role.ts';
import type { CredentialSource } from '../../executor/kube/credentials.ts';
import type { Invocation } from '../invocation.ts';
import { type AddressWorkerName, type ExecutorFlags, tellable } from './flags.ts';

const workers = {
  core: (registry: Registry, { clock }: Invocation) => coreWorker(registry, () => clock.now()),
  driver: (registry: Registry, { clock }: Invocation, flags: ExecutorFlags) =>
    metallbWorker(registry, () => clock.now(), metallbSettings(flags)),
} as const satisfies Record<AddressWorkerName, unknown>;

const metallbSettings = (flags: ExecutorFlags): MetallbSettings => ({
  metallbNamespace: flags.metallbNamespace,
  placeholderNamespace: flags.placeholderNamespace,
  forcedRelease: flags.forcedRelease,
  ...(flags.lbClass === undefined ? {} : { lbClass: flags.lbClass }),
});

export function addressesRole(
  flags: ExecutorFlags,
  access: CredentialSource,
  log: pino.Logger,
  invocation: Invocation,
): Promise<void> {
  const { clock, random, env, signal } = invocation;
  const registry = new Registry();
  return runAddresses(
    {
      credentials: access,
      clock,
      random,
      uniqueId: () => randomUUID().slice(0, 13),
      identity: env.POD_NAME ?? hostname(),
      registry,
      workers: flags.workers.map((name) => workers[name](registry, invocation, flags)),
      leaseNamespace: flags.leaseNamespace ?? flags.namespace,
      metricsPort: flags.metricsPort,
      onListening: (port) => log.info({ port }, 'metrics are served'),
      log: (level, message, fields) => log[level](tellable(fields), redact(message)),
    },
    signal,
  );
}
