/** Approval of a plan: which one a person has approved, and what the plan of now does otherwise. Pure. */
import type { Plan, PlanActions } from '../../constructs/api/plan.ts';
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

/** What a plan does, by object id; objects that stay as they are are left out. */
export type Changes = Readonly<Record<string, string>>;

/** A plan as it is remembered, so that it can be told how a later one differs. */
export interface KnownPlan {
  readonly planDigest: string;
  readonly changes: Changes;
}

const quiet: ReadonlySet<string> = new Set(['unchanged', 'left'] satisfies (keyof PlanActions)[]);

/** How many changes of an approved plan are remembered: enough for a person, little enough for a ConfigMap. */
const mostRemembered = 1_000;

/** The changes of a plan. */
export function changesOf({ actions }: Pick<Plan, 'actions'>): Changes {
  const pairs = Object.entries(actions).flatMap(([action, ids]: [string, readonly string[]]) =>
    quiet.has(action) ? [] : ids.map((id) => [id, action] as const),
  );
  return Object.fromEntries(pairs.slice(0, mostRemembered));
}

/** Reads a remembered plan out of a stored report. */
function readKnownPlan(value: JsonValue | undefined): KnownPlan | undefined {
  if (!isObject(value) || typeof value.planDigest !== 'string' || !isObject(value.changes)) return undefined;
  const changes = Object.entries(value.changes).map(([id, action]) => [id, String(action)] as const);
  return { planDigest: value.planDigest, changes: Object.fromEntries(changes) };
}

/**
 * The plan that is approved, when it is another one than that of now and was seen here before: the last plan that was
 * stored, or the one that it remembered in turn.
 */
export function approvedPlan(
  stored: JsonObject | undefined,
  approved: string | undefined,
  now: string,
): KnownPlan | undefined {
  if (approved === undefined || approved === now) return undefined;
  return [readKnownPlan(stored), readKnownPlan(stored?.approvedPlan)].find((known) => known?.planDigest === approved);
}

const few = (ids: readonly string[]): string =>
  `${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ` and ${ids.length - 3} more` : ''}`;

/** In words, what the plan of now does that the approved one did not, and the other way round. */
export function differenceText(approved: Changes, now: Changes): string {
  const more = new Map<string, string[]>();
  const less: string[] = [];
  for (const [id, action] of Object.entries(now))
    if (approved[id] !== action) more.set(action, [...(more.get(action) ?? []), id]);
  for (const id of Object.keys(approved)) if (now[id] === undefined) less.push(id);
  const parts = [...more].map(([action, ids]) => `now ${action}: ${few(ids)}`);
  if (less.length > 0) parts.push(`no longer touched: ${few(less)}`);
  return parts.length === 0 ? 'the same objects change, from or to another content' : parts.join('; ');
}

/** Why a plan waits for a person, and how an approval that stands differs from what is asked for. */
export function approvalProblem(
  release: string,
  { mode, planDigest }: ReleaseSpec['approval'],
  plan: Plan,
  known: KnownPlan | undefined,
): Problem {
  const why = plan.risks.map(({ message }) => message).join('; ') || `approval mode is ${mode}`;
  const differs =
    known === undefined
      ? 'a plan that was not made here; look at `keelson plan --live`'
      : `which differs: ${differenceText(known.changes, changesOf(plan))}`;
  return {
    reason: 'ApprovalRequired',
    message: `plan ${plan.digest} needs approval: ${why}${planDigest === undefined ? '' : `; approved is ${planDigest}, ${differs}`}`,
    remedy: `keelson approve ${release} --plan ${plan.digest}`,
  };
}
