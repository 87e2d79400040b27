import { type Digest, digestOf } from '../lib/digest.ts';
import { groupOf } from '../lib/names.ts';
import { confirmKinds, neverPrunedKinds, recreatableKinds } from './constants.ts';
import { gateText, type PayloadContent, type PayloadObject, payloadDigest, payloadObjectId } from './payload.ts';
import type { ChangeClass, PrunePolicy } from './release.ts';

/**
 * The plan from one payload to the next. It is pure and knows no live values, so that CI and executor come to the
 * same digest and a person approves exactly what will be done.
 */

/** Object ids by what happens to them, each list sorted. */
export interface PlanActions {
  /** Exist already and are taken over as they are: the first payload of an installation that adopts. */
  readonly adopted: readonly string[];
  readonly created: readonly string[];
  readonly configured: readonly string[];
  readonly unchanged: readonly string[];
  /** May be deleted and created again: changed, marked `recreate`, and of a kind that allows it. */
  readonly replaced: readonly string[];
  readonly pruned: readonly string[];
  /** Deleted because the new payload says so (tombstones). */
  readonly absent: readonly string[];
  /** Leave the payload and stay in the cluster: kept, of a kind that is never pruned, or pruning is off. */
  readonly left: readonly string[];
}

export interface PlanRisk {
  readonly kind: 'adopt' | 'take' | 'replace' | 'confirmKind' | 'brakePercent' | 'brakeCount' | 'restart';
  readonly ids: readonly string[];
  readonly message: string;
}

export interface Plan {
  readonly digest: Digest;
  readonly oldManifestDigest: string | undefined;
  readonly newManifestDigest: string;
  readonly actions: PlanActions;
  /** Field managers whose hold on adopted objects is folded into ours, a step of its own in which no value changes. */
  readonly take: readonly string[];
  readonly changeClass: ChangeClass;
  /** Why a person has to look; empty when the plan is not destructive. */
  readonly risks: readonly PlanRisk[];
  readonly destructive: boolean;
}

export interface PlanOptions {
  readonly prune: PrunePolicy;
  /** Decides the class of a change; the one of plain manifests by default. */
  readonly classify?: (previous: PayloadContent | undefined, next: PayloadContent, actions: PlanActions) => ChangeClass;
  /** What the domain knows of the effects of a change on what runs; asked once it was classified. */
  readonly effects?: () => readonly PlanRisk[];
  /** `group/Kind` of kinds whose removal needs a person. */
  readonly confirmKinds?: readonly string[];
}

const allObjects = (content: PayloadContent | undefined): Map<string, PayloadObject> =>
  new Map((content?.phases ?? []).flatMap((phase) => phase.objects).map((o) => [payloadObjectId(o), o]));

/** Phase of probes that only Keelson makes: no installation that is adopted has its objects. */
const probePhase = 'network-probe';

/** Whether objects of this payload are adopted when there was none before it, and whose fields are taken over then. */
const adoptionOf = (content: PayloadContent): { readonly takeManagers: readonly string[] } | undefined =>
  content.installations.find(({ adoption }) => adoption !== undefined)?.adoption;

/** Ids of what an installation that adopts must find in the cluster: everything that the payload wants, probes apart. */
export function adoptableIds(content: PayloadContent): Set<string> {
  if (adoptionOf(content) === undefined) return new Set();
  const phases = content.phases.filter(({ name }) => name !== probePhase);
  return new Set(
    phases.flatMap(({ objects }) => objects.filter(({ absent }) => !absent).map((object) => payloadObjectId(object))),
  );
}

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
  const adoptable = previous === undefined ? adoptableIds(next) : new Set<string>();
  const lists: Record<keyof PlanActions, string[]> = {
    adopted: [],
    created: [],
    configured: [],
    unchanged: [],
    replaced: [],
    pruned: [],
    absent: [],
    left: [],
  };
  for (const [id, object] of after) lists[adoptable.has(id) ? 'adopted' : actionOf(before.get(id), object)].push(id);
  for (const [id, object] of before)
    if (!after.has(id) && !object.absent) lists[mayPrune(object, prune) ? 'pruned' : 'left'].push(id);
  for (const list of Object.values(lists)) list.sort();
  return lists;
}

function actionOf(before: PayloadObject | undefined, after: PayloadObject): keyof PlanActions {
  if (after.absent) return before === undefined || !before.absent ? 'absent' : 'unchanged';
  if (before === undefined || before.absent) return 'created';
  if (before.sha256 === after.sha256 || after.createOnly) return 'unchanged';
  return after.recreate && recreatableKinds.includes(groupKindOf(after)) ? 'replaced' : 'configured';
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
  { actions, take }: Pick<Plan, 'actions' | 'take'>,
  options: PlanOptions,
): PlanRisk[] {
  const confirm = options.confirmKinds ?? confirmKinds;
  const risks: PlanRisk[] = [];
  if (actions.adopted.length > 0)
    risks.push({
      kind: 'adopt',
      ids: actions.adopted,
      message: `${actions.adopted.length} object(s) that exist already are adopted`,
    });
  if (take.length > 0)
    risks.push({
      kind: 'take',
      ids: actions.adopted,
      message: `fields of theirs that ${take.join(', ')} hold are taken over, without a change of any value`,
    });
  if (actions.replaced.length > 0)
    risks.push({
      kind: 'replace',
      ids: actions.replaced,
      message: `${actions.replaced.length} object(s) may be deleted and created again`,
    });
  const confirmed = [...actions.pruned, ...actions.absent].sort().filter((id) => {
    const object = before.get(id) ?? after.get(id);
    // Something that was to be kept needs a person's word before a tombstone takes it, whatever its kind.
    return object !== undefined && (object.keep || confirm.includes(groupKindOf(object)));
  });
  if (confirmed.length > 0)
    risks.push({
      kind: 'confirmKind',
      ids: confirmed,
      message: `${confirmed.length} object(s) that hold data or other objects, or were to be kept, are removed`,
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
  const take = actions.adopted.length > 0 ? [...(adoptionOf(next)?.takeManagers ?? [])].sort() : [];
  const found = findRisks(allObjects(previous), allObjects(next), { actions, take }, options);
  const risks = [...(options.effects?.() ?? []), ...found];
  return {
    digest: digestOf({
      from: previous?.manifestDigest ?? '',
      to: next.manifestDigest,
      // What only some plans have stands in the digest of those alone, so that no other approval is lost by it.
      actions: Object.fromEntries(
        Object.entries(actions)
          .filter(([action, ids]) => action !== 'adopted' || ids.length > 0)
          .map(([action, ids]) => [action, [...ids]]),
      ),
      ...(take.length === 0 ? {} : { take: [...take] }),
      class: changeClass,
    }),
    oldManifestDigest: previous?.manifestDigest,
    newManifestDigest: next.manifestDigest,
    actions,
    take,
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
  plan: Pick<Plan, 'destructive' | 'changeClass'> & { readonly actions?: Pick<PlanActions, 'adopted'> },
  mode: 'never' | 'destructive' | 'always',
): boolean {
  // A change of what we inject ourselves, and taking over what others made, are approved by the plan whatever the mode says.
  if (plan.changeClass === 'keelson' || (plan.actions?.adopted.length ?? 0) > 0) return true;
  if (mode === 'never' || plan.changeClass === 'none') return false;
  return mode === 'always' || plan.destructive;
}
