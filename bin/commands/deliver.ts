import { units } from '../../constructs/api/tree.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { WaitTimeout } from '../../constructs/lib/wait.ts';
import { type Applied, applyObjects } from '../../executor/courier/apply.ts';
import { findLeftovers, removeStaleInbox } from '../../executor/courier/leftovers.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { describeRef } from '../../executor/kube/types.ts';
import { courierDeps, leftCouriers, namedIds, refuseOtherCluster, unitObjects } from '../delivery.ts';
import { FailedWithProblems } from '../failure.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';
import { contentsOf } from '../planning.ts';
import { progressLine, readReleases, settled } from '../releases.ts';
import { type ChosenTree, chooseTree, type TreeOptions } from '../trees.ts';

export interface Options extends TreeOptions {
  readonly follow?: boolean;
  readonly timeout: string;
}

const pollMs = 500;

/** `keelson deliver`: does what a courier does, also when there is no network and no courier. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const limitMs = parseDuration(options.timeout);
  const chosen = await chooseTree(invocation, options);
  return withClient(invocation, options, async (client) => {
    await refuseOtherCluster(invocation, client, chosen);
    const result = await deliver(invocation, client, chosen);
    print(invocation, options.output, result, () => describe(result));
    if (options.follow !== true) return exitCodes.done;
    return follow(invocation, client, chosen, limitMs);
  });
}

interface Result {
  readonly tree: string;
  readonly created: number;
  readonly configured: number;
  readonly unchanged: number;
  readonly removed: readonly string[];
  /** Objects of ours that the tree no longer names; they stay. */
  readonly left: readonly string[];
}

async function deliver(invocation: Invocation, client: KubeClient, chosen: ChosenTree): Promise<Result> {
  const { cluster, tree, name } = chosen;
  const deps = courierDeps(invocation, client, cluster);
  const applied: Applied[] = [];
  const problems: Problem[] = [];
  for (const unit of units) {
    const outcome = await applyObjects(deps, unitObjects(tree, unit));
    applied.push(...outcome.applied);
    problems.push(...outcome.problems);
    // The other two units depend on the first, and on nothing else.
    if (unit === '10-system' && outcome.problems.length > 0) break;
  }
  if (problems.length > 0) throw new FailedWithProblems(problems);
  const { namespace } = cluster.spec.executor;
  const cleanUp = { client, namespace, signal: invocation.signal, named: namedIds(tree) };
  const stale = await removeStaleInbox(cleanUp);
  if (stale.problems.length > 0) throw new FailedWithProblems(stale.problems);
  const count = (what: Applied['what']): number => applied.filter((one) => one.what === what).length;
  const left = [...(await findLeftovers(cleanUp)), ...(await leftCouriers(invocation, client, chosen))];
  return {
    tree: name,
    created: count('created'),
    configured: count('configured'),
    unchanged: count('unchanged'),
    removed: stale.removed.map(describeRef),
    left: left.map(describeRef),
  };
}

function describe(result: Result): string {
  const lines = [
    `delivered ${result.tree}: ${result.created} created, ${result.configured} configured, ${result.unchanged} unchanged`,
    ...result.removed.map((text) => `removed from the inbox: ${text}`),
  ];
  if (result.left.length > 0)
    lines.push('no longer in the tree, and left in the cluster:', ...result.left.map((text) => `  ${text}`));
  return lines.join('\n');
}

/** Tells every change until all releases of the tree are done, or one is stuck. */
async function follow(
  invocation: Invocation,
  client: KubeClient,
  { cluster, tree }: ChosenTree,
  limitMs: number,
): Promise<ExitCode> {
  const wanted = new Set(contentsOf(tree).keys());
  const { clock, signal } = invocation;
  const deadline = clock.monotonic() + limitMs;
  const told = new Map<string, string>();
  for (;;) {
    const all = await readReleases(client, cluster.spec.executor.namespace, signal);
    const releases = all.filter((release) => wanted.has(release.name));
    for (const release of releases) {
      const line = progressLine(release);
      if (told.get(release.name) !== line) invocation.out(line);
      told.set(release.name, line);
    }
    const states = releases.map(settled);
    if (states.length === wanted.size && states.every((state) => state !== undefined))
      return states.includes('stuck') ? exitCodes.failed : exitCodes.done;
    if (clock.monotonic() >= deadline)
      throw new WaitTimeout('the releases to be done', limitMs, [...told.values()].join('; '));
    await clock.sleep(pollMs, signal);
  }
}
