import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import pino from 'pino';
import { Registry } from 'prom-client';
import { networkNamespace, ports, timings } from '../../constructs/api/constants.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { redact, redactObject } from '../../constructs/lib/redact.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { metallbWorker } from '../../executor/addresses/metallb/metallb-worker.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import { runAddresses } from '../../executor/addresses/role.ts';
import { evidenceSource } from '../../executor/evidence/source.ts';
import { type CredentialSource, inClusterCredentials, kubeConfigCredentials } from '../../executor/kube/credentials.ts';
import { inClusterPeers } from '../../executor/peer/in-cluster.ts';
import { runExecutor } from '../../executor/run.ts';
import type { Invocation } from '../invocation.ts';
import { peerDatabases } from '../peer-databases.ts';

interface ExecutorFlags {
  readonly role: 'executor' | 'addresses';
  readonly workers: readonly (keyof typeof addressWorkers)[];
  readonly leaseNamespace?: string;
  readonly metallbNamespace: string;
  readonly placeholderNamespace: string;
  readonly lbClass?: string;
  readonly forcedRelease: MetallbSettings['forcedRelease'];
  readonly namespace: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly apiServer?: string;
  readonly planOnly?: boolean;
  readonly allowUnsigned?: boolean;
  readonly evidence?: boolean;
  readonly evidenceNamespaces: string;
  readonly evidenceAtOnce: number;
  readonly fluxNamespaces?: string;
  readonly testBypassGates?: string;
  readonly testLeaseDuration?: number;
  readonly testObserveInterval?: number;
  readonly retain: number;
  readonly metricsPort: number;
  readonly pagePort: number;
}

function whole(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('a whole number is needed');
  return Number(text);
}

function fewAtOnce(text: string): number {
  const n = whole(text);
  if (n < 1 || n > 64) throw new InvalidArgumentError('a number from 1 to 64 is needed');
  return n;
}

function duration(text: string): number {
  try {
    return parseDuration(text);
  } catch {
    throw new InvalidArgumentError('a duration such as 5s is needed');
  }
}

const words = (text: string | undefined): string[] => (text ?? '').split(',').filter((word) => word !== '');

/** In a pod the account of the pod, elsewhere a kubeconfig. */
function credentials(flags: ExecutorFlags, { env, clock }: Invocation): CredentialSource {
  const apiServer = flags.apiServer === undefined ? {} : { apiServer: flags.apiServer };
  const file = flags.kubeconfig ?? env.KUBECONFIG;
  if (file === undefined && env.KUBERNETES_SERVICE_HOST !== undefined)
    return inClusterCredentials({
      clock,
      ...apiServer,
      serviceHost: env.KUBERNETES_SERVICE_HOST,
      ...(env.KUBERNETES_SERVICE_PORT === undefined ? {} : { servicePort: env.KUBERNETES_SERVICE_PORT }),
    });
  return kubeConfigCredentials({
    clock,
    ...apiServer,
    ...(file === undefined ? {} : { file }),
    ...(flags.context === undefined ? {} : { context: flags.context }),
  });
}

/** Fields of a log line without secrets. */
const tellable = (fields: Readonly<Record<string, unknown>> = {}): JsonObject =>
  redactObject(JSON.parse(JSON.stringify(fields)) as JsonObject);

/** Workers of role `addresses` by name. */
const addressWorkers = {
  core: (registry: Registry, { clock }: Invocation) => coreWorker(registry, () => clock.now()),
  driver: (registry: Registry, _: Invocation, flags: ExecutorFlags) => metallbWorker(registry, metallbSettings(flags)),
} as const;

const metallbSettings = (flags: ExecutorFlags): MetallbSettings => ({
  metallbNamespace: flags.metallbNamespace,
  placeholderNamespace: flags.placeholderNamespace,
  forcedRelease: flags.forcedRelease,
  ...(flags.lbClass === undefined ? {} : { lbClass: flags.lbClass }),
});

