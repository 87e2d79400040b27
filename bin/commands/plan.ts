import { createTwoFilesPatch } from 'diff';
import { courierFolders, type Tree } from '../../constructs/api/tree.ts';
import { describeObject, parseObjectId } from '../../constructs/lib/names.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { RenderedPayload } from '../../executor/network/injected.ts';
import { acceptedPayloads } from '../../executor/observe/accepted.ts';
import type { Rendered } from '../../renderer/render.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';
import { changesAnything, type PlannedRelease, payloadsOf, planRelease } from '../planning.ts';
import { placeOf, readPublished } from '../published.ts';
import { render, tellWarnings } from '../rendering.ts';
import { filesAt } from '../revision.ts';

export interface Options extends CommonOptions {
  readonly from?: string;
  readonly to?: string;
  readonly live?: boolean;
  readonly diff?: boolean;
  readonly detailedExitcode?: boolean;
}

interface ClusterPlan {
  readonly cluster: string;
  readonly from: string;
  readonly releases: readonly PlannedRelease[];
  /** Releases that the new tree no longer has: they stay in the cluster until they are deleted there. */
  readonly gone: readonly string[];
  /** Files of the units around the payloads that differ. */
  readonly around: readonly string[];
  readonly patches: readonly string[];
}

/** `keelson plan`: what would change, by the very functions that the executor plans with. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  if (options.live === true && options.from !== undefined)
    throw new ProblemError([
      {
        reason: 'CommandInvalid',
        message: '--live and --from name two places to start from',
        value: options.from,
        remedy: 'give one of them',
      },
    ]);
  const plans: ClusterPlan[] = [];
  for (const folder of await clusterFolders(invocation, options))
    plans.push(await planOne(invocation, options, folder));
  print(invocation, options.output, plans, () => plans.map(describe).join('\n\n'));
  const changes = plans.some((p) => p.releases.some(changesAnything) || p.gone.length > 0 || p.around.length > 0);
  return options.detailedExitcode === true && changes ? exitCodes.differs : exitCodes.done;
}

async function planOne(invocation: Invocation, options: Options, folder: ClusterFolder): Promise<ClusterPlan> {
  const renderAt = async (revision: string | undefined, previous?: Tree): Promise<Rendered> => {
    const source = revision === undefined ? await readFolder(folder) : await filesAt(invocation, folder, revision);
    const rendered = await render(invocation, {
      source,
      folder: folder.path,
      ...(previous === undefined ? {} : { previous }),
    });
    tellWarnings(invocation, [...rendered.warnings, ...rendered.changes]);
    return rendered;
  };
  const before = await standing(invocation, options, folder, renderAt);
  const after = await renderAt(options.to, before.tree);
  const old = before.payloads;
  const { spec, metadata } = after.loaded.cluster;
  const releases = after.releases.map(({ name, index, objects }) => {
    const next = { content: index.content, object: (id: string) => objects.get(id) };
    return planRelease(name, old.get(name), next, spec);
  });
  const names = new Set(after.releases.map(({ name }) => name));
  return {
    cluster: metadata.name,
    from: before.name,
    releases,
    gone: [...old.keys()].filter((name) => !names.has(name)).sort(),
    around: changedAround(before.tree, after.tree),
    patches: options.diff === true ? patches(before.tree, after.tree) : [],
  };
}

interface Standing {
  readonly name: string;
  readonly tree: Tree;
  readonly payloads: ReadonlyMap<string, RenderedPayload>;
}

/** What the plan starts from: a revision of the specs, what is published, or what the cluster enforces. */
async function standing(
  invocation: Invocation,
  options: Options,
  folder: ClusterFolder,
  renderAt: (revision: string) => Promise<Rendered>,
): Promise<Standing> {
  if (options.from !== undefined) {
    const { tree } = await renderAt(options.from);
    return { name: options.from, tree, payloads: payloadsOf(tree) };
  }
  const place = await placeOf(invocation, folder, await readFolder(folder));
  const { commit, tree } = await readPublished(place);
  if (options.live !== true) return { name: commit ?? 'nothing published yet', tree, payloads: payloadsOf(tree) };
  const { namespace } = place.cluster.spec.executor;
  const accepted = await withClient(invocation, options, (client) =>
    acceptedPayloads(client, namespace, invocation.signal),
  );
  const payloads = [...accepted].map(([release, { index, objects }]) => {
    const payload: RenderedPayload = { content: index.content, object: (id) => objects.get(id) };
    return [release, payload] as const;
  });
  return { name: 'what the cluster enforces', tree, payloads: new Map(payloads) };
}

