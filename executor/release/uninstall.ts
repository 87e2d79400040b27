/**
 * Carries out an uninstall that a person approved: step by step, each object by the UID of the ledger, which it leaves
 * when it is gone or no longer ours. What is left in the ledger is what is left to do, so that any process can go on.
 */
import { annotations } from '../../constructs/api/constants.ts';
import {
  approvalOf,
  type UninstallAction,
  type UninstallObject,
  type UninstallPlan,
  type UninstallRecord,
  type UninstallRequest,
  uninstallPlan,
} from '../../constructs/api/uninstall.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { parseObjectId } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { eachLimited } from '../apply/concurrency.ts';
import { definitionGone } from '../apply/definition.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';
import { letGo } from '../apply/let-go.ts';
import { servedKind } from '../apply/live.ts';
import { claimant, hasMarks } from '../apply/need.ts';
import { appliedByUs } from '../apply/ownership.ts';
import type { Claims } from '../apply/prune.ts';
import { saysKeep } from '../apply/prune-plan.ts';
import { removeObject } from '../apply/remove.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KindRef, type ObjectRef, uidOf } from '../kube/types.ts';
import type { GuardOutcome, WriteGuard } from './domain.ts';
import { readUninstallRecord, writeUninstallRecord } from './uninstall-record.ts';

export interface UninstallDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** @throws when this process may not write any more. */
  readonly check: () => void;
  /** The right to touch the objects of the release. */
  readonly guard: (signal: AbortSignal) => Promise<GuardOutcome>;
  /** What other releases want: that is handed over, and neither deleted nor let go. */
  readonly claims: Claims;
  readonly concurrency: number;
  /** How long one object may take to go before it is reported. */
  readonly goneMs: number;
  /** Told after every step: its name, and how many objects are done. */
  readonly onProgress: (step: string, done: number, total: number) => void;
}

export interface UninstallTarget {
  readonly release: string;
  readonly releaseUID: string;
  readonly namespace: string;
  readonly request: UninstallRequest;
  readonly ledger: LedgerStore;
  readonly signal: AbortSignal;
}

export type UninstallOutcome =
  | { readonly type: 'done'; readonly total: number }
  | { readonly type: 'failed'; readonly problems: readonly Problem[] };

const workloadGroups: ReadonlySet<string> = new Set(['apps', 'batch']);

const failed = (...problems: readonly Problem[]): UninstallOutcome => ({ type: 'failed', problems });

/** One try. Rejects with the signal's reason, or with what a guard throws. */
export async function uninstall(deps: UninstallDeps, target: UninstallTarget): Promise<UninstallOutcome> {
  const { request, ledger, release, releaseUID, signal } = target;
  const plan = uninstallPlan({ release, releaseUID, mode: request.mode, ledger: ledger.ledger });
  const begun = await begin(deps, target, plan);
  if ('problem' in begun) return failed(begun.problem);
  const settled = await settle(deps, target, { plan, record: begun.record });
  if ('problems' in settled) return failed(...settled.problems);
  const { record, heirs } = settled;
  const granted = await deps.guard(signal);
  if (!granted.granted) return failed(granted.problem);
  try {
    const problems = await carryOut(deps, target, { plan, record, heirs, guard: granted.guard });
    if (problems.length > 0) return failed(...problems);
  } finally {
    await granted.guard.release();
  }
  deps.check();
  const unwritten = await writeUninstallRecord(deps.client, target, { ...record, state: 'done' }, signal);
  return unwritten === undefined ? { type: 'done', total: record.total } : failed(unwritten);
}

/** True when all that is left to do was approved: these very objects of this very Release, and what happens to them. Pure. */
export function isApproved(
  record: UninstallRecord,
  { request, releaseUID }: Pick<UninstallTarget, 'request' | 'releaseUID'>,
  plan: UninstallPlan,
): boolean {
  if (record.digest !== request.digest || record.mode !== request.mode || record.releaseUID !== releaseUID)
    return false;
  const approved = new Set(record.approved);
  const left = plan.steps.flatMap(({ objects }) => objects);
  // What was done once is not done again: what is there now came, or came back, afterwards.
  return record.state === 'done' ? left.length === 0 : left.every((object) => approved.has(approvalOf(object)));
}

