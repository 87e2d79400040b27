import { type Digest, digestOf } from '../lib/digest.ts';
import { groupOf } from '../lib/names.ts';
import { confirmKinds, neverPrunedKinds } from './constants.ts';
import { gateText, type PayloadContent, type PayloadObject, payloadDigest, payloadObjectId } from './payload.ts';
import type { ChangeClass, PrunePolicy } from './release.ts';

/**
 * The plan from one payload to the next. It is pure and knows no live values, so that CI and executor come to the
 * same digest and a person approves exactly what will be done.
 */

/** Object ids by what happens to them, each list sorted. */
export interface PlanActions {
  readonly created: readonly string[];
  readonly configured: readonly string[];
  readonly unchanged: readonly string[];
  /** May be deleted and created again: changed, and marked `recreate`. */
  readonly replaced: readonly string[];
  readonly pruned: readonly string[];
  /** Deleted because the new payload says so (tombstones). */
  readonly absent: readonly string[];
  /** Leave the payload and stay in the cluster: kept, of a kind that is never pruned, or pruning is off. */
  readonly left: readonly string[];
}

export interface PlanRisk {
  readonly kind: 'replace' | 'confirmKind' | 'brakePercent' | 'brakeCount';
  readonly ids: readonly string[];
  readonly message: string;
}

export interface Plan {
  readonly digest: Digest;
  readonly oldManifestDigest: string | undefined;
  readonly newManifestDigest: string;
  readonly actions: PlanActions;
  readonly changeClass: ChangeClass;
  /** Why a person has to look; empty when the plan is not destructive. */
  readonly risks: readonly PlanRisk[];
  readonly destructive: boolean;
}

export interface PlanOptions {
  readonly prune: PrunePolicy;
  /** Decides the class of a change; the one of plain manifests by default. */
  readonly classify?: (previous: PayloadContent | undefined, next: PayloadContent, actions: PlanActions) => ChangeClass;
  /** `group/Kind` of kinds whose removal needs a person. */
  readonly confirmKinds?: readonly string[];
}

const allObjects = (content: PayloadContent | undefined): Map<string, PayloadObject> =>
  new Map((content?.phases ?? []).flatMap((phase) => phase.objects).map((o) => [payloadObjectId(o), o]));

/** `group/Kind` of an object; the core group is empty. */
export const groupKindOf = (object: { apiVersion: string; kind: string }): string =>
  `${groupOf(object.apiVersion)}/${object.kind}`;

/** What becomes of every object when `next` takes the place of `previous`. */
export function planActions(
  previous: PayloadContent | undefined,
  next: PayloadContent,
  prune: Pick<PrunePolicy, 'enabled'>,
): PlanActions {
  const before = allObjects(previous);
  const after = allObjects(next);
  const lists: Record<keyof PlanActions, string[]> = {
    created: [],
    configured: [],
    unchanged: [],
    replaced: [],
    pruned: [],
    absent: [],
    left: [],
  };
  for (const [id, object] of after) lists[actionOf(before.get(id), object)].push(id);
  for (const [id, object] of before)
    if (!after.has(id) && !object.absent) lists[mayPrune(object, prune) ? 'pruned' : 'left'].push(id);
  for (const list of Object.values(lists)) list.sort();
  return lists;
}

function actionOf(before: PayloadObject | undefined, after: PayloadObject): keyof PlanActions {
  if (after.absent) return before === undefined || !before.absent ? 'absent' : 'unchanged';
  if (before === undefined || before.absent) return 'created';
  if (before.sha256 === after.sha256 || after.createOnly) return 'unchanged';
  return after.recreate ? 'replaced' : 'configured';
}

const mayPrune = (object: PayloadObject, prune: Pick<PrunePolicy, 'enabled'>): boolean =>
  prune.enabled && !object.keep && !neverPrunedKinds.includes(groupKindOf(object));