const isAround = (path: string): boolean => /^(sync\/10-system|sync\/30-specs|courier)\//.test(path);

function changedAround(before: Tree, after: Tree): string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].filter(isAround).sort();
  return paths.flatMap((path) => {
    const [old, next] = [before.get(path), after.get(path)];
    if (old === undefined) return [`+ ${path}`];
    if (next === undefined) return [`- ${path}`];
    return Buffer.compare(old, next) === 0 ? [] : [`~ ${path}`];
  });
}

function patches(before: Tree, after: Tree): string[] {
  const isObject = (path: string): boolean => /^payload\/.*\.yaml$/.test(path) || isAround(path);
  const text = (tree: Tree, path: string): string => Buffer.from(tree.get(path) ?? '').toString();
  const paths = [...new Set([...before.keys(), ...after.keys()])].filter(isObject).sort();
  return paths
    .filter((path) => text(before, path) !== text(after, path))
    .map((path) =>
      redact(createTwoFilesPatch(path, path, text(before, path), text(after, path), '', '', { context: 3 })),
    );
}

const marks = {
  adopted: '=',
  created: '+',
  configured: '~',
  replaced: '!',
  pruned: '-',
  absent: '-',
  left: 'o',
  unchanged: ' ',
} as const;

/** Actions that a sign alone would not tell. */
const spelled: ReadonlySet<string> = new Set(['adopted', 'replaced']);

const shown = (id: string): string => {
  const { group, ...rest } = parseObjectId(id);
  return describeObject({ ...rest, apiVersion: group === '' ? 'v1' : `${group}/v1` });
};

/** True for a file that comes or changes, and that nobody applies but a person. */
const appliedByHand = (line: string): boolean =>
  !line.startsWith('-') && line.includes(` ${courierFolders.own}/`) && !line.includes(` ${courierFolders.health}/`);

function describe(plan: ClusterPlan): string {
  const lines = [`cluster ${plan.cluster}, from ${plan.from}`];
  for (const release of plan.releases) lines.push(...describeRelease(release));
  for (const name of plan.gone)
    lines.push('', `release ${name}: no longer rendered; its Release and objects stay until the Release is deleted`);
  if (plan.around.length > 0) lines.push('', 'around the payloads:', ...plan.around.map((line) => `  ${line}`));
  if (plan.around.some(appliedByHand))
    lines.push('  objects of the courier: run keelson bootstrap once this is published');
  return [...lines, ...plan.patches.flatMap((patch) => ['', patch.trimEnd()])].join('\n');
}

function describeRelease(planned: PlannedRelease): string[] {
  const { plan } = planned;
  const counts = Object.entries(plan.actions)
    .filter(([, ids]) => ids.length > 0)
    .map(([action, ids]) => `${ids.length} ${action}`);
  const lines = ['', `release ${planned.release}: ${plan.changeClass}; ${counts.join(', ')}`];
  if (!changesAnything(planned)) return lines;
  lines.push(`  plan ${plan.digest}`);
  if (planned.blocked !== undefined) lines.push(`  BLOCKED: ${planned.blocked}`);
  for (const risk of plan.risks) lines.push(`  risk: ${risk.message}`);
  if (planned.needsApproval && planned.blocked === undefined)
    lines.push(
      planned.approved
        ? '  approved by cluster.yaml'
        : `  needs approval: keelson approve ${planned.release} --plan ${plan.digest}`,
    );
  for (const phase of planned.phases) {
    const changed = phase.changes.filter(({ action }) => action !== 'unchanged');
    const gates = phase.gates.length === 0 ? '' : `  then ${phase.gates.join(', ')}`;
    lines.push(`  ${phase.name}${changed.length === 0 ? '  nothing changes' : ''}${gates}`);
    for (const { action, id } of changed)
      lines.push(`    ${marks[action]} ${shown(id)}${spelled.has(action) ? ` (${action})` : ''}`);
  }
  for (const { action, id } of planned.leaving)
    lines.push(`    ${marks[action]} ${shown(id)} (${action === 'pruned' ? 'pruned' : 'stays in the cluster'})`);
  return lines;
}