/** The record of this very request; a new one only when the plan still is what was approved. */
async function begin(
  { client, check }: UninstallDeps,
  target: UninstallTarget,
  plan: UninstallPlan,
): Promise<{ readonly record: UninstallRecord } | { readonly problem: Problem }> {
  const { request, release, releaseUID, ledger, signal } = target;
  const known = await readUninstallRecord(client, target, signal);
  if ('problem' in known) return known;
  if (known.record !== undefined && isApproved(known.record, target, plan)) return { record: known.record };
  if (plan.digest !== request.digest)
    return {
      problem: {
        reason: 'UninstallNotApproved',
        message: `approved is ${request.digest}, and the plan is ${plan.digest}: the ledger has changed since`,
        remedy: `look at the plan again: keelson uninstall ${release}`,
      },
    };
  const objects = plan.steps.flatMap((step) => step.objects);
  const record: UninstallRecord = {
    digest: request.digest,
    mode: request.mode,
    state: 'running',
    total: ledger.ledger.size,
    definitions: plan.steps
      .filter(({ name }) => name === 'definitions')
      .flatMap(({ objects }) => objects)
      .flatMap(({ id, uid, action }) =>
        uid === undefined || action === 'forget' ? [] : [{ name: parseObjectId(id).name, uid }],
      ),
    releaseUID,
    approved: objects.map(approvalOf),
    ...(known.record?.handsOver === true ? { handsOver: true } : {}),
  };
  check();
  const problem = await writeUninstallRecord(client, target, record, signal);
  return problem === undefined ? { record } : { problem };
}

type Heirs = ReadonlyMap<string, string>;

interface Carried {
  readonly plan: UninstallPlan;
  readonly record: UninstallRecord;
  readonly heirs: Heirs;
  readonly guard: WriteGuard;
}

/** Who else wants what is to go, asked before the first write; that there are heirs is stored before they are free to take. */
async function settle(
  { client, check, claims }: UninstallDeps,
  target: UninstallTarget,
  { plan, record }: Pick<Carried, 'plan' | 'record'>,
): Promise<Pick<Carried, 'record' | 'heirs'> | { readonly problems: readonly Problem[] }> {
  const { release, signal } = target;
  const objects = plan.steps.flatMap((step) => step.objects);
  if (objects.length === 0) return { record, heirs: new Map() };
  const { heirs, problems } = await claims.heirs(release, signal);
  if (problems.length > 0) return { problems };
  const handed = objects.filter(({ id }) => heirs.has(id)).map(({ id }) => parseObjectId(id));
  if (handed.length === 0) return { record, heirs };
  // A definition that changes hands is deleted by nobody, whatever its UID.
  const kept = new Set(handed.filter(({ kind }) => kind === 'CustomResourceDefinition').map(({ name }) => name));
  const definitions = record.definitions.filter(({ name }) => !kept.has(name));
  if (record.handsOver === true && definitions.length === record.definitions.length) return { record, heirs };
  const handing: UninstallRecord = { ...record, definitions, handsOver: true };
  check();
  const unwritten = await writeUninstallRecord(client, target, handing, signal);
  return unwritten === undefined ? { record: handing, heirs } : { problems: [unwritten] };
}

async function carryOut(
  deps: UninstallDeps,
  target: UninstallTarget,
  { plan, record, heirs, guard }: Carried,
): Promise<Problem[]> {
  const { ledger } = target;
  const signal = guard.signal === undefined ? target.signal : AbortSignal.any([target.signal, guard.signal]);
  const check = (): void => {
    deps.check();
    guard.check();
  };
  const kinds = new Map<string, Promise<KindRef | undefined | Problem>>();
  for (const { name, objects } of plan.steps) {
    deps.onProgress(name, record.total - ledger.ledger.size, record.total);
    const problems: Problem[] = [];
    await eachLimited(objects, deps.concurrency, async (object) => {
      // Its marks stay: by these, and by a ledger that no longer names it, the heir knows that it may take it.
      const handed = heirs.has(object.id);
      const problem = handed ? undefined : await one({ ...deps, check }, { ...target, signal }, object, kinds);
      if (problem === undefined) ledger.remove(object.id);
      else problems.push(problem);
    });
    check();
    const unwritten = await ledger.flush(signal);
    if (unwritten !== undefined) return [unwritten];
    // What comes later may be needed by what is still there.
    if (problems.length > 0) return problems;
  }
  return [];
}