/** @throws InvalidArgumentError for a worker that there is none of. */
function workerNames(text: string): (keyof typeof addressWorkers)[] {
  const known = Object.keys(addressWorkers) as (keyof typeof addressWorkers)[];
  return [...new Set(words(text))].map((word) => {
    const found = known.find((name) => name === word);
    if (found === undefined) throw new InvalidArgumentError(`workers are ${known.join(', ')}`);
    return found;
  });
}

function addresses(
  flags: ExecutorFlags,
  access: CredentialSource,
  log: pino.Logger,
  invocation: Invocation,
): Promise<void> {
  const { clock, random, env, signal } = invocation;
  // Whether this is a test cluster is asked by role executor alone.
  if (flags.testLeaseDuration !== undefined)
    throw new InvalidArgumentError('--test-lease-duration is an option of role executor');
  const registry = new Registry();
  return runAddresses(
    {
      credentials: access,
      clock,
      random,
      uniqueId: () => randomUUID().slice(0, 13),
      identity: env.POD_NAME ?? hostname(),
      registry,
      workers: flags.workers.map((name) => addressWorkers[name](registry, invocation, flags)),
      leaseNamespace: flags.leaseNamespace ?? flags.namespace,
      metricsPort: flags.metricsPort,
      onListening: (port) => log.info({ port }, 'metrics are served'),
      log: (level, message, fields) => log[level](tellable(fields), redact(message)),
    },
    signal,
  );
}

/** `keelson executor`: the process that runs in the cluster. */
export function executorCommand(invocation: Invocation): Command {
  return new Command('executor')
    .description('run the executor: accept payloads and carry them out')
    .addOption(
      new Option('--role <role>', 'which work this process does')
        .choices(['executor', 'addresses'])
        .default('executor'),
    )
    .option(
      '--workers <names>',
      'role addresses: which of its workers this process runs, separated by commas',
      workerNames,
      ['core'],
    )
    .option('--lease-namespace <name>', 'role addresses: where the Leases of the controllers before it are')
    .option('--metallb-namespace <name>', 'worker driver: where MetalLB has its pools', 'metallb-system')
    .option('--placeholder-namespace <name>', 'worker driver: where its placeholders are', 'metallb-iad-system')
    .option('--lb-class <class>', 'worker driver: the class of Services that MetalLB serves, if it was given one')
    .addOption(
      new Option('--forced-release <when>', 'worker driver: when an address is taken off a Service that keeps it')
        .choices(['never', 'deleted', 'always'])
        .default('deleted'),
    )
    .option('--namespace <name>', 'where Releases and payloads are', 'keelson-system')
    .option('--kubeconfig <file>', 'outside of a cluster: how to reach it')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--api-server <host:port>', 'endpoint of the API server, so that no cluster address is needed')
    .option('--plan-only', 'plan and report, and write nothing else')
    .option('--allow-unsigned', 'accept payloads that nobody signed; shown as condition Unverified')
    .option('--flux-namespaces <names>', 'namespaces whose Flux sources a Release may name, separated by commas')
    .option('--evidence', 'ask the probes beside the daemons of OVN what they see')
    .option('--evidence-namespaces <names>', 'where those daemons are, separated by commas', networkNamespace)
    .option(
      '--evidence-at-once <n>',
      'how many nodes are asked at a time; with a thousand of them sixteen',
      fewAtOnce,
      timings.evidence.nodeConcurrency,
    )
    .option('--test-bypass-gates <types>', 'gates to go past without looking; only in a test cluster')
    .option('--test-lease-duration <duration>', 'shorter Leases; only in a test cluster', duration)
    .option('--test-observe-interval <duration>', 'pause between rounds; only in a test cluster', duration)
    .option('--retain <n>', 'how many payloads are kept', whole, 3)
    .option('--metrics-port <port>', 'port of metrics on the loopback address', whole, ports.metrics)
    .option('--page-port <port>', 'port of the status page on the loopback address', whole, ports.page)
    .action(async (_flags: unknown, command: Command) => {
      // Some of these options exist for every command, and are then parsed by the program.
      const flags = command.optsWithGlobals<ExecutorFlags>();
      const log = pino({ name: `keelson-${flags.role}` });
      const access = credentials(flags, invocation);
      if (flags.role === 'addresses') return addresses(flags, access, log, invocation);
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
    });
}
