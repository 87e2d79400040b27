import { join, resolve } from 'node:path';
import { deliveryPath } from '../../constructs/api/cluster.ts';
import type { Tree } from '../../constructs/api/tree.ts';
import { ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { specRepository } from '../../gitops/git/specs.ts';
import { type Changes, isEmpty } from '../../gitops/publish/changes.ts';
import { compareFolder, readTreeFolder, writeTreeFolder } from '../../gitops/publish/folder.ts';
import type { Rendered } from '../../renderer/render.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print, table } from '../output.ts';
import { clusterOf, gitOptions, placeOf, readPublished } from '../published.ts';
import { render, tellWarnings } from '../rendering.ts';

export interface Options extends CommonOptions {
  readonly out?: string;
  readonly check?: boolean;
}

interface Result {
  readonly cluster: string;
  readonly releases: readonly { name: string; digest: string; objects: number; phases: number }[];
  readonly folder?: string;
  readonly changes?: Changes;
}

/** `keelson render`: renders, and writes to a folder, or compares, or just says what came of it. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const folders = await clusterFolders(invocation, options);
  const work: { result: Result; write?: () => Promise<void> }[] = [];
  // Everything is rendered before anything is written.
  for (const folder of folders) work.push(await renderOne(invocation, options, folder));
  if (options.check !== true) for (const { write } of work) await write?.();
  const results = work.map(({ result }) => result);
  print(invocation, options.output, results, () => describe(results, options.check === true));
  const differs = results.some(({ changes }) => changes !== undefined && !isEmpty(changes));
  return options.check === true && differs ? exitCodes.differs : exitCodes.done;
}

async function renderOne(
  invocation: Invocation,
  options: Options,
  folder: ClusterFolder,
): Promise<{ result: Result; write?: () => Promise<void> }> {
  const source = await readFolder(folder);
  const inFolder = options.out === undefined ? undefined : resolve(invocation.cwd, options.out);
  const place =
    inFolder === undefined && options.check === true ? await placeOf(invocation, folder, source) : undefined;
  const cluster = place?.cluster ?? clusterOf(invocation, folder, source);
  const target = inFolder === undefined ? undefined : join(inFolder, deliveryPath(cluster));
  if (target !== undefined) refuseInSpecs(target, folder);
  const previous: Tree | undefined =
    target !== undefined
      ? await readTreeFolder(target)
      : place === undefined
        ? undefined
        : (await readPublished(place)).tree;
  const specs = await specRepository(folder.path, gitOptions(invocation)).catch(() => undefined);
  const rendered = await render(invocation, {
    source,
    folder: folder.path,
    ...(previous === undefined ? {} : { previous }),
    ...(specs?.commit === undefined || specs.dirty.length > 0 ? {} : { specCommit: specs.commit }),
  });
  tellWarnings(invocation, rendered.warnings);
  const result = summary(rendered);
  if (previous === undefined) return { result };
  const { changes, problems } = compareFolder(previous, rendered.tree);
  if (options.check !== true) refuseProblems(problems);
  return {
    result: { ...result, changes, ...(target === undefined ? {} : { folder: target }) },
    ...(target === undefined ? {} : { write: () => writeTreeFolder(target, changes, rendered.tree) }),
  };
}

/** A tree among the specs would be read as specs the next time. @throws ProblemError */
function refuseInSpecs(target: string, folder: ClusterFolder): void {
  const within = (inner: string, outer: string): boolean => `${inner}/`.startsWith(`${outer}/`);
  if (!within(target, folder.path) && !within(folder.path, target)) return;
  throw new ProblemError([
    {
      reason: 'FileRefused',
      message: 'the tree would stand among the specs of the cluster',
      file: folder.shown,
      path: '--out',
      value: target,
      remedy: 'name a folder outside of the cluster folder with --out',
    },
  ]);
}

function summary(rendered: Rendered): Result {
  return {
    cluster: rendered.loaded.cluster.metadata.name,
    releases: rendered.releases.map(({ name, index, objects }) => ({
      name,
      digest: index.digest,
      objects: objects.size,
      phases: index.content.phases.length,
    })),
  };
}

function describe(results: readonly Result[], check: boolean): string {
  const rows = results.flatMap(({ cluster, releases }) =>
    releases.map((r) => [cluster, r.name, String(r.phases), String(r.objects), r.digest]),
  );
  const lines = [table(['CLUSTER', 'RELEASE', 'PHASES', 'OBJECTS', 'DIGEST'], rows)];
  for (const { cluster, changes, folder } of results) {
    if (changes === undefined) continue;
    const counts = `${changes.added.length} added, ${changes.changed.length} changed, ${changes.removed.length} removed`;
    if (isEmpty(changes)) lines.push(`${cluster}: nothing differs${folder === undefined ? '' : ` in ${folder}`}`);
    else if (check) lines.push(`${cluster}: ${counts}`, ...listed(changes));
    else lines.push(`${cluster}: ${counts} in ${folder}`);
  }
  return lines.join('\n');
}

const listed = (changes: Changes): string[] => [
  ...changes.added.map((path) => `  + ${path}`),
  ...changes.changed.map((path) => `  ~ ${path}`),
  ...changes.removed.map((path) => `  - ${path}`),
];
