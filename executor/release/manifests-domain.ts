/** Plain manifests: they may change freely; the plan, the prune bounds and approval are their only brakes. */
import type { Domain } from './domain.ts';
import { freeChanges } from './free-changes.ts';

const noInstallation = (count: number) => ({
  reason: 'PayloadIntegrity',
  message: `the payload of plain manifests names ${count} installation(s)`,
  path: 'content.installations',
  remedy: 'render the cluster again with this version of keelson',
});

/** The domain of `manifests/<name>/`. */
export const manifestsDomain: Domain<undefined> = {
  name: 'manifests',
  prepare: () => Promise.resolve({ snapshot: undefined, problems: [] }),
  admit: ({ content }) => (content.installations.length === 0 ? [] : [noInstallation(content.installations.length)]),
  ...freeChanges,
};
