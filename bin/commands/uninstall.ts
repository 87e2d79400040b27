import { annotations } from '../../constructs/api/constants.ts';
import {
  parseUninstall,
  type UninstallMode,
  type UninstallPlan,
  uninstallPlan,
} from '../../constructs/api/uninstall.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { type Problem, ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { openLedger } from '../../executor/apply/ledger-store.ts';
import { readUninstallRecord } from '../../executor/release/uninstall-record.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';
import { type ReleaseView, readReleases } from '../releases.ts';
import type { TreeOptions } from '../trees.ts';
import {
  deleteDefinitions,
  finishUninstall,
  followUninstall,
  requestUninstall,
  type Uninstalling,
} from '../uninstall/carryout.ts';
import { stillInGit } from '../uninstall/git.ts';
import { describePlan } from '../uninstall/plan.ts';

export interface Options extends TreeOptions {
  readonly namespace: string;
  /** Digest of the plan that is approved. */
  readonly approve?: string;
  readonly delete?: boolean;
  readonly deleteDefinitions?: boolean;
  /** False: what is published is not looked at. */
  readonly gitCheck: boolean;
  readonly timeout: string;
}

/**
 * `keelson uninstall RELEASE`: shows what would happen; with `--approve` asks the executor, which alone writes the objects
 * of payloads, to do it, and then removes what stands for the release. Run again, it goes on where it was.
 */
export async function run(invocation: Invocation, options: Options, release: string): Promise<ExitCode> {
  const limitMs = parseDuration(options.timeout);
  if (options.deleteDefinitions === true && options.delete !== true)
    throw new ProblemError([
      {
        reason: 'FieldInvalid',
        message: '--delete-definitions goes with --delete alone: definitions go after everything that uses them',
        remedy: 'give --delete as well, and approve the plan that it shows',
      },
    ]);
  const inGit = options.gitCheck ? await stillInGit(invocation, options, release) : [];
  return withClient(invocation, options, async (client) => {
    const work: Uninstalling = { invocation, client, target: { release, namespace: options.namespace }, limitMs };
    const releases = await readReleases(client, options.namespace, invocation.signal);
    const found = releases.find(({ name }) => name === release);
    if (found === undefined) return leftover(work, releases);
    return options.approve === undefined
      ? show(work, options, found, [...inGit, ...obstacles(found, releases)])
      : carryOut(work, options, found, {
          approved: options.approve,
          problems: [...inGit, ...obstacles(found, releases)],
        });
  });
}

const modeOf = (options: Options): UninstallMode => (options.delete === true ? 'delete' : 'orphan');

const runningOf = (release: ReleaseView) => parseUninstall(release.annotations[annotations.uninstall] ?? '');

async function planOf(
  { client, invocation, target }: Uninstalling,
  { uid }: ReleaseView,
  mode: UninstallMode,
): Promise<UninstallPlan> {
  const opened = await openLedger(client, target, invocation.signal);
  if (!opened.ok) throw new ProblemError([...opened.problems]);
  return uninstallPlan({ release: target.release, releaseUID: uid, mode, ledger: opened.store.ledger });
}

async function show(
  work: Uninstalling,
  options: Options,
  found: ReleaseView,
  problems: readonly Problem[],
): Promise<ExitCode> {
  const plan = await planOf(work, found, modeOf(options));
  const running = runningOf(found)?.digest;
  const value = { ...work.target, ...plan, problems, ...(running === undefined ? {} : { running }) };
  print(work.invocation, options.output, value, () => describePlan(plan, { ...work.target, problems, running }));
  return exitCodes.done;
}

async function carryOut(
  work: Uninstalling,
  options: Options,
  found: ReleaseView,
  { approved, problems }: { readonly approved: string; readonly problems: readonly Problem[] },
): Promise<ExitCode> {
  const running = runningOf(found);
  const mode = modeOf(options);
  const goesOn = running?.digest === approved && running.mode === mode;
  const plan = goesOn ? undefined : await planOf(work, found, mode);
  refuseProblems([...problems, ...(plan === undefined || plan.digest === approved ? [] : [otherPlan(plan, approved)])]);
  const request = { mode, digest: approved };
  if (!goesOn) await requestUninstall(work, found.uid, request);
  const record = await followUninstall(work, request);
  const definitions =
    options.deleteDefinitions === true ? await deleteDefinitions(work, record) : { deleted: [], left: [] };
  await finishUninstall(work, record);
  const { out } = work.invocation;
  for (const name of definitions.deleted) out(`deleted definition ${name}`);
  for (const [name, why] of definitions.left) out(`definition ${name} stays: ${why}`);
  out(`${work.target.release} is uninstalled: none of its ${record.total} objects is ours any more`);
  return exitCodes.done;
}

const otherPlan = ({ digest }: UninstallPlan, approved: string): Problem => ({
  reason: 'UninstallNotApproved',
  message: `the plan is ${digest}, not the one that --approve names`,
  value: approved,
  remedy: 'look at the plan again, and approve the digest that it shows',
});

/** What stops an uninstall before it is asked for. */
function obstacles({ name, annotations: noted, spec }: ReleaseView, releases: readonly ReleaseView[]): Problem[] {
  const problems: Problem[] = [];
  const stop = noted[annotations.hold] === undefined ? (spec.paused ? 'spec.paused' : undefined) : annotations.hold;
  if (stop !== undefined)
    problems.push({
      reason: 'ReleaseStopped',
      message: `${name} is stopped by ${stop}: nothing of it is written`,
      remedy: `remove ${stop} first`,
    });
  const needing = releases.filter((other) => other.spec.dependsOn?.some((needed) => needed.name === name));
  if (needing.length > 0)
    problems.push({
      reason: 'ReleaseNeeded',
      message: `it is in the dependsOn of ${needing.map((other) => other.name).join(', ')}`,
      remedy: 'uninstall these first, or take dependsOn back',
    });
  return problems;
}

/** The Release is gone, and an earlier run was cut off before it had removed the rest. */
async function leftover(work: Uninstalling, releases: readonly ReleaseView[]): Promise<ExitCode> {
  const { client, invocation, target } = work;
  const read = await readUninstallRecord(client, target, invocation.signal);
  if ('problem' in read) throw new ProblemError([read.problem]);
  if (read.record?.state !== 'done')
    throw new ProblemError([
      {
        reason: 'UnknownRelease',
        message: `there is no Release ${target.namespace}/${target.release}`,
        remedy: `the Releases are ${releases.map(({ name }) => name).join(', ') || 'none yet'}`,
      },
    ]);
  await finishUninstall(work, read.record);
  invocation.out(`${target.release} is uninstalled`);
  return exitCodes.done;
}