/** One object. Answers the problem that keeps it in the ledger. */
async function one(
  deps: UninstallDeps,
  target: UninstallTarget,
  { id, uid: known, action }: UninstallObject,
  kinds: Map<string, Promise<KindRef | undefined | Problem>>,
): Promise<Problem | undefined> {
  const { client } = deps;
  const { release, signal } = target;
  const { group, kind, namespace, name } = parseObjectId(id);
  const key = `${group}/${kind}`;
  const asked = kinds.get(key) ?? kindOf(client, group, kind, signal);
  kinds.set(key, asked);
  const served = await asked;
  // A kind that is not served has no objects only when its definition is gone, too.
  if (served === undefined) return definitionGone(client, group, kind, signal);
  if ('reason' in served) return served;
  const ref: ObjectRef = { ...served, name, ...(namespace === undefined ? {} : { namespace }) };
  const uid = known ?? (await marked(deps, ref, id, target));
  if (uid === undefined) return undefined;
  if (typeof uid !== 'string') return uid;
  const looked = await lookAt(deps, ref, { uid, release, action }, signal);
  if (looked.type !== 'go') return looked.type === 'gone' ? undefined : looked.problem;
  if (action !== 'delete' || looked.keep) return letGo(ref, uid, { ...deps, release, signal });
  // Pods go before what they use; other owners are not waited for, since their dependents are no part of the release.
  const propagation = workloadGroups.has(group) ? 'Foreground' : 'Background';
  const outcome = await removeObject(ref, uid, { ...deps, release, signal, propagation, keeps: saysKeep });
  switch (outcome.type) {
    case 'kept':
      return letGo(ref, uid, { ...deps, release, signal });
    case 'gone':
    case 'notOurs':
      return undefined;
    case 'held':
      return held(ref, outcome.by);
    default:
      return outcome.problem;
  }
}

async function kindOf(
  client: KubeClient,
  group: string,
  kind: string,
  signal: AbortSignal,
): Promise<KindRef | undefined | Problem> {
  const served = await servedKind(client, group, kind, signal);
  return 'problem' in served ? served.problem : served.found;
}

const held = (ref: ObjectRef, by: string): Problem => ({
  reason: 'ObjectHeld',
  message: `it is held: ${by}`,
  object: describeRef(ref),
});

const unavailable = (ref: ObjectRef, message: string): Problem => ({
  reason: 'ApiUnavailable',
  message,
  object: describeRef(ref),
});

/** UID of an object that no run has recorded: the one that carries our marks and our entry, and no other. */
async function marked(
  { client }: UninstallDeps,
  ref: ObjectRef,
  id: string,
  { release, signal }: UninstallTarget,
): Promise<string | undefined | Problem> {
  const found = await client.get(ref, { signal });
  if (found.type === 'found')
    return hasMarks(found.object.metadata, id, release) && appliedByUs(found.object) ? uidOf(found.object) : undefined;
  return found.type === 'absent' || found.type === 'namespaceMissing' || found.type === 'kindAbsent'
    ? undefined
    : unavailable(ref, found.message);
}

type Looked =
  | { readonly type: 'go'; readonly keep: boolean }
  | { readonly type: 'gone' }
  | { readonly type: 'stays'; readonly problem: Problem };

/**
 * What a person has said on the object itself: a hold stops it, and what is to be kept is kept. What never became ours is of
 * no concern, unless it bears what we applied: an adoption was cut off before the ledger could say so, or an override took
 * out what was ours. Its owner would take it along.
 */
async function lookAt(
  { client }: UninstallDeps,
  ref: ObjectRef,
  { uid, release, action }: { readonly uid: string; readonly release: string; readonly action: UninstallAction },
  signal: AbortSignal,
): Promise<Looked> {
  const found = await client.get(ref, { signal });
  if (found.type === 'absent' || found.type === 'namespaceMissing') return { type: 'gone' };
  if (found.type !== 'found') return { type: 'stays', problem: unavailable(ref, found.message) };
  const { metadata } = found.object;
  if (uidOf(found.object) !== uid) return { type: 'gone' };
  const ours = appliedByUs(found.object) && claimant(metadata, release) === undefined;
  if (action === 'forget' && !ours) return { type: 'gone' };
  const by = metadata.annotations?.[annotations.hold];
  if (by !== undefined) return { type: 'stays', problem: held(ref, by) };
  return { type: 'go', keep: saysKeep(metadata) };
}
