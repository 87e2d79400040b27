/** Renders a share of the folders that a command names: all of them in this thread, or some in a thread of its own. */
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
import { type ClusterFolder, readFolder } from '../clusters.ts';
import { programIdentity } from '../identity.ts';
import type { Invocation } from '../invocation.ts';
import { clusterOf, gitOptions, placeOf, readPublished } from '../published.ts';
import { render, tellWarnings } from '../rendering.ts';
import { cacheFolder } from '../supply.ts';

/** What of the command line a render depends on. */
export interface ShareOptions {
  readonly out?: string;
  readonly check?: boolean;
  readonly cache: boolean;
}

/** What came of one folder. */
export interface ShareResult {
  readonly cluster: string;
  readonly releases: readonly ReleaseSummary[];
  readonly folder?: string;
  readonly changes?: Changes;
}

/** A share that is rendered; nothing is written yet. */
export interface RenderedShare {
  readonly results: readonly ShareResult[];
  write(): Promise<void>;
}

/** Renders folders one after the other. @throws ProblemError for the first that can not be rendered. */
export async function renderShare(
  invocation: Invocation,
  options: ShareOptions,
  folders: readonly ClusterFolder[],
): Promise<RenderedShare> {
  const cache = await openCache(invocation, options);
  const context: Context = { invocation, options, cache, outcomes: outcomeCache(cache) };
  const work: Work[] = [];
  for (const folder of folders) work.push(await workOn(context, folder));
  await cache.sweep();
  return {
    results: work.map(({ result }) => result),
    async write() {
      for (const { write } of work) await write?.();
    },
  };
}

interface Work {
  readonly result: ShareResult;
  readonly write?: () => Promise<void>;
}

interface Context {
  readonly invocation: Invocation;
  readonly options: ShareOptions;
  readonly cache: RenderCache;
  readonly outcomes: OutcomeCache;
}

async function openCache({ env, clock }: Invocation, options: ShareOptions): Promise<RenderCache> {
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
  tellWarnings(invocation, [...rendered.warnings, ...rendered.changes]);
  const { tree, warnings } = rendered;
  const result = summary(rendered);
  await documents.keep();
  await outcomes.write(source, { ...result, path, warnings });
  if (previous === undefined) return { result };
  const { changes, problems } = compareFolder(previous, tree, result.cluster);
  // What could not be compared at all does not read as if nothing differed.
  if (options.check !== true || isEmpty(changes)) refuseProblems(problems);
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

function summary(rendered: Rendered): ShareResult {
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
