/** What domains have in common that hold no installation: what they write may change freely. */
import { classifyManifests } from '../../constructs/api/plan.ts';
import { bindsNothing } from '../apply/bind.ts';
import type { Domain, WriteGuard } from './domain.ts';

/** The role's leader Lease is all that they need; the worker checks it before every write. */
const openGuard: WriteGuard = { check: () => undefined, release: () => Promise.resolve() };

/** The plan, the prune bounds and approval are the only brakes of such a domain. */
export const freeChanges: Pick<Domain<unknown>, 'classify' | 'bind' | 'gate' | 'beforeFirstWrite' | 'guard'> = {
  classify: ({ previous, content }, actions) => ({
    verdict: 'allowed',
    changeClass: classifyManifests(previous?.content, content, actions),
  }),
  bind: () => bindsNothing,
  gate: () => undefined,
  beforeFirstWrite: () => Promise.resolve([]),
  guard: () => Promise.resolve({ granted: true, guard: openGuard }),
};
