/**
 * The steps before the first write: Fetch, Verify, Preconditions, DryRun, Plan, Approval. Nothing of the payload is
 * written in them, and everything that is wrong is told at once.
 */

import type { Payload } from '../../constructs/api/payload-codec.ts';
import { makePlan, needsApproval, type Plan } from '../../constructs/api/plan.ts';
import type { AcceptanceStep, ReleaseSpec } from '../../constructs/api/release.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { dryRun, type Judgement } from '../apply/dryrun.ts';
import type { Item } from '../apply/items.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';
import { type Survey, survey } from '../apply/survey.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import type { RetainedStore } from '../source/retained.ts';
import type { PayloadSources, SourceRevision } from '../source/source.ts';
import { handledBy, missingRights, neededRights } from './access.ts';
import { approvalProblem, approvedPlan, type KnownPlan } from './approval.ts';
import type { Classification, DomainSession, DomainTarget, SealedDomain } from './domain.ts';
import { lintDefinition, lintMarks, lintRuntime, lintWebhooks } from './lint.ts';
import { type Loaded, loadPayload } from './load.ts';
import { checkCluster, checkDependencies, checkOwners, checkRequirements, checkSpecs } from './preconditions.ts';
import { type PlanReport, planReport, storedPlan, storeReport } from './reports.ts';
import { type Retry, retryOfAll } from './retry.ts';

export interface AcceptDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly namespace: string;
  readonly source: PayloadSources;
  readonly retained: RetainedStore;
  readonly domains: readonly SealedDomain[];
  readonly allowUnsigned: boolean;
  /** Nothing is run in the cluster, and a payload is accepted in name only. */
  readonly planOnly: boolean;
  readonly concurrency: number;
  /** Another Release of the namespace, as last seen. */
  readonly releaseOf: (name: string) => KubeObject | undefined;
  readonly onStep: (step: AcceptanceStep) => void;
  /** Hears of the revision of a source before it is fetched. */
  readonly onRevision: (revision: SourceRevision) => void;
}

export interface AcceptInput {
  readonly release: string;
  readonly releaseUID: string;
  readonly spec: ReleaseSpec;
  readonly digest: string;
  /** A person pinned this digest: it comes from the retained copies and from nowhere else. */
  readonly pinned: boolean;
  /** What the annotation says, for messages. */
  readonly pin?: string;
  readonly previous?: NonNullable<DomainTarget['previous']>;
  readonly ledger: LedgerStore;
  readonly overridden: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

export interface Accepted extends Loaded {
  readonly session: DomainSession;
  readonly survey: Survey;
  readonly judgement: Judgement;
  readonly plan: Plan;
  /** A person approved this plan, or none has to. */
  readonly approved: boolean;
}

export type Acceptance =
  | { readonly type: 'accepted'; readonly accepted: Accepted }
  | {
      readonly type: 'refused';
      readonly step: AcceptanceStep;
      readonly problems: readonly Problem[];
      readonly retry: Retry;
      readonly plan?: PlanReport;
    };

const refuse = (step: AcceptanceStep, problems: readonly Problem[], plan?: PlanReport): Acceptance => ({
  type: 'refused',
  step,
  problems,
  retry: retryOfAll(problems),
  ...(plan === undefined ? {} : { plan }),
});

/** All steps. Rejects with the signal's reason; everything else is an answer. */
export async function accept(deps: AcceptDeps, input: AcceptInput): Promise<Acceptance> {
  const got = await loadPayload(deps, input);
  if (!got.ok) return got.refused;
  const { loaded } = got;
  const { content } = loaded.payload.index;
  const domain = deps.domains.find(({ name }) => name === content.release.domain);
  if (domain === undefined)
    return refuse('Preconditions', [
      {
        reason: 'UnknownDomain',
        message: `this executor carries out no releases of domain '${content.release.domain}'`,
      },
    ]);
  deps.onStep('Preconditions');
  const elsewhere = await checkCluster(deps.client, content, input.signal);
  // In another cluster every further answer would be about something else.
  if (elsewhere.length > 0) return refuse('Preconditions', elsewhere);
  const target = targetOf(deps, input, loaded.payload);
  const { session, problems: found } = await domain.prepare(target, deps2(deps, input));
  const [missing, looked] = await Promise.all([
    preconditions(deps, input, loaded, session),
    survey({
      client: deps.client,
      release: input.release,
      items: loaded.items,
      ledger: input.ledger.ledger,
      overridden: input.overridden,
      signal: input.signal,
    }),
  ]);
  const unmet = [...found, ...missing];
  deps.onStep('DryRun');
  if (!looked.ok)
    return refuse('DryRun', [...unmet, ...looked.problems, ...(await deniedRoles(deps, input, loaded, session))]);
  const judgement = await dryRun({
    client: deps.client,
    release: input.release,
    items: loaded.items,
    needs: looked.survey.needs,
    bind: session.bind,
    adoption: session.adoption,
    namespace: deps.namespace,
    signal: input.signal,
    concurrency: deps.concurrency,
  });
  const definitions = await lintDefinitions(deps, loaded.items, looked.survey, input.signal);
  const foreign = checkOwners(loaded.items, looked.survey.live);
  const problems = [...unmet, ...definitions, ...foreign, ...judgement.problems];
  return decide(deps, input, { ...loaded, session, survey: looked.survey, judgement }, problems);
}

/**
 * What may not be listed can not be dry-run either. Roles are asked about all the same, since only the server knows
 * whether this account may grant what they grant: a missing right must not show up one try later than the others.
 */
async function deniedRoles(
  deps: AcceptDeps,
  input: AcceptInput,
  { items }: Loaded,
  session: DomainSession,
): Promise<Problem[]> {
  const { client, concurrency, namespace } = deps;
  const { release, signal } = input;
  const needs = new Map(items.map(({ id }) => [id, { need: 'write', why: 'new' } as const]));
  const roles = items.filter(({ entry }) => entry.apiVersion.startsWith('rbac.authorization.k8s.io/') && !entry.absent);
  const asked = await dryRun(
    { client, release, items, needs, bind: session.bind, namespace, signal, concurrency },
    roles,
  );
  return asked.problems.filter(({ reason }) => reason === 'Forbidden');
}

const deps2 = ({ client, clock }: AcceptDeps, { signal }: AcceptInput) => ({ client, clock, signal });

function targetOf(deps: AcceptDeps, input: AcceptInput, { index, objects }: Payload): DomainTarget {
  const { release, releaseUID, spec, digest, previous } = input;
  return {
    release,
    releaseUID,
    namespace: deps.namespace,
    spec,
    payloadDigest: digest,
    content: index.content,
    objects,
    purpose: 'accept',
    ...(previous === undefined ? {} : { previous }),
  };
}

async function preconditions(
  deps: AcceptDeps,
  input: AcceptInput,
  loaded: Loaded,
  session: DomainSession,
): Promise<Problem[]> {
  const { client } = deps;
  const { signal } = input;
  const { content } = loaded.payload.index;
  const needed = await neededRights(client, handledBy(loaded.items, input.previous?.content), loaded.items, signal);
  return [
    ...checkDependencies(input.spec.dependsOn, deps.releaseOf),
    ...lintMarks(loaded.items, input.release),
    ...lintRuntime(loaded.items),
    ...lintWebhooks(loaded.items, deps.namespace),
    ...session.admit(),
    ...(await session.check(loaded.items, deps2(deps, input))),
    ...(await checkRequirements(client, content.requires, signal)),
    ...(await checkSpecs(deps, content, signal)),
    ...needed.problems,
    ...(await missingRights(client, needed.rights, signal)),
  ];
}

/** CRDs that exist and change are read whole once: what they still store decides what they may drop. */
async function lintDefinitions(
  deps: AcceptDeps,
  items: readonly Item[],
  looked: Survey,
  signal: AbortSignal,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const item of items) {
    const need = looked.needs.get(item.id);
    if (item.entry.kind !== 'CustomResourceDefinition' || need?.need !== 'write' || need.uid === undefined) continue;
    const { apiVersion, kind, name } = item.entry;
    const live = await deps.client.get({ apiVersion, kind, name }, { signal });
    if (live.type === 'found') problems.push(...lintDefinition(item, live.object));
  }
  return problems;
}

