import type { Tree } from '../../constructs/api/tree.ts';
import { treeFile } from '../../constructs/api/tree.ts';
import { backoff } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Git, GitError, type GitOptions, openGit } from '../git/git.ts';
import { newerSpecs, relationOf, type SpecRepository } from '../git/specs.ts';
import { type Changes, compareTrees, isEmpty, publishedPaths } from './changes.ts';
import { commitMessage, trailers } from './message.ts';
import { openScratch, type Scratch } from './scratch.ts';
import type { Target } from './target.ts';

/** A rendered tree and the payloads in it. */
export interface Rendering {
  readonly tree: Tree;
  readonly releases: readonly { readonly name: string; readonly digest: string }[];
}

export interface PublishInput {
  readonly cluster: string;
  readonly target: Target;
  readonly author: { readonly name: string; readonly email: string };
  /** Version of keelson, for the trailer. */
  readonly version: string;
  /** The repository of the specs; undefined when they are in none. */
  readonly specs: SpecRepository | undefined;
  /** Renders on top of what is published; called again after another publisher was faster. */
  readonly render: (previous: Tree) => Promise<Rendering>;
  readonly dryRun?: boolean;
  readonly git: GitOptions;
  readonly clock: Clock;
  readonly random: Random;
  /** How often a push may lose against others. Default 8. */
  readonly attempts?: number;
}

export type PublishOutcome =
  | { readonly kind: 'published'; readonly commit: string; readonly changes: Changes; readonly attempts: number }
  | { readonly kind: 'unchanged'; readonly commit: string | undefined }
  /**
   * A newer commit of the specs is published already, or is where these specs come from and changes this cluster:
   * whoever publishes it decides. Nothing was done.
   */
  | { readonly kind: 'superseded'; readonly by: string; readonly published: boolean }
  | { readonly kind: 'wouldPublish'; readonly changes: Changes; readonly message: string }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] };

const retryBackoff = { initialMs: 200, factor: 2, maxMs: 5_000, jitter: 0.5 };

const refused = (...problems: Problem[]): PublishOutcome => ({ kind: 'refused', problems });

/**
 * Commits a rendered tree to its target. Nothing is committed when nothing differs; only files of the previous list are
 * touched; the branch never moves by force. When another publisher was faster, everything is looked at again: a newer
 * spec wins, and a spec of another history stops.
 * @throws GitError when git fails for a reason that trying again does not help.
 */
export async function publish(input: PublishInput): Promise<PublishOutcome> {
  const scratch = await openScratch(input.target, {
    ...input.git,
    config: [`user.name=${input.author.name}`, `user.email=${input.author.email}`],
  });
  try {
    const attempts = input.attempts ?? 8;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const outcome = await publishOnce(input, scratch, attempt + 1);
      if (outcome !== 'lost') return outcome;
      await input.clock.sleep(backoff(retryBackoff, attempt, input.random), input.git.signal);
    }
    return refused({
      reason: 'PublishRaced',
      message: `other publishers were faster ${attempts} times`,
      object: `branch ${input.target.branch}`,
      remedy: 'publish again when they are done',
    });
  } finally {
    await scratch.dispose();
  }
}

async function publishOnce(input: PublishInput, scratch: Scratch, attempts: number): Promise<PublishOutcome | 'lost'> {
  const head = await scratch.refresh();
  const standing = await scratch.standing(head);
  const { paths, problems: broken } = publishedPaths(standing.get(treeFile), input.cluster);
  if (broken.length > 0) return refused(...broken.map((p) => ({ ...p, file: `${input.target.path}/${p.file}` })));
  const older = await compareSpecs(input, scratch.git, head);
  if (older !== undefined) return older;
  const rendering = await input.render(standing);
  const { changes, problems } = compareTrees(standing, paths, rendering.tree);
  if (problems.length > 0) return refused(...problems.map((p) => ({ ...p, file: `${input.target.path}/${p.file}` })));
  if (isEmpty(changes)) return { kind: 'unchanged', commit: head };
  const late = await overtaken(input);
  if (late !== undefined) return late;
  const message = commitMessage({
    cluster: input.cluster,
    ...(input.specs?.commit === undefined ? {} : { specCommit: input.specs.commit }),
    version: input.version,
    releases: rendering.releases,
    changed: changedReleases(changes),
  });
  if (input.dryRun === true) return { kind: 'wouldPublish', changes, message };
  await scratch.stage(changes, rendering.tree);
  await scratch.git.run('commit', '--quiet', '--no-verify', '-m', message.trimEnd());
  const commit = (await scratch.git.run('rev-parse', 'HEAD')).trim();
  return (await deliver(input, scratch.git)) ? { kind: 'published', commit, changes, attempts } : 'lost';
}

