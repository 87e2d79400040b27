import type { Cluster } from '../constructs/api/cluster.ts';
import { courierManager } from '../constructs/api/constants.ts';
import { courierFolders, emptyUnitFile, type Tree, type Unit, unitFolder, units } from '../constructs/api/tree.ts';
import { isObject } from '../constructs/lib/json.ts';
import { objectId } from '../constructs/lib/names.ts';
import { ProblemError } from '../constructs/lib/problems.ts';
import { parseYaml } from '../constructs/lib/yaml.ts';
import type { CourierDeps } from '../executor/courier/apply.ts';
import { findLeftCouriers } from '../executor/courier/leftovers.ts';
import type { CourierObjects } from '../executor/courier/point.ts';
import type { KubeClient } from '../executor/kube/client.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf } from '../executor/kube/types.ts';
import { checkCluster } from '../executor/release/preconditions.ts';
import { FailedWithProblems } from './failure.ts';
import type { Invocation } from './invocation.ts';
import { contentsOf } from './planning.ts';
import type { ChosenTree } from './trees.ts';

/** The objects below a folder of a rendered tree. @throws ProblemError */
export function objectsBelow(tree: Tree, folder: string): KubeObject[] {
  const objects: KubeObject[] = [];
  for (const [path, bytes] of tree) {
    if (!path.startsWith(`${folder}/`) || !path.endsWith('.yaml') || path.endsWith(`/${emptyUnitFile}`)) continue;
    const { documents, problems } = parseYaml(Buffer.from(bytes).toString(), path);
    if (problems.length > 0) throw new ProblemError(problems);
    for (const { value } of documents) if (isObject(value)) objects.push(value as KubeObject);
  }
  return objects;
}

export const unitObjects = (tree: Tree, unit: Unit): KubeObject[] => objectsBelow(tree, unitFolder(unit));

/**
 * Before anything is written: the kubeconfig leads to the cluster that the tree was rendered for, as far as tree and settings
 * know it. @throws ProblemError when it is another one. @throws FailedWithProblems when nobody can say.
 */
export async function refuseOtherCluster(
  { signal }: Invocation,
  client: KubeClient,
  { cluster, tree }: Pick<ChosenTree, 'cluster' | 'tree'>,
): Promise<void> {
  const { name } = cluster.metadata;
  const known = [...contentsOf(tree).values()].map(({ clusterUID }) => clusterUID);
  for (const uid of new Set([...known, cluster.spec.clusterUID])) {
    const problems = uid === undefined ? [] : await checkCluster(client, { cluster: name, clusterUID: uid }, signal);
    if (problems.some(({ reason }) => reason === 'ClusterMismatch')) throw new ProblemError(problems);
    if (problems.length > 0) throw new FailedWithProblems(problems);
  }
}

/** The objects that point the courier of a tree at it. @throws ProblemError */
export function courierObjects({ cluster, tree }: Pick<ChosenTree, 'cluster' | 'tree'>): CourierObjects {
  const merge = objectsBelow(tree, courierFolders.merge);
  const joined = new Set(merge.map((object) => objectId(refOf(object))));
  const own = objectsBelow(tree, courierFolders.own).filter((object) => !joined.has(objectId(refOf(object))));
  return { courier: courierNames[cluster.spec.delivery.courier], own, merge };
}

const courierNames = { flux: 'Flux', argo: 'Argo CD', none: 'no courier' } as const;

/** Courier objects in the cluster that the tree does not name. */
export const leftCouriers = (
  invocation: Invocation,
  client: KubeClient,
  chosen: Pick<ChosenTree, 'cluster' | 'tree'>,
): Promise<ObjectRef[]> =>
  findLeftCouriers({
    client,
    signal: invocation.signal,
    cluster: chosen.cluster.metadata.name,
    named: new Set(courierObjects(chosen).own.map((object) => objectId(refOf(object)))),
  });

/** Ids of everything that a courier would apply. */
export const namedIds = (tree: Tree): ReadonlySet<string> =>
  new Set(units.flatMap((unit) => unitObjects(tree, unit)).map((object) => objectId(refOf(object))));

/** How this program stands in for the courier of a cluster. */
export const courierDeps = (invocation: Invocation, client: KubeClient, cluster: Cluster): CourierDeps => ({
  client,
  clock: invocation.clock,
  signal: invocation.signal,
  fieldManager: courierManager(cluster.spec.delivery.courier),
  onApplied: (ref, what) => {
    if (what !== 'unchanged') invocation.err(`${what} ${describeRef(ref)}`);
  },
});