/** Plan and approval, and the answer. */
async function decide(
  deps: AcceptDeps,
  input: AcceptInput,
  so: Omit<Accepted, 'plan' | 'approved'>,
  problems: readonly Problem[],
): Promise<Acceptance> {
  if (problems.length > 0) {
    const early = so.judgement.problems.length < problems.length;
    return refuse(early ? 'Preconditions' : 'DryRun', problems);
  }
  deps.onStep('Plan');
  const { spec, previous } = input;
  const { content } = so.payload.index;
  let classification: Classification = { verdict: 'allowed', changeClass: 'none' };
  const plan = makePlan(previous?.content, content, {
    prune: spec.prune,
    classify: (_previous, _next, actions) => {
      classification = so.session.classify(actions);
      return classification.changeClass;
    },
    effects: () => (classification.verdict === 'allowed' ? (classification.effects ?? []) : []),
  });
  const blocked = blockedBy(classification);
  const approved = spec.approval.planDigest === plan.digest;
  const required = needsApproval(plan, spec.approval.mode);
  const target = { release: input.release, namespace: deps.namespace };
  const known = await approvedBefore(deps, input, plan);
  const report: PlanReport = {
    digest: input.digest,
    content,
    plan,
    confidence: so.judgement.confidence,
    adoptions: [...so.judgement.adoptions.values()],
    approval: approved ? 'approved' : required ? 'required' : 'notNeeded',
    ...(blocked === undefined ? {} : { blocked: { reason: blocked.reason, message: blocked.message } }),
    ...(known === undefined ? {} : { approvedPlan: known }),
  };
  const untold = await storeReport(deps.client, planReport(target, report), input.signal);
  if (blocked !== undefined) return refuse('Plan', [blocked, ...untold], report);
  if (untold.length > 0) return refuse('Plan', untold, report);
  deps.onStep('Approval');
  if (required && !approved)
    return refuse('Approval', [approvalProblem(input.release, spec.approval, plan, known)], report);
  if (!deps.planOnly) {
    // As late as can be, so that what it saw still is so at the first write.
    deps.onStep('Preconditions');
    const found = await so.session.preflight(so.items, plan, deps2(deps, input));
    if (found.length > 0) return refuse('Preconditions', found, report);
  }
  deps.onStep('Accepted');
  return { type: 'accepted', accepted: { ...so, plan, approved: approved || spec.approval.mode === 'never' } };
}

/** The plan that stands approved, when it is not the one of now and was made here. */
async function approvedBefore(deps: AcceptDeps, input: AcceptInput, plan: Plan): Promise<KnownPlan | undefined> {
  const { planDigest } = input.spec.approval;
  if (planDigest === undefined || planDigest === plan.digest) return undefined;
  const stored = await storedPlan(deps.client, { release: input.release, namespace: deps.namespace }, input.signal);
  return approvedPlan(stored, planDigest, plan.digest);
}

function blockedBy(classification: Classification): Problem | undefined {
  if (classification.verdict === 'allowed') return undefined;
  const { reason, message, changeClass } = classification;
  return { reason, message: `${message} (change class ${changeClass})` };
}
