/** What an installation takes over that was there before it. Pure. */
import { adoptableIds } from '../../constructs/api/plan.ts';
import type { AdoptionRules } from '../apply/adopt-rules.ts';
import type { DomainTarget } from '../release/domain.ts';
import { installationEntryOf, type NetworkSnapshot } from './snapshot.ts';

/**
 * The rules of an adoption, while there is one: the first payload of all takes over what it names, and a pass of the accepted
 * payload ends what was begun. Later payloads find nothing to adopt. Whose fields may be taken is the word of the payload,
 * which was signed and approved; what the live object says since can only take managers off that list, or stop it.
 */
export function adoptionRules(
  { content, previous, purpose }: Pick<DomainTarget, 'content' | 'previous' | 'purpose'>,
  { installation }: NetworkSnapshot,
): AdoptionRules | undefined {
  const entry = installationEntryOf(content);
  const { enabled, selector, takeManagers } = installation?.spec.adoption ?? {};
  if (entry?.adoption === undefined || installation === undefined) return undefined;
  if (enabled !== true || selector === undefined) return undefined;
  return {
    ids: purpose === 'accept' && previous === undefined ? adoptableIds(content) : new Set(),
    namespace: entry.namespace,
    selector,
    takeManagers: entry.adoption.takeManagers.filter((manager) => takeManagers?.includes(manager) === true),
    installationUID: installation.uid,
    version: entry.version,
  };
}
