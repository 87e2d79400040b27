import { roleName } from '../../constructs/api/constants.ts';
import { units } from '../../constructs/api/tree.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { applyObjects } from '../../executor/courier/apply.ts';
import { pointCourier } from '../../executor/courier/point.ts';
import { takeOver } from '../../executor/courier/takeover.ts';
import { writeTrust } from '../../executor/courier/trust.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { describeRef } from '../../executor/kube/types.ts';
import { readTrustSecret } from '../../executor/source/trust.ts';
import { courierDeps, courierObjects, leftCouriers, refuseOtherCluster, unitObjects } from '../delivery.ts';
import { FailedWithProblems } from '../failure.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { type ChosenTree, chooseTree, type TreeOptions } from '../trees.ts';
import { readTrustFiles } from '../trust.ts';

export interface Options extends TreeOptions {
  readonly trust?: readonly string[];
  readonly replaceTrust?: boolean;
  readonly timeout: string;
  readonly wait: boolean;
  readonly courier: boolean;
  readonly takeOver?: boolean;
}

/** `keelson bootstrap`: the executor and what it needs, the trusted keys, the courier's own objects. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const limitMs = parseDuration(options.timeout);
  const keys = await readTrustFiles(invocation, options.trust ?? []);
  const chosen = await chooseTree(invocation, options);
  return withClient(invocation, options, async (client) => {
    await refuseOtherCluster(invocation, client, chosen);
    if (options.takeOver === true) await take(invocation, client, chosen);
    await system(invocation, client, chosen);
    await trust(invocation, client, chosen, keys, options.replaceTrust === true);
    // A courier that is not there yet does not keep the executor from coming up.
    const problems = options.courier ? await courier(invocation, client, chosen) : [];
    if (options.wait) await executorRuns(invocation, client, chosen, limitMs);
    if (problems.length > 0) throw new FailedWithProblems(problems);
    invocation.out(`bootstrapped ${chosen.cluster.metadata.name} from ${chosen.name}`);
    return exitCodes.done;
  });
}

/** After a change of courier: what the old one applied becomes the new one's, so that every field has one owner. */
async function take(invocation: Invocation, client: KubeClient, { cluster, tree }: ChosenTree): Promise<void> {
  const objects = units.flatMap((unit) => unitObjects(tree, unit));
  const { taken, problems } = await takeOver(courierDeps(invocation, client, cluster), objects);
  for (const ref of taken) invocation.err(`taken over ${describeRef(ref)}`);
  if (problems.length > 0) throw new FailedWithProblems(problems);
}

async function system(invocation: Invocation, client: KubeClient, { cluster, tree }: ChosenTree): Promise<void> {
  const objects = unitObjects(tree, '10-system');
  const { problems } = await applyObjects(courierDeps(invocation, client, cluster), objects);
  if (problems.length > 0) throw new FailedWithProblems(problems);
}

async function courier(invocation: Invocation, client: KubeClient, chosen: ChosenTree): Promise<readonly Problem[]> {
  const { problems } = await pointCourier(courierDeps(invocation, client, chosen.cluster), courierObjects(chosen));
  for (const ref of await leftCouriers(invocation, client, chosen))
    invocation.err(
      `warning: ${describeRef(ref)} is no part of this tree and still carries; delete it, which loses nothing that it carried`,
    );
  return problems;
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
  switch (outcome.kind) {
    case 'differs':
      throw new ProblemError([outcome.problem]);
    case 'refused':
      throw new FailedWithProblems([outcome.problem]);
    case 'written':
    case 'unchanged':
      invocation.err(`trusted keys: ${outcome.keyIds.join(', ')} (${outcome.kind})`);
  }
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
