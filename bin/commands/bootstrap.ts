import { roleName } from '../../constructs/api/constants.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { formatProblems, ProblemError } from '../../constructs/lib/problems.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { applyObjects } from '../../executor/courier/apply.ts';
import { writeTrust } from '../../executor/courier/trust.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { readTrustSecret } from '../../executor/source/trust.ts';
import { courierDeps, objectsBelow, unitObjects } from '../delivery.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { type ChosenTree, chooseTree, type TreeOptions } from '../trees.ts';
import { readTrustFiles } from '../trust.ts';

export interface Options extends TreeOptions {
  readonly trust?: readonly string[];
  readonly replaceTrust?: boolean;
  readonly timeout: string;
  readonly wait: boolean;
}

/** `keelson bootstrap`: the executor and what it needs, the trusted keys, the courier's own objects. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const limitMs = parseDuration(options.timeout);
  const keys = await readTrustFiles(invocation, options.trust ?? []);
  const chosen = await chooseTree(invocation, options);
  return withClient(invocation, options, async (client) => {
    await applyAll(invocation, client, chosen, '10-system');
    await trust(invocation, client, chosen, keys, options.replaceTrust === true);
    await applyAll(invocation, client, chosen, 'courier');
    if (options.wait) await executorRuns(invocation, client, chosen, limitMs);
    invocation.out(`bootstrapped ${chosen.cluster.metadata.name} from ${chosen.name}`);
    return exitCodes.done;
  });
}

async function applyAll(
  invocation: Invocation,
  client: KubeClient,
  { cluster, tree }: ChosenTree,
  part: '10-system' | 'courier',
): Promise<void> {
  const objects = part === 'courier' ? objectsBelow(tree, 'courier') : unitObjects(tree, part);
  const { problems } = await applyObjects(courierDeps(invocation, client, cluster), objects);
  if (problems.length > 0) throw new Error(formatProblems(problems));
}

async function trust(
  invocation: Invocation,
  client: KubeClient,
  { cluster }: ChosenTree,
  keys: ReadonlyMap<string, string>,
  replace: boolean,
): Promise<void> {
  const { namespace } = cluster.spec.executor;
  const { signal } = invocation;
  if (keys.size === 0) {
    const read = await readTrustSecret(client, namespace, signal);
    if (read.type === 'read' && read.trust.size === 0)
      invocation.err('warning: no keys are trusted yet: every payload will be refused; give --trust FILE');
    return;
  }
  const outcome = await writeTrust({ client, namespace, signal, keys, replace });
  if (outcome.kind === 'refused') throw new ProblemError([outcome.problem]);
  invocation.err(`trusted keys: ${outcome.keyIds.join(', ')} (${outcome.kind})`);
}

async function executorRuns(
  invocation: Invocation,
  client: KubeClient,
  { cluster }: ChosenTree,
  limitMs: number,
): Promise<void> {
  const { namespace } = cluster.spec.executor;
  const ref = { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name: roleName('executor') };
  await waitFor({
    what: `Deployment ${namespace}/${ref.name} to have a pod that runs`,
    limitMs,
    intervalMs: 500,
    clock: invocation.clock,
    signal: invocation.signal,
    probe: async (saw) => {
      const read = await client.get(ref, { signal: invocation.signal });
      if (read.type !== 'found') {
        saw(read.type);
        return undefined;
      }
      const status = (read.object.status ?? {}) as {
        observedGeneration?: number;
        updatedReplicas?: number;
        availableReplicas?: number;
        unavailableReplicas?: number;
      };
      saw(`${status.availableReplicas ?? 0} available, ${status.unavailableReplicas ?? 0} not`);
      const current = status.observedGeneration === read.object.metadata.generation;
      return current && (status.updatedReplicas ?? 0) > 0 && (status.availableReplicas ?? 0) > 0 ? true : undefined;
    },
  });
}
