/** `spec.dataPlane.nodeSelector`, merged into every workload of the data plane. */
import type { Inventory } from '../../constructs/api/inventory.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { matchesSelector } from './addresses.ts';
import { type ChartObject, describeObject, items, member, podSpecOf, stringMap, withPodSpec } from './object.ts';
import { isDataPlaneWorkload } from './table.ts';

export interface MergedSelectors {
  readonly objects: readonly ChartObject[];
  /** `Kind/name` of the workloads that were touched, sorted. */
  readonly touched: readonly string[];
  readonly problems: readonly Problem[];
}

/** Label keys that a required node affinity demands. */
function requiredKeys(podSpec: JsonObject): string[] {
  const affinity = member(member(podSpec, 'affinity'), 'nodeAffinity');
  const terms = items(member(affinity, 'requiredDuringSchedulingIgnoredDuringExecution').nodeSelectorTerms);
  if (terms.length !== 1) return [];
  return items(terms[0]?.matchExpressions)
    .filter((expression) => expression.operator === 'Exists' || expression.operator === 'In')
    .map((expression) => String(expression.key));
}

/**
 * Merges the selector. What the chart selects stays, the Linux selector included; a key that both give different values
 * is a problem, and so is a workload that no node of the inventory could then carry.
 */
export function mergeNodeSelector(
  objects: readonly ChartObject[],
  selector: Readonly<Record<string, string>> | undefined,
  inventory: Inventory,
): MergedSelectors {
  if (selector === undefined || Object.keys(selector).length === 0) return { objects, touched: [], problems: [] };
  const touched: string[] = [];
  const problems: Problem[] = [];
  const merged = objects.map((object) => {
    const podSpec = isDataPlaneWorkload(object) ? podSpecOf(object) : undefined;
    if (podSpec === undefined) return object;
    const present = stringMap(podSpec.nodeSelector);
    const conflicts = Object.keys(selector).filter(
      (key) => present[key] !== undefined && present[key] !== selector[key],
    );
    for (const key of conflicts)
      problems.push({
        reason: 'NodeSelectorConflict',
        message: `the chart selects ${key}=${present[key]} here`,
        object: describeObject(object),
        path: `spec.dataPlane.nodeSelector["${key}"]`,
        value: selector[key] ?? '',
        remedy: 'take the key out of spec.dataPlane.nodeSelector',
      });
    const keys = requiredKeys(podSpec);
    const fits = inventory.spec.nodes.some(
      (node) => matchesSelector(node, selector) && keys.every((key) => Object.hasOwn(node.labels, key)),
    );
    if (keys.length > 0 && !fits)
      problems.push({
        reason: 'NodeSelectorUnsatisfiable',
        message: `no node carries both the selector and the labels that the chart requires here (${keys.join(', ')})`,
        object: describeObject(object),
        path: 'spec.dataPlane.nodeSelector',
        remedy: 'label a node with both, or change the selector',
      });
    touched.push(`${object.kind}/${object.name}`);
    return withPodSpec(object, { ...podSpec, nodeSelector: { ...present, ...selector } });
  });
  return { objects: merged, touched: touched.sort(), problems };
}
