/** Points a courier at a rendered tree: the courier's own objects, applied under its own field manager. */
import { managers } from '../../constructs/api/constants.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, refOf } from '../kube/types.ts';
import { type Applied, applyObjects, type CourierDeps } from './apply.ts';

export interface CourierObjects {
  /** How people call the courier. */
  readonly courier: string;
  /** Objects that belong to the tree. */
  readonly own: readonly KubeObject[];
  /** Parts of objects that belong to others: added to what is there, and never made. */
  readonly merge: readonly KubeObject[];
}

/**
 * Applies the objects of a courier. Where the courier is not installed nothing is applied, and what is missing is told:
 * its kinds, its namespace, the object that a part joins.
 */
export async function pointCourier(
  deps: CourierDeps,
  objects: CourierObjects,
): Promise<{ applied: Applied[]; problems: Problem[] }> {
  const missing = await findMissing(deps, objects);
  if (missing.length > 0)
    return {
      applied: [],
      problems: [
        {
          reason: 'CourierNotInstalled',
          message: `${objects.courier} is not installed as cluster.yaml says: ${missing.join('; ')}`,
          remedy: `install ${objects.courier} and bootstrap again; until then use keelson deliver, and bootstrap with --no-courier`,
        },
      ],
    };
  const own = await applyObjects(deps, objects.own);
  // Under the courier's own manager a part would be taken for the whole, the next time the courier applies its own.
  const merged = await applyObjects({ ...deps, fieldManager: managers.none }, objects.merge);
  return { applied: [...own.applied, ...merged.applied], problems: [...own.problems, ...merged.problems] };
}

async function findMissing(deps: CourierDeps, { own, merge }: CourierObjects): Promise<string[]> {
  const { client, signal } = deps;
  const missing: string[] = [];
  const kinds = new Map(own.map(({ apiVersion, kind }) => [`${kind} (${apiVersion})`, { apiVersion, kind }]));
  for (const [text, kind] of kinds)
    if ((await client.resource(kind, { signal })).type === 'kindAbsent') missing.push(`no ${text} is served`);
  const namespaces = new Set([...own, ...merge].flatMap(({ metadata }) => metadata.namespace ?? []));
  for (const name of namespaces) {
    const read = await client.get({ apiVersion: 'v1', kind: 'Namespace', name }, { signal });
    if (read.type === 'absent') missing.push(`there is no namespace ${name}`);
  }
  for (const object of merge) {
    const read = await client.get(refOf(object), { signal });
    if (read.type === 'absent') missing.push(`there is no ${describeRef(refOf(object))}`);
  }
  return missing;
}
