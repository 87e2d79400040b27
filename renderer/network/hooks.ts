/** Helm hooks never run here: those of upgrades, deletions and tests are left out, those of installs refused. */
import { foreignAnnotations } from '../../constructs/api/constants.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { annotationsOf, type ChartObject, describeObject } from './object.ts';

const leftOut = new Set([
  'pre-upgrade',
  'post-upgrade',
  'pre-delete',
  'post-delete',
  'pre-rollback',
  'post-rollback',
  'test',
  'test-success',
  'test-failure',
]);

export interface FilteredHooks {
  readonly kept: readonly ChartObject[];
  /** `Job.batch kube-system/x (pre-upgrade)` of every hook left out, sorted. */
  readonly filtered: readonly string[];
  readonly problems: readonly Problem[];
}

/**
 * Parts hooks from objects by their annotation (a hook's accounts and roles carry it too). A hook that belongs to an
 * install, or an unknown word, is a problem: leaving it out would leave its work undone.
 */
export function filterHooks(objects: readonly ChartObject[]): FilteredHooks {
  const kept: ChartObject[] = [];
  const filtered: string[] = [];
  const problems: Problem[] = [];
  for (const object of objects) {
    const hook = annotationsOf(object)[foreignAnnotations.helmHook];
    if (hook === undefined) {
      kept.push(object);
      continue;
    }
    const words = hook.split(',').map((word) => word.trim().toLowerCase());
    const refused = words.filter((word) => !leftOut.has(word));
    if (refused.length === 0) filtered.push(`${describeObject(object)} (${words.join(',')})`);
    else
      problems.push({
        reason: 'HelmHookRefused',
        message: `the chart has a hook that would have to run: ${refused.join(', ')}`,
        object: describeObject(object),
        path: `metadata.annotations["${foreignAnnotations.helmHook}"]`,
        value: hook,
        remedy: 'hooks are never executed; use a chart version without install hooks',
      });
  }
  return { kept, filtered: filtered.sort(), problems };
}
