/** Where everything goes. Pure: by the very rules that rendering names images by, so that what is pulled is there. */
import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { mirrorReference, mirrorRuleFor } from '../oci/mirrors.ts';
import type { Reference } from '../oci/reference.ts';
import { formatReference, parseReference, referenceName } from '../oci/reference.ts';
import type { MirrorRoot } from './content.ts';

/** A root, and the name under which it is pulled. */
export interface MirrorJob {
  readonly root: MirrorRoot;
  readonly to: Reference;
}

export interface MirrorPlan {
  readonly jobs: readonly MirrorJob[];
  /** Roots that a rule leads to another registry than the one that was asked for. */
  readonly elsewhere: readonly MirrorJob[];
  readonly problems: readonly Problem[];
}

const trimmed = (text: string): string => text.replace(/^oci:\/\//, '').replace(/\/+$/, '');

/** Whether a name lies in a registry, or below a path of it. */
const within = (name: string, place: string): boolean => name === place || name.startsWith(`${place}/`);

/** `host[:port][/path]` of a registry as a person writes it; undefined when it is none. */
export function registryPlace(text: string): string | undefined {
  const place = trimmed(text);
  // With anything behind it, it must be the name of a repository.
  const read = parseReference(`${place}/x`);
  return read !== undefined && referenceName(read) === `${place}/x` ? place : undefined;
}

/**
 * Where each root goes: to the name that the mirror rules give it.
 * @param place only what is led there is copied; undefined for wherever the rules lead.
 * @param file of the rules, for problems.
 */
export function planMirror(
  roots: readonly MirrorRoot[],
  rules: readonly RegistryMirror[],
  place: string | undefined,
  file: string,
): MirrorPlan {
  const jobs: MirrorJob[] = [];
  const elsewhere: MirrorJob[] = [];
  const problems: Problem[] = [];
  for (const root of roots) {
    const name = referenceName(root.ref);
    const to = mirrorReference(root.ref, rules);
    const at = { file, path: 'spec.registries', value: formatReference(root.ref) };
    if (to === undefined)
      problems.push({
        reason: 'MirrorNameInvalid',
        message: `the mirror rule that covers ${name} makes no name that a registry takes`,
        ...at,
        remedy: 'correct match or mirror of the rule',
      });
    else if (mirrorRuleFor(name, rules) === undefined && !(place !== undefined && within(name, place)))
      problems.push({
        reason: 'MirrorRuleMissing',
        message: `no mirror rule covers ${name}: the cluster would pull it from there`,
        ...at,
        remedy: `add {match: ${root.ref.registry}, mirror: ${place ?? '<registry>'}/${root.ref.registry.replace(/:.*/, '')}} to spec.registries`,
      });
    else if (place !== undefined && !within(referenceName(to), place)) elsewhere.push({ root, to });
    else jobs.push({ root, to });
  }
  if (place !== undefined && jobs.length === 0 && elsewhere.length > 0) problems.push(missed(place, elsewhere, file));
  return { jobs, elsewhere, problems };
}

/** A registry was asked for, and nothing goes there: a wrong name must not look like a mirror that is complete. */
const missed = (place: string, elsewhere: readonly MirrorJob[], file: string): Problem => ({
  reason: 'MirrorRuleMissing',
  message: `no mirror rule leads to that registry; they lead to ${[...new Set(elsewhere.map(({ to }) => to.registry))].sort().join(', ')}`,
  file,
  path: 'spec.registries',
  value: place,
  remedy: 'correct --to, or leave it out to mirror to wherever the rules lead',
});
