import type { Problem } from '../../constructs/lib/problems.ts';

/**
 * The major version of Helm that rendering was proven with. Another one has flags, hooks and template functions of its own, and
 * would give other objects from the same chart without a word.
 */
const supportedMajor = 3;

/** The version that `helm version --short` says, without leading `v` and build; undefined for anything else. */
export const readHelmVersion = (said: string): string | undefined =>
  /^v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)(?:\+\S*)?$/.exec(said.trim())?.[1];

/** What is wrong with a version of Helm that Keelson does not work with. `locked` is the one that the lock names, if any. */
export function unsupportedHelm(version: string, locked?: string): Problem | undefined {
  if (Number(version.split('.', 1)[0]) === supportedMajor) return undefined;
  const instead = locked === undefined || locked === version ? `a Helm ${supportedMajor}` : `Helm ${locked}`;
  const more = locked === version ? ', and lock it with keelson lock' : '';
  return {
    reason: 'HelmUnsupported',
    message: `Helm ${version} is not supported: charts are rendered with Helm ${supportedMajor} only`,
    value: version,
    remedy: `install ${instead} beside it, and set KEELSON_HELM to that program${more}`,
  };
}