/** Class of a change of plain manifests; they may change freely. */
export function classifyManifests(
  previous: PayloadContent | undefined,
  next: PayloadContent,
  actions: PlanActions,
): ChangeClass {
  const touched = actions.configured.length + actions.replaced.length + actions.pruned.length + actions.absent.length;
  if (touched > 0) return 'free';
  if (actions.created.length > 0) return 'additive';
  return previous !== undefined && payloadDigest(previous) === payloadDigest(next) ? 'none' : 'policy';
}

function findRisks(
  before: Map<string, PayloadObject>,
  after: Map<string, PayloadObject>,
  actions: PlanActions,
  options: PlanOptions,
): PlanRisk[] {
  const confirm = options.confirmKinds ?? confirmKinds;
  const risks: PlanRisk[] = [];
  if (actions.replaced.length > 0)
    risks.push({
      kind: 'replace',
      ids: actions.replaced,
      message: `${actions.replaced.length} object(s) may be deleted and created again`,
    });
  const confirmed = [...actions.pruned, ...actions.absent].sort().filter((id) => {
    const object = before.get(id) ?? after.get(id);
    return object !== undefined && confirm.includes(groupKindOf(object));
  });
  if (confirmed.length > 0)
    risks.push({
      kind: 'confirmKind',
      ids: confirmed,
      message: `${confirmed.length} object(s) of kinds that hold data or other objects are removed`,
    });
  const live = [...before.values()].filter((object) => !object.absent).length;
  const { pruned } = actions;
  const { maxCount, maxPercent } = options.prune;
  if (pruned.length > maxCount)
    risks.push({
      kind: 'brakeCount',
      ids: pruned,
      message: `${pruned.length} objects are pruned; prune.maxCount is ${maxCount}`,
    });
  // Compared as integers, so that no rounding decides.
  if (pruned.length * 100 > live * maxPercent)
    risks.push({
      kind: 'brakePercent',
      ids: pruned,
      message: `${pruned.length} of ${live} objects are pruned; prune.maxPercent is ${maxPercent}`,
    });
  return risks;
}

/** The whole plan from `previous` (undefined at the first install) to `next`. */
export function makePlan(previous: PayloadContent | undefined, next: PayloadContent, options: PlanOptions): Plan {
  const actions = planActions(previous, next, options.prune);
  const changeClass = (options.classify ?? classifyManifests)(previous, next, actions);
  const risks = findRisks(allObjects(previous), allObjects(next), actions, options);
  return {
    digest: digestOf({
      from: previous?.manifestDigest ?? '',
      to: next.manifestDigest,
      actions: Object.fromEntries(Object.entries(actions).map(([action, ids]) => [action, [...ids]])),
      class: changeClass,
    }),
    oldManifestDigest: previous?.manifestDigest,
    newManifestDigest: next.manifestDigest,
    actions,
    changeClass,
    risks,
    destructive: risks.length > 0,
  };
}

/** What a plan does in one phase of the new payload. */
export interface PlannedPhase {
  readonly name: string;
  readonly dir: string;
  readonly gates: readonly string[];
  readonly objects: readonly { readonly id: string; readonly action: keyof PlanActions }[];
}

/** The phases of the new payload with their gates and, for every object, what happens to it. */
export function plannedPhases(next: PayloadContent, actions: PlanActions): PlannedPhase[] {
  const actionById = new Map<string, keyof PlanActions>();
  for (const action of Object.keys(actions) as (keyof PlanActions)[])
    for (const id of actions[action]) actionById.set(id, action);
  return next.phases.map(({ name, dir, gates, objects }) => ({
    name,
    dir,
    gates: gates.map(gateText),
    objects: objects.map((object) => {
      const id = payloadObjectId(object);
      return { id, action: actionById.get(id) ?? 'unchanged' };
    }),
  }));
}

/** Whether a plan waits for a person, under the approval mode of its Release. */
export function needsApproval(
  plan: Pick<Plan, 'destructive' | 'changeClass'>,
  mode: 'never' | 'destructive' | 'always',
): boolean {
  // A change of what we inject ourselves is approved by its plan whatever the mode says.
  if (plan.changeClass === 'keelson') return true;
  if (mode === 'never' || plan.changeClass === 'none') return false;
  return mode === 'always' || plan.destructive;
}
