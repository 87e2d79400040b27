import { type Problem, ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { sharedPlaces } from '../../gitops/publish/changes.ts';
import { type PublishOutcome, publish } from '../../gitops/publish/publish.ts';
import type { ClusterFiles } from '../../renderer/load/source.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';
import { type Place, placeOf } from '../published.ts';
import { render, tellWarnings } from '../rendering.ts';
import { type KeyOptions, signer } from '../signing.ts';
import { version } from '../version.ts';

export interface Options extends CommonOptions, KeyOptions {
  readonly dryRun?: boolean;
  readonly forgetKinds?: boolean;
}

/** `keelson publish`: renders, signs and commits to the rendered repository; nothing when nothing differs. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const results: (PublishOutcome & { readonly cluster: string })[] = [];
  const folders = await clusterFolders(invocation, options);
  const ready = await ground(invocation, folders);
  const key = await signer(invocation, options);
  for (const one of ready) {
    const { folder } = one;
    const outcome = await publishOne(invocation, options, one, key).catch((error: unknown) => {
      // What was published stays published: whoever reads this has to know.
      for (const result of results) invocation.err(describe(result.cluster, result));
      throw error;
    });
    if (outcome.kind === 'refused') throw new ProblemError(outcome.problems);
    results.push({ cluster: folder.shown, ...outcome });
  }
  print(invocation, options.output, results, () =>
    results.map((result) => describe(result.cluster, result)).join('\n'),
  );
  return exitCodes.done;
}

interface Ready {
  readonly folder: ClusterFolder;
  readonly source: ClusterFiles;
  readonly place: Place;
}

/**
 * What is wrong with any of the clusters before one of them is published: files that no commit has, two that would go to one
 * folder of one branch. @throws ProblemError
 */
async function ground(invocation: Invocation, folders: readonly ClusterFolder[]): Promise<Ready[]> {
  const ready: Ready[] = [];
  for (const folder of folders) {
    const source = await readFolder(folder);
    ready.push({ folder, source, place: await placeOf(invocation, folder, source) });
  }
  const trees = ready.map(({ place: { cluster, target } }) => ({
    cluster: cluster.metadata.name,
    place: `${target.url}, branch ${target.branch}, ${target.path}`,
  }));
  refuseProblems([...ready.flatMap(uncommitted), ...sharedPlaces(trees)]);
  return ready;
}

/** Files that would be published under a commit that has them otherwise, or not at all. */
function uncommitted({ source, place: { specs } }: Ready): Problem[] {
  if (specs === undefined) return [];
  const changed = specs.dirty.map((file) => ({
    reason: 'SpecsNotCommitted',
    message: 'the file differs from the commit that would be named as the source',
    file,
    remedy: 'commit it, or take the change back',
  }));
  const dirty = new Set(specs.dirty);
  const unknown = [...source.files.keys()]
    .map((path) => ({ path, file: specs.folder === '' ? path : `${specs.folder}/${path}` }))
    .filter(({ path, file }) => !specs.tracked.has(path) && !dirty.has(file))
    .map(({ file }) => ({
      reason: 'SpecsNotCommitted',
      message:
        'Git does not look at the file (ignored, assume-unchanged or skip-worktree): the commit that would be named as the source may lack it',
      file,
      remedy:
        'commit it with git add --force, after git update-index --no-assume-unchanged --no-skip-worktree, or move it away',
    }));
  return [...changed, ...unknown];
}

async function publishOne(
  invocation: Invocation,
  options: Options,
  { folder, source, place }: Ready,
  key: Awaited<ReturnType<typeof signer>>,
): Promise<PublishOutcome> {
  return publish({
    cluster: place.cluster.metadata.name,
    target: place.target,
    author: place.cluster.spec.delivery.author,
    version,
    specs: place.specs,
    dryRun: options.dryRun === true,
    git: place.git,
    clock: invocation.clock,
    random: invocation.random,
    async render(previous) {
      const rendered = await render(invocation, {
        source,
        folder: folder.path,
        previous,
        forgetKinds: options.forgetKinds === true,
        ...(key === undefined ? {} : { signer: key }),
        ...(place.specs?.commit === undefined ? {} : { specCommit: place.specs.commit }),
      });
      tellWarnings(invocation, [...rendered.warnings, ...rendered.changes]);
      const releases = rendered.releases.map(({ name, index }) => ({ name, digest: index.digest }));
      return { tree: rendered.tree, releases };
    },
  });
}

function describe(cluster: string, outcome: PublishOutcome): string {
  switch (outcome.kind) {
    case 'published': {
      const { added, changed, removed } = outcome.changes;
      return `${cluster}: published ${outcome.commit} (${added.length} added, ${changed.length} changed, ${removed.length} removed)`;
    }
    case 'unchanged':
      return `${cluster}: nothing differs from ${outcome.commit ?? 'an empty target'}; no commit was made`;
    case 'superseded':
      return outcome.published
        ? `${cluster}: spec commit ${outcome.by} is newer and already published; nothing was done`
        : `${cluster}: spec commit ${outcome.by} is newer and changes this cluster; nothing was done, since publishing that one decides`;
    case 'wouldPublish': {
      const { added, changed, removed } = outcome.changes;
      const files = [
        ...added.map((path) => `  + ${path}`),
        ...changed.map((path) => `  ~ ${path}`),
        ...removed.map((path) => `  - ${path}`),
      ];
      return [`${cluster}: would commit`, ...files, '', outcome.message.trimEnd()].join('\n');
    }
    case 'refused':
      return `${cluster}: refused`;
  }
}
