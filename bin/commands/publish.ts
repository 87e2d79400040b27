import { ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { sharedPlaces } from '../../gitops/publish/changes.ts';
import { type PublishOutcome, publish } from '../../gitops/publish/publish.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';
import { placeOf } from '../published.ts';
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
  await refuseShared(invocation, folders);
  for (const folder of folders) {
    const outcome = await publishOne(invocation, options, folder);
    if (outcome.kind === 'refused') throw new ProblemError(outcome.problems);
    results.push({ cluster: folder.shown, ...outcome });
  }
  print(invocation, options.output, results, () =>
    results.map((result) => describe(result.cluster, result)).join('\n'),
  );
  return exitCodes.done;
}

/** @throws ProblemError, before anything is published, when two clusters would go to one folder of one branch. */
async function refuseShared(invocation: Invocation, folders: readonly ClusterFolder[]): Promise<void> {
  if (folders.length < 2) return;
  const trees: { cluster: string; place: string }[] = [];
  for (const folder of folders) {
    const { cluster, target } = await placeOf(invocation, folder, await readFolder(folder));
    trees.push({ cluster: cluster.metadata.name, place: `${target.url}, branch ${target.branch}, ${target.path}` });
  }
  refuseProblems(sharedPlaces(trees));
}

async function publishOne(invocation: Invocation, options: Options, folder: ClusterFolder): Promise<PublishOutcome> {
  const source = await readFolder(folder);
  const place = await placeOf(invocation, folder, source);
  if (place.specs !== undefined && place.specs.dirty.length > 0)
    throw new ProblemError(
      place.specs.dirty.map((file) => ({
        reason: 'SpecsNotCommitted',
        message: 'the file differs from the commit that would be named as the source',
        file,
        remedy: 'commit it, or take the change back',
      })),
    );
  const key = await signer(invocation, options);
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
