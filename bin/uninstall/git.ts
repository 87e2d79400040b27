import { networkNamespace } from '../../constructs/api/constants.ts';
import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import { namedIds } from '../delivery.ts';
import type { Invocation } from '../invocation.ts';
import { chooseTree, type TreeOptions } from '../trees.ts';

/** The objects that stand for a release: what a courier would bring back. */
function standIns(release: string, namespace: string): string[] {
  const network = release.startsWith('network-')
    ? [`network.keelson.dev/KubeOVNInstallation/${networkNamespace}/${release.slice('network-'.length)}`]
    : [];
  return [`keelson.dev/Release/${namespace}/${release}`, ...network];
}

/** Why the release must not be uninstalled yet: what is published still names it, or could not be looked at. */
export async function stillInGit(
  invocation: Invocation,
  options: TreeOptions & { readonly namespace: string },
  release: string,
): Promise<Problem[]> {
  try {
    const { tree, name } = await chooseTree(invocation, options);
    const named = namedIds(tree);
    return standIns(release, options.namespace)
      .filter((id) => named.has(id))
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
