import { join, resolve } from 'node:path';
import { deliveryPath } from '../../constructs/api/cluster.ts';
import type { Tree } from '../../constructs/api/tree.ts';
import { ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { specRepository } from '../../gitops/git/specs.ts';
import { type Changes, isEmpty } from '../../gitops/publish/changes.ts';
import { compareFolder, readTreeFolder, writeTreeFolder } from '../../gitops/publish/folder.ts';
import { cachedDocuments } from '../../renderer/cache/documents.ts';
import { helmCache } from '../../renderer/cache/helm.ts';
import {
  type KnownOutcome,
  type OutcomeCache,
  outcomeCache,
  type ReleaseSummary,
} from '../../renderer/cache/outcome.ts';
import { createRenderCache, noRenderCache, type RenderCache } from '../../renderer/cache/store.ts';
import type { ClusterFiles } from '../../renderer/load/source.ts';
import type { Rendered } from '../../renderer/render.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { programIdentity } from '../identity.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print, table } from '../output.ts';
import { clusterOf, gitOptions, placeOf, readPublished } from '../published.ts';
import { render, tellWarnings } from '../rendering.ts';
import { cacheFolder } from '../supply.ts';

export interface Options extends CommonOptions {
  readonly out?: string;
  readonly check?: boolean;
  readonly cache: boolean;
}

interface Result {
  readonly cluster: string;
  readonly releases: readonly ReleaseSummary[];
  readonly folder?: string;
  readonly changes?: Changes;
}

interface Work {
  readonly result: Result;
  readonly write?: () => Promise<void>;
}

interface Context {
  readonly invocation: Invocation;
  readonly options: Options;
  readonly cache: RenderCache;
  readonly outcomes: OutcomeCache;
}

/** `keelson render`: renders, and writes to a folder, or compares, or just says what came of it. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const folders = await clusterFolders(invocation, options);
  const cache = await openCache(invocation, options);
  const context: Context = { invocation, options, cache, outcomes: outcomeCache(cache) };
  const work: Work[] = [];
  // Everything is rendered before anything is written.
  for (const folder of folders) work.push(await workOn(context, folder));
  if (options.check !== true) for (const { write } of work) await write?.();
  await cache.sweep();
  const results = work.map(({ result }) => result);
  print(invocation, options.output, results, () => describe(results, options.check === true));
  const differs = results.some(({ changes }) => changes !== undefined && !isEmpty(changes));
  return options.check === true && differs ? exitCodes.differs : exitCodes.done;
}

async function openCache({ env, clock }: Invocation, options: Options): Promise<RenderCache> {
  if (!options.cache) return noRenderCache;
  return createRenderCache({ folder: cacheFolder(env), program: await programIdentity(), clock });
}

async function workOn(context: Context, folder: ClusterFolder): Promise<Work> {
  const source = await readFolder(folder);
  const known = await context.outcomes.read(source);
  return (
    (known === undefined ? undefined : await workOnKnown(context, folder, source, known)) ??
    renderOne(context, folder, source)
  );
}

/** The folder that the tree goes to, when one was named. */
function targetOf({ invocation, options }: Context, folder: ClusterFolder, path: string): string | undefined {
  if (options.out === undefined) return undefined;
  const target = join(resolve(invocation.cwd, options.out), path);
  refuseInSpecs(target, folder);
  return target;
}

/** What is known to come of these files, where it is also known to change nothing; else undefined. */
async function workOnKnown(
  context: Context,
  folder: ClusterFolder,
  source: ClusterFiles,
  { cluster, path, releases, warnings }: KnownOutcome,
): Promise<Work | undefined> {
  const { invocation, options, outcomes } = context;
  const target = targetOf(context, folder, path);
  if (target === undefined && options.check === true) return undefined;
  if (target !== undefined && !(await outcomes.leaves(source, await readTreeFolder(target)))) return undefined;
  tellWarnings(invocation, warnings);
  const result = { cluster, releases };
  if (target === undefined) return { result };
  return { result: { ...result, folder: target, changes: { added: [], changed: [], removed: [] } } };
}

async function renderOne(context: Context, folder: ClusterFolder, source: ClusterFiles): Promise<Work> {
  const { invocation, options, cache, outcomes } = context;
  const documents = await cachedDocuments(cache, source);
  const published = options.out === undefined && options.check === true;
  const place = published ? await placeOf(invocation, folder, source) : undefined;
  const cluster = place?.cluster ?? clusterOf(invocation, folder, source, documents.parse);
  const path = deliveryPath(cluster);
  const target = targetOf(context, folder, path);
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
    parse: documents.parse,
    helm: helmCache(cache),
    ...(previous === undefined ? {} : { previous }),
    ...(specs?.commit === undefined || specs.dirty.length > 0 ? {} : { specCommit: specs.commit }),
  });
  tellWarnings(invocation, rendered.warnings);
  const { tree, warnings } = rendered;
  const result = summary(rendered);
  await documents.keep();
  await outcomes.write(source, { ...result, path, warnings });
  if (previous === undefined) return { result };
  const { changes, problems } = compareFolder(previous, tree);
  if (options.check !== true) refuseProblems(problems);
  // Over a tree that it has rendered itself it renders the same again.
  await outcomes.writeLeaves(source, isEmpty(changes) && problems.length === 0 ? previous : tree);
  return {
    result: { ...result, changes, ...(target === undefined ? {} : { folder: target }) },
    ...(target === undefined ? {} : { write: () => writeTreeFolder(target, changes, tree) }),
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
