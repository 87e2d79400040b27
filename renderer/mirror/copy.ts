/** Copies roots from a source to a target. What is there is not sent again, so a run that was cut short goes on. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '../../constructs/lib/problems.ts';
import { sortProblems } from '../../constructs/lib/problems.ts';
import type { Descriptor } from '../oci/links.ts';
import { formatReference } from '../oci/reference.ts';
import type { RegistryOutcome } from '../oci/types.ts';
import type { ContentSource, ContentTarget } from './content.ts';
import type { MirrorJob } from './plan.ts';
import { createPool, type Pool } from './pool.ts';
import { missing, type Walked, walkRoot } from './walk.ts';

/** How far a run is. */
export interface MirrorProgress {
  readonly roots: { readonly done: number; readonly total: number };
  readonly blobs: { readonly done: number; readonly total: number };
  /** Of the blobs; `present` were there already. */
  readonly bytes: { readonly copied: number; readonly present: number; readonly total: number };
}

export interface CopyOptions {
  readonly source: ContentSource;
  readonly target: ContentTarget;
  /** Blobs, and manifests, at a time. */
  readonly concurrency: number;
  readonly onProgress: (progress: MirrorProgress) => void;
  /** Told of every root that is complete at the target. */
  readonly onDone: (job: MirrorJob) => void;
  readonly signal: AbortSignal;
}

interface Counts {
  roots: { done: number; total: number };
  blobs: { done: number; total: number };
  bytes: { copied: number; present: number; total: number };
}

interface Run extends CopyOptions {
  readonly pool: Pool;
  readonly counts: Counts;
  /** Copies under way or done, by where the content is kept: nothing is copied twice. */
  readonly copies: Map<string, Promise<RegistryOutcome<undefined>>>;
  /** The last copy of each digest: the next repository may take it over instead of receiving it. */
  readonly byDigest: Map<string, Promise<unknown>>;
}

export interface CopyResult {
  /** Jobs that are complete at the target. */
  readonly done: readonly MirrorJob[];
  /** Everything that is missing. */
  readonly problems: readonly Problem[];
  readonly progress: MirrorProgress;
}

/**
 * Copies all jobs, as far as it goes: one that is missing does not keep the others back.
 * @throws DiskTrouble, and the signal's reason; both leave a target from which the next run goes on.
 */
export async function copyAll(jobs: readonly MirrorJob[], options: CopyOptions): Promise<CopyResult> {
  const stop = new AbortController();
  const run: Run = {
    ...options,
    signal: AbortSignal.any([options.signal, stop.signal]),
    pool: createPool(options.concurrency),
    counts: {
      roots: { done: 0, total: jobs.length },
      blobs: { done: 0, total: 0 },
      bytes: { copied: 0, present: 0, total: 0 },
    },
    copies: new Map(),
    byDigest: new Map(),
  };
  const done: MirrorJob[] = [];
  const problems: Problem[] = [];
  const work = jobs.map(async (job) => {
    const found = await copyRoot(run, job);
    problems.push(...found);
    if (found.length > 0) return;
    done.push(job);
    run.counts.roots.done += 1;
    options.onDone(job);
    options.onProgress(run.counts);
  });
  try {
    await Promise.all(work);
  } catch (error) {
    // Whatever ends one of them ends the run: a full disk, a person.
    stop.abort(error);
    await Promise.allSettled([...work, ...run.copies.values()]);
    throw error;
  }
  return { done, problems: sortProblems(problems), progress: run.counts };
}

async function copyRoot(run: Run, job: MirrorJob): Promise<readonly Problem[]> {
  const { source, signal } = run;
  const found = await run.pool.run(() => {
    signal.throwIfAborted();
    return walkRoot(job.root, source, signal);
  });
  if (!found.ok) return found.problems;
  const { walked } = found;
  const outcomes = await Promise.all(walked.blobs.map((blob) => copyOnce(run, job, blob)));
  const lost = outcomes.flatMap((outcome) => (outcome.ok ? [] : [missing(job.root.ref, outcome.failure)]));
  return lost.length > 0 ? lost : run.pool.run(() => store(run, job, walked));
}

/** Manifests go last, children before parents: what a registry or layout names is there as a whole. */
async function store({ target, signal }: Run, job: MirrorJob, walked: Walked): Promise<readonly Problem[]> {
  for (const manifest of walked.manifests) {
    const put = await target.putManifest(job.to, manifest, signal);
    if (!put.ok) return [missing(job.to, put.failure)];
  }
  const finished = await target.finish(job.root, job.to, walked.top, signal);
  return finished.ok ? [] : [missing(job.to, finished.failure)];
}

/** One copy for each place where the content is kept; copies of one digest follow one another. */
function copyOnce(run: Run, job: MirrorJob, blob: Descriptor): Promise<RegistryOutcome<undefined>> {
  const key = `${run.target.keptUnder(job.to)} ${blob.digest}`;
  const known = run.copies.get(key);
  if (known !== undefined) return known;
  run.counts.blobs.total += 1;
  run.counts.bytes.total += blob.size;
  const before = run.byDigest.get(blob.digest) ?? Promise.resolve();
  const spool = join(run.target.spool, `${blob.digest.slice('sha256:'.length)}.${run.copies.size}`);
  const copy = before.catch(() => undefined).then(() => run.pool.run(() => copyBlob(run, job, blob, spool)));
  run.copies.set(key, copy);
  run.byDigest.set(blob.digest, copy);
  return copy;
}

async function copyBlob(
  run: Run,
  job: MirrorJob,
  blob: Descriptor,
  spool: string,
): Promise<RegistryOutcome<undefined>> {
  const { source, target, counts, signal } = run;
  signal.throwIfAborted();
  const there = await target.hasBlob(job.to, blob, signal);
  if (!there.ok) return there;
  if (there.value) counts.bytes.present += blob.size;
  else {
    const onBytes = (bytes: number): void => {
      counts.bytes.copied += bytes;
      run.onProgress(counts);
    };
    const file = await source.blob(job.root.ref, blob, spool, onBytes, signal);
    if (!file.ok) return leftOut(blob, file);
    const put = await target.putBlob(job.to, blob, file.value, signal).finally(() => rm(spool, { force: true }));
    if (!put.ok) return put;
    // What was not fetched into a file of ours was copied from where it lies.
    if (!file.value.ours) onBytes(blob.size);
  }
  counts.blobs.done += 1;
  run.onProgress(counts);
  return { ok: true, value: undefined };
}

/** What may lie elsewhere is fetched from there by whoever runs it; a registry need not have it. */
function leftOut(
  blob: Descriptor,
  outcome: Extract<RegistryOutcome<never>, { ok: false }>,
): RegistryOutcome<undefined> {
  return blob.elsewhere && outcome.failure.kind === 'notFound' ? { ok: true, value: undefined } : outcome;
}

/** A job in words. */
export const describeJob = ({ root, to }: MirrorJob): string => {
  const [from, there] = [formatReference(root.ref), formatReference(to)];
  return from === there ? from : `${from} -> ${there}`;
};
