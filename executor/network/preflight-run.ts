/** Looks at the nodes of OVN central by Jobs: makes them, reads what they saw, and takes them away again. */
import { managers } from '../../constructs/api/constants.ts';
import { preflight, preflightJob } from '../../constructs/api/preflight.ts';
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject, refOf, uidOf } from '../kube/types.ts';
import type { WriteGuard } from '../release/domain.ts';
import { type HostLook, hostProblems } from './preflight.ts';
import { hostJob, isPreflight, isUnderWay, type PreflightPlan, readJob } from './preflight-job.ts';

interface PreflightDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The right to write; asked before every write. */
  readonly guard: WriteGuard;
  /** 32 to 64 hexadecimal digits that nobody had before. */
  readonly nonce: () => string;
  /** How long all nodes together may take; milliseconds. */
  readonly limitMs: number;
  readonly pollMs: number;
}

type HostLooks =
  | { readonly ok: true; readonly looks: readonly HostLook[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const jobKind = { apiVersion: 'batch/v1', kind: 'Job' } as const;

const failed = (problems: readonly Problem[]): HostLooks => ({ ok: false, problems });
const incomplete = (object: string, message: string, unavailable = false): Problem => ({
  reason: unavailable ? 'ApiUnavailable' : 'PreflightIncomplete',
  message,
  object,
});

interface Seen {
  readonly jobs: readonly KubeObject[];
  readonly pods: readonly KubeObject[];
}

/** Jobs of this installation and their pods, as they are now. */
async function look(plan: PreflightPlan, { client, signal }: PreflightDeps): Promise<Seen | Problem> {
  const { namespace } = plan;
  const labelSelector = `${preflight.label}=${plan.installationUID}`;
  const jobs = await client.list({ ...jobKind, namespace, labelSelector }, { signal });
  if (jobs.type !== 'listed') return incomplete(`Jobs in ${namespace}`, jobs.message, jobs.type === 'unavailable');
  const pods = await client.list({ apiVersion: 'v1', kind: 'Pod', namespace, labelSelector }, { signal });
  if (pods.type !== 'listed') return incomplete(`pods in ${namespace}`, pods.message, pods.type === 'unavailable');
  return { jobs: jobs.items.map((job) => ({ ...job, ...jobKind })).filter(isPreflight), pods: pods.items };
}

/** Deletes exactly these Jobs; one that is gone already, or replaced, is not ours to think of. */
async function remove(jobs: readonly KubeObject[], { client, guard, signal }: PreflightDeps): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const job of jobs) {
    guard.check();
    const ref = refOf(job);
    const gone = await client.delete(ref, { uid: uidOf(job), propagation: 'Background', signal });
    if (gone.type !== 'deleted' && gone.type !== 'terminating' && gone.type !== 'absent')
      problems.push(incomplete(describeRef(ref), gone.message, gone.type === 'unavailable'));
  }
  return problems;
}

/** Makes a Job; one of its name that is there already, and is none of ours, stays as it is. */
async function make(job: KubeObject, { client, guard, signal }: PreflightDeps): Promise<Problem[]> {
  const ref = describeRef(refOf(job));
  guard.check();
  const fieldManager = managers.objects;
  const tried = await client.apply(job, { fieldManager, dryRun: true, signal });
  if (!('object' in tried)) return [incomplete(ref, tried.message, tried.type === 'unavailable')];
  if (tried.type !== 'created') return [incomplete(ref, 'another object has this name; it is left as it is')];
  guard.check();
  const made = await client.apply(job, { fieldManager, signal });
  if (!('object' in made)) return [incomplete(ref, made.message, made.type === 'unavailable')];
  return [];
}

/** The nodes whose look is neither under way nor over, and Jobs that answer nothing any more. */
function sorted(plan: PreflightPlan, { jobs }: Seen): { missing: readonly number[]; stale: readonly KubeObject[] } {
  const kept = plan.nodes.map((node, n) =>
    jobs.find((job) => job.metadata.name === preflightJob(n) && isUnderWay(job, plan, node)),
  );
  return {
    missing: kept.flatMap((job, n) => (job === undefined ? [n] : [])),
    stale: jobs.filter((job) => !kept.includes(job)),
  };
}

