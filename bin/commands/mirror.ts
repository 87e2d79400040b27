import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import type { Cluster } from '../../constructs/api/cluster.ts';
import { type Problem, ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { scratchFolder } from '../../constructs/lib/scratchfolder.ts';
import { specKinds } from '../../renderer/domain.ts';
import { loadCluster } from '../../renderer/load/load.ts';
import { settingsFiles } from '../../renderer/load/settings.ts';
import { withArchives } from '../../renderer/mirror/archive.ts';
import { closureOf } from '../../renderer/mirror/closure.ts';
import type { ContentSource, ContentTarget, MirrorRoot } from '../../renderer/mirror/content.ts';
import { copyAll, describeJob, type MirrorProgress } from '../../renderer/mirror/copy.ts';
import { layoutRoots } from '../../renderer/mirror/layoutroots.ts';
import { layoutSource, layoutTarget } from '../../renderer/mirror/layouts.ts';
import { type MirrorJob, type MirrorPlan, planMirror, registryPlace } from '../../renderer/mirror/plan.ts';
import { registrySource, registryTarget } from '../../renderer/mirror/registries.ts';
import { withBreaker } from '../../renderer/oci/breaker.ts';
import { type LayoutEntry, prepareLayout, readLayout, writeLayoutIndex } from '../../renderer/oci/layout.ts';
import { unmirrored } from '../../renderer/oci/mirrors.ts';
import { registryHosts } from '../../renderer/oci/reference.ts';
import type { RegistrySession } from '../../renderer/oci/session.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';
import { type MirrorReporter, mirrorReporter, sizeText } from '../progress.ts';
import { type Connection, connect, domains } from '../supply.ts';

export interface Options extends CommonOptions {
  readonly to?: string;
  readonly oci?: string;
  readonly from?: string;
  readonly jobs: string;
}

interface Result {
  readonly cluster: string;
  /** References that are complete at the target, as `from -> to`. */
  readonly mirrored: readonly string[];
  /** References that a rule leads to another registry than the one asked for. */
  readonly elsewhere: readonly string[];
  readonly bytes: MirrorProgress['bytes'];
  readonly problems: readonly Problem[];
}

/** `keelson mirror`: copies everything that a cluster pulls, and is rendered from, by digest. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const wish = wishOf(invocation, options);
  const reporter = mirrorReporter(invocation, options.output);
  const results: Result[] = [];
  for (const folder of await clusterFolders(invocation, options))
    results.push(await mirrorOne(invocation, wish, folder, reporter));
  print(invocation, options.output, results, () => results.map(describe).join('\n'));
  const problems = results.flatMap((result) => result.problems);
  if (problems.length > 0) throw new FailedWithProblems(problems);
  return exitCodes.done;
}

/** What was asked for, with paths made absolute. */
interface Wish {
  /** `host[:port][/path]`; undefined for wherever the rules lead. */
  readonly place: string | undefined;
  readonly layout: string | undefined;
  readonly from: string | undefined;
  readonly concurrency: number;
}

function wishOf(invocation: Invocation, options: Options): Wish {
  const problems: Problem[] = [];
  const say = (message: string, value: string, remedy: string): void => {
    problems.push({ reason: 'CommandInvalid', message, value, remedy });
  };
  const place = options.to === undefined ? undefined : registryPlace(options.to);
  const concurrency = Number(options.jobs);
  if (options.to !== undefined && place === undefined)
    say('--to is not a registry', options.to, 'write host[:port], or host[:port]/path');
  if (options.to !== undefined && options.oci !== undefined)
    say('--to and --oci name two targets', options.oci, 'give one of them at a time');
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 16)
    say('--jobs is not a number from 1 to 16', options.jobs, 'leave it out, or give such a number');
  refuseProblems(problems);
  const path = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : resolve(invocation.cwd, text);
  return { place, layout: path(options.oci), from: path(options.from), concurrency };
}

/** What is there to copy, and how to get at it. */
interface Supply {
  readonly roots: readonly MirrorRoot[];
  readonly source: (connection: Connection) => ContentSource;
}

