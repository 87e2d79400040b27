/** The installation that a Release is for, wherever it is: only its name is told by the Release. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { installationKind } from './snapshot.ts';

/** Looks in all namespaces, uncached. Undefined when there is none; more than one of that name is a problem. */
export async function findInstallation(
  client: KubeClient,
  release: string,
  signal: AbortSignal,
): Promise<{ readonly installation: KubeObject | undefined } | { readonly problem: Problem }> {
  const name = release.replace(/^network-/, '');
  const listed = await client.list({ apiVersion: networkApiVersion, kind: installationKind }, { signal });
  if (listed.type === 'kindAbsent') return { installation: undefined };
  const object = `${installationKind} ${name}`;
  if (listed.type !== 'listed') return { problem: { reason: 'ApiUnavailable', message: listed.message, object } };
  const found = listed.items.filter(({ metadata }) => metadata.name === name);
  if (found.length < 2) return { installation: found[0] };
  const where = found.map(({ metadata }) => metadata.namespace ?? '').sort();
  return {
    problem: {
      reason: 'InstallationTwice',
      message: `which one Release ${release} is for is not known: there is one in each of ${where.join(', ')}`,
      object,
      remedy: 'keep the one that this Release installed, and delete the others; nothing was written',
    },
  };
}