/** Releases whose index differs. */
function changedReleases(changes: Changes): string[] {
  const names = [...changes.added, ...changes.changed, ...changes.removed].flatMap((path) => {
    const match = /^payload\/([^/]+)\/index\.json$/.exec(path);
    return match?.[1] === undefined ? [] : [match[1]];
  });
  return [...new Set(names)].sort();
}

/** Refuses to go back, and to mix two histories. */
async function compareSpecs(
  input: PublishInput,
  git: Git,
  head: string | undefined,
): Promise<PublishOutcome | undefined> {
  if (head === undefined) return undefined;
  const theirs = await publishedSpec(git, head, input.cluster);
  if (theirs === undefined) return undefined;
  const ours = input.specs?.commit;
  const relation =
    ours === undefined || input.specs === undefined ? 'unknown' : await relationOf(git, input.specs, ours, theirs);
  if (relation === 'same' || relation === 'older') return undefined;
  if (relation === 'newer') return { kind: 'superseded', by: theirs, published: true };
  const why =
    relation === 'unrelated'
      ? 'neither of the two commits comes after the other'
      : 'that commit is in none of the places where these specs come from';
  return refused({
    reason: 'SpecHistoryUnrelated',
    message: `what is published comes from spec commit ${theirs}, and ${why}`,
    object: `branch ${input.target.branch}`,
    value: ours ?? 'specs outside git',
    remedy:
      relation === 'unrelated'
        ? 'merge the two histories and publish the result'
        : 'fetch the whole history of the specs (no shallow clone), or publish from their repository',
  });
}

/**
 * A newer commit may have rendered to what is published already, and left no commit that would tell. So what is about to
 * be published is compared with where its specs come from as well, as late as can be.
 */
async function overtaken({ specs, git }: PublishInput): Promise<PublishOutcome | undefined> {
  if (specs?.commit === undefined) return undefined;
  const by = await newerSpecs(specs, specs.commit, git);
  return by === undefined ? undefined : { kind: 'superseded', by, published: false };
}

/** The spec commit that the last publication of this cluster was rendered from. */
async function publishedSpec(git: Git, head: string, cluster: string): Promise<string | undefined> {
  const format = `%(trailers:key=${trailers.specCommit},valueonly)`;
  const found = await git.run('log', '-1', `--format=${format}`, `--grep=^${trailers.cluster}: ${cluster}$`, head);
  return /^[0-9a-f]{40,64}$/.exec(found.trim())?.[0];
}

/** Moves the branch; false when another publisher moved it meanwhile. */
async function deliver(input: PublishInput, scratch: Git): Promise<boolean> {
  const { url, branch, checkedOut } = input.target;
  if (!checkedOut) return push(scratch, branch);
  const there = openGit(url, input.git);
  await there.run('fetch', '--quiet', '--no-tags', scratch.directory, 'HEAD');
  try {
    await there.run('merge', '--quiet', '--ff-only', 'FETCH_HEAD');
    return true;
  } catch (error) {
    if (error instanceof GitError && /not possible to fast-forward/i.test(error.message)) return false;
    throw error;
  }
}

async function push(scratch: Git, branch: string): Promise<boolean> {
  try {
    await scratch.run('push', '--quiet', 'origin', `HEAD:refs/heads/${branch}`);
    return true;
  } catch (error) {
    const lost =
      /\[(remote )?rejected\].*(fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref|already exists|reference already exists|incorrect old value)/s;
    if (error instanceof GitError && lost.test(error.message)) return false;
    throw error;
  }
}
