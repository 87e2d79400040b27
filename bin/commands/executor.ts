import { Command, InvalidArgumentError, Option } from 'commander';
import pino from 'pino';
import { networkNamespace, ports, timings } from '../../constructs/api/constants.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { type CredentialSource, inClusterCredentials, kubeConfigCredentials } from '../../executor/kube/credentials.ts';
import type { Invocation } from '../invocation.ts';
import { type AddressWorkerName, addressWorkerNames, type ExecutorFlags, words } from '../roles/flags.ts';

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

/** @throws InvalidArgumentError for a worker that there is none of. */
function workerNames(text: string): AddressWorkerName[] {
  return [...new Set(words(text))].map((word) => {
    const found = addressWorkerNames.find((name) => name === word);
    if (found === undefined) throw new InvalidArgumentError(`workers are ${addressWorkerNames.join(', ')}`);
    return found;
  });
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
      if (flags.role === 'addresses') {
        // Whether this is a test cluster is asked by role executor alone.
        if (flags.testLeaseDuration !== undefined)
          throw new InvalidArgumentError('--test-lease-duration is an option of role executor');
        const { addressesRole } = await import('../roles/addresses.ts');
        return addressesRole(flags, access, log, invocation);
      }
      const { executorRole } = await import('../roles/executor.ts');
      return executorRole(flags, access, log, invocation);
    });
}
