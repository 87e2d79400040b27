/** ConfigMaps that people read: the whole plan, and every problem where a status has room for ten. */

import { releaseMetadata } from '../../constructs/api/configmap.ts';
import { configMapNames, labels, managers } from '../../constructs/api/constants.ts';
import type { PayloadContent } from '../../constructs/api/payload.ts';
import { type Plan, plannedPhases } from '../../constructs/api/plan.ts';
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { formatProblem, sortProblems } from '../../constructs/lib/problems.ts';
import type { Adoption } from '../apply/adopt-judge.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { changesOf, type KnownPlan } from './approval.ts';
import { nothingPlanned, type PrunedPlan } from './enforce.ts';

export interface ReportTarget {
  readonly release: string;
  readonly namespace: string;
}

const mostBytes = 900 * 1024;

/** Text of at most `mostBytes`; lines that do not fit are counted. */
function cut(lines: readonly string[]): string {
  let bytes = 0;
  const kept: string[] = [];
  for (const line of lines) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > mostBytes) {
      kept.push(`... and ${lines.length - kept.length} more`);
      break;
    }
    kept.push(line);
  }
  return `${kept.join('\n')}\n`;
}

/** Every problem of a payload, one after the other, redacted. */
export function problemReport(target: ReportTarget, digest: string, problems: readonly Problem[]): KubeObject {
  const lines = sortProblems(problems).map(formatProblem);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: releaseMetadata('report', target, configMapNames.report(digest)),
    data: { payload: digest, 'problems.txt': cut(lines) },
  };
}

export interface PlanReport {
  readonly digest: string;
  readonly content: PayloadContent;
  readonly plan: Plan;
  readonly confidence: 'full' | 'partial';
  readonly approval: 'approved' | 'required' | 'notNeeded';
  /** The plan that a person has approved, when it is another one. */
  readonly approvedPlan?: KnownPlan;
  /** What is taken over, object by object. */
  readonly adoptions?: readonly Pick<Adoption, 'item' | 'take' | 'pinned'>[];
  /** Why the change may not go ahead, when it may not. */
  readonly blocked?: { readonly reason: string; readonly message: string };
}

/** The whole plan: phases with their gates, every object with its action, the class, the risks. */
export function planReport(target: ReportTarget, report: PlanReport): KubeObject {
  const { plan, content } = report;
  const value: JsonObject = {
    payload: report.digest,
    planDigest: plan.digest,
    changes: { ...changesOf(plan) },
    ...(report.approvedPlan === undefined ? {} : { approvedPlan: { ...report.approvedPlan } }),
    changeClass: plan.changeClass,
    confidence: report.confidence,
    approval: report.approval,
    ...(report.blocked === undefined ? {} : { blocked: { ...report.blocked } }),
    risks: plan.risks.map(({ kind, message, ids }) => ({ kind, message, ids: [...ids] })),
    phases: plannedPhases(content, plan.actions).map(({ name, gates, objects }) => ({
      name,
      gates: [...gates],
      objects: objects.map((object) => ({ ...object })),
    })),
    ...adoptionPart(report),
    pruned: [...plan.actions.pruned],
    left: [...plan.actions.left],
  };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: releaseMetadata('plan', target, configMapNames.plan(target.release)),
    data: { 'plan.json': `${JSON.stringify(value satisfies JsonValue, undefined, 1)}\n` },
  };
}

/** Fields that change hands without a change of value, as a step of its own, and images that become digests afterwards. */
function adoptionPart({ adoptions = [], plan }: PlanReport): JsonObject {
  if (plan.actions.adopted.length === 0) return {};
  const byId = [...adoptions].sort((a, b) => (a.item.id < b.item.id ? -1 : 1));
  const take = byId.filter((adoption) => adoption.take.length > 0);
  const pinned = byId.filter((adoption) => adoption.pinned.length > 0);
  return {
    adoption: {
      take: take.map(({ item, take: from }) => ({ id: item.id, managers: [...from] })),
      pinned: pinned.map(({ item, pinned: fields }) => ({ id: item.id, fields: [...fields] })),
    },
  };
}

/** Ids that a plan removes. */
export const prunedOf = ({ actions }: Plan): string[] => [...actions.pruned, ...actions.absent];

/** The plan that was stored last; undefined when there is none that can be read. */
export async function storedPlan(
  client: KubeClient,
  target: ReportTarget,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const name = configMapNames.plan(target.release);
  const got = await client.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: target.namespace, name }, { signal });
  return got.type === 'found' && isObject(got.object.data) ? parsePlan(got.object.data['plan.json']) : undefined;
}

/** What a stored plan says to a process that did not make it. */
async function readPlanReport(
  client: KubeClient,
  target: ReportTarget,
  signal: AbortSignal,
): Promise<{ readonly payload: string; readonly pruned: readonly string[]; readonly approved: boolean } | undefined> {
  const value = await storedPlan(client, target, signal);
  if (value === undefined || typeof value.payload !== 'string' || !Array.isArray(value.pruned)) return undefined;
  return { payload: value.payload, pruned: value.pruned.map(String), approved: value.approval === 'approved' };
}

/** What the accepted plan said of removals, for a process that did not make the plan itself. */
export async function acceptedRemovals(
  { client, namespace }: { readonly client: KubeClient; readonly namespace: string },
  release: string,
  { payload, mode }: { readonly payload: string; readonly mode: ReleaseSpec['approval']['mode'] },
  signal: AbortSignal,
): Promise<PrunedPlan> {
  const stored = await readPlanReport(client, { release, namespace }, signal);
  if (stored === undefined || stored.payload !== payload) return nothingPlanned;
  return { planned: new Set(stored.pruned), approved: stored.approved || mode === 'never', formerPhases: [] };
}

function parsePlan(text: JsonValue | undefined): JsonObject | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Stores a report. What keeps it from being stored is a problem worth telling, and no reason to stop. */
export async function storeReport(client: KubeClient, report: KubeObject, signal: AbortSignal): Promise<Problem[]> {
  const outcome = await client.apply(report, { fieldManager: managers.objects, metadataOnly: true, signal });
  if ('object' in outcome) return [];
  return [
    {
      reason: 'ReportNotWritten',
      message: outcome.message,
      object: `ConfigMap ${report.metadata.name ?? ''}`,
      ...(outcome.type === 'conflict' ? { remedy: 'delete it: it is written anew' } : {}),
    },
  ];
}

/** Deletes the problem reports of a release: what they tell of is over. One that can not be deleted now goes next time. */
export async function dropReports(client: KubeClient, target: ReportTarget, signal: AbortSignal): Promise<void> {
  const labelSelector = `${labels.holds}=report,${labels.release}=${target.release}`;
  const selection = { apiVersion: 'v1', kind: 'ConfigMap', namespace: target.namespace };
  const listed = await client.list({ ...selection, labelSelector }, { signal, metadataOnly: true });
  if (listed.type !== 'listed') return;
  for (const { metadata } of listed.items)
    await client.delete(
      { ...selection, name: metadata.name ?? '' },
      { uid: metadata.uid ?? '', propagation: 'Background', signal },
    );
}
