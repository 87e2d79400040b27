import { apiGroup, networkApiVersion } from '../../constructs/api/constants.ts';
import { groupOf, parseObjectId } from '../../constructs/lib/names.ts';
import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import { namedIds } from '../delivery.ts';
import type { Invocation } from '../invocation.ts';
import { chooseTree, type TreeOptions } from '../trees.ts';

/** Whether an object stands for a release: what a courier would bring back. An installation may be in any namespace. */
export function standsFor(id: string, release: string, releaseNamespace: string): boolean {
  const { group, kind, namespace, name } = parseObjectId(id);
  if (group === apiGroup && kind === 'Release') return namespace === releaseNamespace && name === release;
  return group === groupOf(networkApiVersion) && kind === 'KubeOVNInstallation' && `network-${name}` === release;
}

/** Why the release must not be uninstalled yet: what is published still names it, or could not be looked at. */
export async function stillInGit(
  invocation: Invocation,
  options: TreeOptions & { readonly namespace: string },
  release: string,
): Promise<Problem[]> {
  try {
    const { tree, name } = await chooseTree(invocation, options);
    return [...namedIds(tree)]
      .filter((id) => standsFor(id, release, options.namespace))
      .sort()
      .map((object) => ({
        reason: 'StillInGit',
        message: `${name} still names it: the courier would bring it back`,
        object,
        remedy: 'remove it from the folder of the cluster, publish, and let the courier deliver that commit first',
      }));
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return [
      {
        reason: 'GitNotChecked',
        message: `whether what is published still names ${release} could not be looked at: ${error.problems[0]?.message ?? ''}`,
        remedy:
          'run it in the repository of the specs; with --no-git-check when nothing delivers this release any more',
      },
    ];
  }
}