async function mirrorOne(
  invocation: Invocation,
  wish: Wish,
  folder: ClusterFolder,
  reporter: MirrorReporter,
): Promise<Result> {
  const source = await readFolder(folder);
  const all = domains(invocation, folder.path, { origins: true });
  const read = loadCluster(source, specKinds(all));
  if (!read.ok) throw new ProblemError(read.problems);
  const { loaded } = read;
  const { spec, metadata } = loaded.cluster;
  const missing: Problem[] = [];
  const supply = async (): Promise<Supply> => {
    if (wish.from !== undefined) {
      const found = await layoutRoots(wish.from, loaded);
      missing.push(...found.missing);
      const from = wish.from;
      return { roots: found.roots, source: () => layoutSource(from) };
    }
    const made = await closureOf(loaded, all, invocation.signal);
    if (!made.ok) throw new ProblemError(made.problems);
    const { roots, made: parts, urls } = made.closure;
    return { roots, source: ({ session, http }) => withArchives(registrySource(session), parts, urls, http) };
  };
  const { roots, source: sourceOf } = await supply();
  const plan = planOf(wish, roots, loaded.cluster, `${folder.shown}/${settingsFiles.cluster}`);
  const connection = await connect(invocation, {
    folder: folder.path,
    hosts: [...new Set([...hostsOf(plan), ...spec.allow.chartHosts])],
    field: 'spec.registries',
    registries: unmirrored(spec.registries),
    retry: patience,
  });
  const session = withBreaker(connection.session);
  try {
    const copied = await copyTo(invocation, wish, session, async (target) =>
      copyAll(plan.jobs, {
        source: sourceOf({ ...connection, session }),
        target,
        concurrency: wish.concurrency,
        onProgress: reporter.progress,
        onDone: (job) => reporter.done(describeJob(job)),
        signal: invocation.signal,
      }),
    );
    return {
      cluster: metadata.name,
      mirrored: copied.done.map(describeJob).sort(),
      elsewhere: plan.elsewhere.map(describeJob).sort(),
      bytes: copied.progress.bytes,
      problems: [...missing, ...plan.problems, ...copied.problems],
    };
  } finally {
    connection.http.close();
  }
}

/** Registries limit what one client may fetch; waiting for them is part of the work. */
const patience = { attempts: 6, initialMs: 500, factor: 2, maxMs: 60_000, jitter: 0.2 };

/** A layout keeps the names of the specs; registries are filled by the rules of the cluster. */
function planOf(wish: Wish, roots: readonly MirrorRoot[], cluster: Cluster, file: string): MirrorPlan {
  if (wish.layout === undefined) return planMirror(roots, cluster.spec.registries, wish.place, file);
  return { jobs: roots.map((root) => ({ root, to: root.ref })), elsewhere: [], problems: [] };
}

const hostsOf = ({ jobs }: MirrorPlan): string[] => [
  ...new Set(
    jobs.flatMap(({ root, to }: MirrorJob) => [...registryHosts(root.ref.registry), ...registryHosts(to.registry)]),
  ),
];

/** Opens the target, copies, and closes it again; an index of a layout is written when all of it is there. */
async function copyTo<T>(
  invocation: Invocation,
  wish: Wish,
  session: RegistrySession,
  copy: (target: ContentTarget) => Promise<T>,
): Promise<T> {
  const { layout } = wish;
  if (layout === undefined) {
    const spool = await scratchFolder(tmpdir(), 'keelson-mirror-');
    try {
      const { clock, random } = invocation;
      return await copy(registryTarget(session, spool.path, { clock, random, retry: patience }));
    } finally {
      await spool.dispose();
    }
  }
  const before = await readLayout(layout);
  if (before.kind === 'invalid') throw new ProblemError(before.problems);
  await prepareLayout(layout);
  const spool = await scratchFolder(layout, '.part-');
  try {
    const named: LayoutEntry[] = [];
    const result = await copy(layoutTarget(layout, spool.path, named));
    await writeLayoutIndex(layout, before.kind === 'read' ? before.entries : [], named);
    return result;
  } finally {
    await spool.dispose();
  }
}

function describe({ cluster, mirrored, elsewhere, bytes, problems }: Result): string {
  const sent = `${sizeText(bytes.copied)} copied, ${sizeText(bytes.present)} there already`;
  const lines = [`${cluster}: ${mirrored.length} mirrored (${sent})`, ...mirrored.map((text) => `  ${text}`)];
  if (elsewhere.length > 0) lines.push('led to another registry:', ...elsewhere.map((text) => `  ${text}`));
  if (problems.length > 0) lines.push(`${problems.length} missing`);
  return lines.join('\n');
}