/** Brings the Jobs to what is wanted: stale ones go, missing ones are made, one that runs goes on. */
async function arrange(plan: PreflightPlan, deps: PreflightDeps, until: number): Promise<Problem[]> {
  const { clock, signal, pollMs } = deps;
  for (;;) {
    const seen = await look(plan, deps);
    if ('reason' in seen) return [seen];
    const { missing, stale } = sorted(plan, seen);
    const deletable = stale.filter(({ metadata }) => typeof metadata.deletionTimestamp !== 'string');
    const problems = await remove(deletable, deps);
    if (problems.length > 0) return problems;
    if (stale.length === 0) {
      const made = await Promise.all(
        missing.map((n) => make(hostJob(plan, preflightJob(n), plan.nodes[n] ?? '', deps.nonce()), deps)),
      );
      return made.flat();
    }
    if (clock.monotonic() >= until)
      return stale.map((job) => incomplete(describeRef(refOf(job)), 'an earlier look does not go away'));
    await rest(clock, deletable.length > 0 ? 0 : pollMs, signal);
    signal.throwIfAborted();
  }
}

/** Waits until every node has answered, or the time is over. */
async function collect(plan: PreflightPlan, deps: PreflightDeps, until: number): Promise<HostLooks> {
  const { clock, signal, pollMs, limitMs } = deps;
  for (;;) {
    const seen = await look(plan, deps);
    if ('reason' in seen) return failed([seen]);
    const late = clock.monotonic() >= until;
    const looks = plan.nodes.map((node, n): HostLook | undefined => {
      const job = seen.jobs.find(({ metadata }) => metadata.name === preflightJob(n));
      if (job === undefined) return { node, type: 'unseen', message: 'its Job was taken away' };
      const reading = readJob(job, seen.pods, node);
      if (reading.type === 'look') return reading.look;
      if (!late) return undefined;
      return { node, type: 'unseen', message: `nothing within ${Math.round(limitMs / 1000)} s: ${reading.message}` };
    });
    const complete = looks.filter((one) => one !== undefined);
    if (complete.length === looks.length) return { ok: true, looks: complete };
    await rest(clock, pollMs, signal);
    signal.throwIfAborted();
  }
}

/**
 * Looks at all nodes of a plan. Jobs of an earlier run that was cut off go on when they are the same, and go otherwise.
 * Rejects with the signal's reason, or with what the guard throws; the Jobs then stay for the next run, or until their time is over.
 */
async function lookAtHosts(plan: PreflightPlan, deps: PreflightDeps): Promise<HostLooks> {
  const until = deps.clock.monotonic() + deps.limitMs;
  const problems = await arrange(plan, deps, until);
  const found = problems.length > 0 ? failed(problems) : await collect(plan, deps, until);
  const left = await look(plan, deps);
  // What could not be taken away goes by itself; it does not change what was seen.
  if (!('reason' in left)) await remove(left.jobs, deps);
  return found;
}

/** What stands against an install on the nodes of a plan, looked at while a guard holds; the guard is given up. */
export async function preflightUnder(
  guard: WriteGuard,
  plan: PreflightPlan,
  deps: Omit<PreflightDeps, 'guard'>,
): Promise<Problem[]> {
  const { signal } = deps;
  const held = guard.signal === undefined ? signal : AbortSignal.any([signal, guard.signal]);
  try {
    const found = await lookAtHosts(plan, { ...deps, guard, signal: held });
    return found.ok ? hostProblems(found.looks, plan.question) : [...found.problems];
  } catch (error) {
    if (signal.aborted || guard.signal?.aborted !== true) throw error;
    return [{ reason: 'LeaseUnavailable', message: 'the Lease was lost while nodes were looked at' }];
  } finally {
    await guard.release();
  }
}
