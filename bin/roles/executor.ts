/** Role `executor` of `keelson executor`. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type pino from 'pino';
import { redact } from '../../constructs/lib/redact.ts';
import { evidenceSource } from '../../executor/evidence/source.ts';
import type { CredentialSource } from '../../executor/kube/credentials.ts';
import { inClusterPeers } from '../../executor/peer/in-cluster.ts';
import { runExecutor } from '../../executor/run.ts';
import type { Invocation } from '../invocation.ts';
import { peerDatabases } from '../peer-databases.ts';
import { type ExecutorFlags, tellable, words } from './flags.ts';

export async function executorRole(
  flags: ExecutorFlags,
  access: CredentialSource,
  log: pino.Logger,
  invocation: Invocation,
): Promise<void> {
  const tell = (level: 'info' | 'warn', message: string): void => log[level](redact(message));
  const evidenceNamespaces = [...words(flags.evidenceNamespaces)];
  await runExecutor(
    {
      credentials: access,
      clock: invocation.clock,
      random: invocation.random,
      uniqueId: () => randomUUID().slice(0, 13),
      identity: invocation.env.POD_NAME ?? hostname(),
      namespace: flags.namespace,
      planOnly: flags.planOnly ?? false,
      allowUnsigned: flags.allowUnsigned ?? false,
      flux: { namespaces: words(flags.fluxNamespaces) },
      bypassGates: words(flags.testBypassGates),
      ...(flags.testLeaseDuration === undefined ? {} : { testLeaseMs: flags.testLeaseDuration }),
      ...(flags.testObserveInterval === undefined ? {} : { testObserveMs: flags.testObserveInterval }),
      retain: flags.retain,
      metricsPort: flags.metricsPort,
      pagePort: flags.pagePort,
      ...(flags.evidence === true
        ? {
            evidenceNamespaces,
            evidenceAtOnce: flags.evidenceAtOnce,
            // Whoever brings probes to the nodes can have them looked at first.
            preflight: {},
            evidence: (parts) =>
              evidenceSource({
                ...parts,
                probeNamespaces: evidenceNamespaces,
                credentials: access,
                log: tell,
                peers: inClusterPeers({ ...parts, databases: peerDatabases(parts.clock) }),
              }),
          }
        : {}),
      onListening: (port) => log.info({ port }, 'metrics are served'),
      onPage: (port) => log.info({ port }, 'the status page is served'),
      log: (level, message, fields) => log[level](tellable(fields), redact(message)),
    },
    invocation.signal,
  );
}
