import type { ClusterSpec } from '../constructs/api/cluster.ts';
import { type PayloadContent, payloadObjectId } from '../constructs/api/payload.ts';
import { readIndex } from '../constructs/api/payload-codec.ts';
import {
  makePlan,
  needsApproval,
  type Plan,
  type PlanActions,
  type PlanRisk,
  plannedPhases,
} from '../constructs/api/plan.ts';
import { approval, type ChangeClass, prunePolicy } from '../constructs/api/release.ts';
import { indexPath, type Tree } from '../constructs/api/tree.ts';
import { isObject } from '../constructs/lib/json.ts';
import { ProblemError } from '../constructs/lib/problems.ts';
import { parseYaml } from '../constructs/lib/yaml.ts';
import { classifyNetwork } from '../executor/network/classify.ts';
import type { RenderedPayload } from '../executor/network/injected.ts';

export interface PlannedPhase {
  readonly name: string;
  readonly gates: readonly string[];
  readonly changes: readonly { readonly action: keyof PlanActions; readonly id: string }[];
}

export interface PlannedRelease {
  readonly release: string;
  readonly plan: Plan;
  /** Why nothing carries the change out; the payload would be refused. */
  readonly blocked?: string;
  readonly needsApproval: boolean;
  readonly approved: boolean;
  readonly phases: readonly PlannedPhase[];
  /** Objects that leave the payload: they are in no phase of the new one. */
  readonly leaving: readonly { readonly action: 'pruned' | 'left'; readonly id: string }[];
}

/** Payload contents of a tree by release. @throws ProblemError when an index can not be read. */
export function contentsOf(tree: Tree): Map<string, PayloadContent> {
  const contents = new Map<string, PayloadContent>();
  for (const [path, bytes] of tree) {
    const name = /^payload\/([^/]+)\/index\.json$/.exec(path)?.[1];
    if (name === undefined) continue;
    const read = readIndex(bytes);
    if (!read.ok) throw new ProblemError(read.problems.map((problem) => ({ ...problem, file: indexPath(name) })));
    contents.set(name, read.value.content);
  }
  return contents;
}

/** Payloads of a tree by release; an object is read when it is asked for. @throws ProblemError when an index can not be read. */
export const payloadsOf = (tree: Tree): Map<string, RenderedPayload> =>
  new Map([...contentsOf(tree)].map(([name, content]) => [name, { content, object: objectIn(tree, name, content) }]));

function objectIn(tree: Tree, release: string, { phases }: PayloadContent): RenderedPayload['object'] {
  const paths = new Map(phases.flatMap(({ objects }) => objects.map((entry) => [payloadObjectId(entry), entry.yaml])));
  return (id) => {
    const path = `payload/${release}/${paths.get(id) ?? ''}`;
    const bytes = tree.get(path);
    const value =
      bytes === undefined ? undefined : parseYaml(Buffer.from(bytes).toString('utf8'), path).documents[0]?.value;
    return isObject(value) ? value : undefined;
  };
}

/** The plan of a release, by the functions that the executor plans with. */
export function planRelease(
  release: string,
  previous: RenderedPayload | undefined,
  next: RenderedPayload,
  spec: Pick<ClusterSpec, 'releases'>,
): PlannedRelease {
  const settings = spec.releases?.[release];
  const policy = approval.parse(settings?.approval ?? {});
  let blocked: string | undefined;
  let effects: readonly PlanRisk[] = [];
  const classify = (before: PayloadContent | undefined, after: PayloadContent, actions: PlanActions): ChangeClass => {
    const [installation] = after.installations;
    if (installation === undefined) return 'blocked';
    const verdict = classifyNetwork({
      next: installation,
      previous: before?.installations[0],
      // Whether the first install is done, only the cluster knows; the executor looks.
      completed: true,
      checkpoint: undefined,
      observedVersion: undefined,
      actions,
      ...(previous === undefined ? {} : { rendered: { before: previous, after: next } }),
    });
    if (verdict.verdict === 'blocked') blocked = verdict.message;
    else effects = verdict.effects ?? [];
    return verdict.changeClass;
  };
  const plan = makePlan(previous?.content, next.content, {
    effects: () => effects,
    prune: prunePolicy.parse(settings?.prune ?? {}),
    ...(next.content.release.domain === 'network' ? { classify } : {}),
  });
  const left = (['pruned', 'left'] as const).flatMap((action) => plan.actions[action].map((id) => ({ action, id })));
  return {
    release,
    plan,
    ...(blocked === undefined ? {} : { blocked }),
    needsApproval: needsApproval(plan, policy.mode),
    approved: policy.planDigest === plan.digest,
    phases: plannedPhases(next.content, plan.actions).map(({ dir, gates, objects }) => ({
      name: dir,
      gates,
      changes: objects,
    })),
    leaving: left,
  };
}

/** Whether a plan would do anything. */
export const changesAnything = ({ plan }: PlannedRelease): boolean => {
  const { unchanged: _same, left: _left, ...rest } = plan.actions;
  return Object.values(rest).some((ids) => ids.length > 0) || !['none', 'policy'].includes(plan.changeClass);
};
