/** Plain manifests: they may change freely; the plan, the prune bounds and approval are their only brakes. */
import { classifyManifests } from '../../constructs/api/plan.ts';
import { bindsNothing } from '../apply/bind.ts';
import type { Domain, WriteGuard } from './domain.ts';

const noInstallation = (count: number) => ({
  reason: 'PayloadIntegrity',
  message: `the payload of plain manifests names ${count} installation(s)`,
  path: 'content.installations',
  remedy: 'render the cluster again with this version of keelson',
});

/** The role's leader Lease is all that plain manifests need; the worker checks it before every write. */
const openGuard: WriteGuard = { check: () => undefined, release: () => Promise.resolve() };

/** The domain of `manifests/<name>/`. */
export const manifestsDomain: Domain<undefined> = {
  name: 'manifests',
  prepare: () => Promise.resolve({ snapshot: undefined, problems: [] }),
  admit: ({ content }) => (content.installations.length === 0 ? [] : [noInstallation(content.installations.length)]),
  classify: ({ previous, content }, actions) => ({
    verdict: 'allowed',
    changeClass: classifyManifests(previous?.content, content, actions),
  }),
  bind: () => bindsNothing,
  gate: () => undefined,
  beforeFirstWrite: () => Promise.resolve([]),
  guard: () => Promise.resolve({ granted: true, guard: openGuard }),
};
