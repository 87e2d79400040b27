/** The writes of an adoption: one object each, in the version that was looked at, and never over what is not as it was planned. */
import { addressAnnotations } from '../../../constructs/api/addresses.ts';
import { readIP } from '../../../constructs/lib/ip.ts';
import { isObject, type JsonObject, objectOf } from '../../../constructs/lib/json.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import { readLedgerObject } from '../../addresses/objects.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeRef, type KubeObject, refOf, resourceVersionOf, uidOf } from '../../kube/types.ts';
import type { SharedObject } from '../../kube/verbs/create.ts';
import { type BalancedService, hasAddress, readService } from '../pins.ts';
import { differences } from './claim.ts';
import type { AdoptPlan, AdoptStep } from './plan.ts';

/** Of what people's adoptions write; no courier and no controller has it. */
const fieldManager = 'keelson-adopt';

export type StepWrite =
  | { readonly type: 'written'; readonly object: KubeObject; readonly before: JsonObject | null }
  /** It is there already, just as it is wanted. */
  | { readonly type: 'found'; readonly object: KubeObject }
  /** Somebody wrote the object meanwhile: look, and come again. */
  | { readonly type: 'stale' }
  | { readonly type: 'refused'; readonly problem: Problem };

/** What a write would change, and in which version of what is there. */
export type Target =
  | { readonly type: 'absent' }
  | { readonly type: 'wanted'; readonly object: KubeObject }
  | { readonly type: 'open'; readonly object: KubeObject; readonly before: JsonObject }
  | { readonly type: 'refused'; readonly problem: Problem };

const refused = (object: KubeObject, message: string): { readonly type: 'refused'; readonly problem: Problem } => ({
  type: 'refused',
  problem: {
    reason: 'StepRefused',
    object: describeRef(refOf(object)),
    message,
    remedy: 'do what the message asks for, and run the command again; it goes on where it was',
  },
});

const sameRef = (live: unknown, wanted: unknown): boolean => {
  const [one, other] = [objectOf(live), objectOf(wanted)];
  return one.namespace === other.namespace && one.name === other.name;
};

/** Whether an object that is there is what the step would write, can be written to, or is something else. */
function judge(plan: AdoptPlan, { step, object }: AdoptStep, live: KubeObject): Target {
  if (typeof live.metadata.deletionTimestamp === 'string') return refused(object, 'it is being deleted');
  if (step === 'claim') {
    const view = readLedgerObject(live);
    const wish = { className: plan.className, family: plan.ip.family, addressName: plan.addressName };
    const others = view?.kind === 'IPAddressClaim' ? differences(view, wish) : ['it is no claim'];
    return others.length === 0 ? { type: 'wanted', object: live } : refused(object, others.join('; '));
  }
  const [has, wants] = [objectOf(live.spec), objectOf(object.spec)];
  if (step === 'address') {
    // One that was made anew under the name may be any address: the name alone says nothing.
    const fits = readIP(String(has.address))?.text === plan.ip.text && has.className === plan.className;
    if (!fits) return refused(object, 'it is there, and is another address');
    if (!isObject(has.claimRef)) return { type: 'open', object: live, before: { claimRef: null } };
    return sameRef(has.claimRef, wants.claimRef)
      ? { type: 'wanted', object: live }
      : refused(object, 'it is there, and belongs to another claim');
  }
  return judgeService(plan, object, live);
}

function judgeService(plan: AdoptPlan, object: KubeObject, live: KubeObject): Target {
  const { claim } = plan;
  const view = readService(live);
  const { claim: named } = view;
  const moved = movedFrom(plan, view);
  if (moved !== undefined) return refused(object, moved);
  if (named === claim.name) return { type: 'wanted', object: live };
  return named === undefined
    ? { type: 'open', object: live, before: { annotations: { [addressAnnotations.claim]: null } } }
    : refused(object, `it names claim ${named} now`);
}

/**
 * Why the address must not be recorded any more: looking and waiting for the claim take minutes, and a Service that has let go
 * meanwhile may have left it to somebody else.
 */
export async function addressLeft(
  client: KubeClient,
  plan: AdoptPlan,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  const { service, ip } = plan;
  const ref: KubeObject = { apiVersion: 'v1', kind: 'Service', metadata: { ...service } };
  const found = await client.get(refOf(ref), { signal });
  const why = (): string | undefined => {
    if (found.type !== 'found') return found.type === 'absent' ? 'it is not there any more' : found.message;
    const live = readService(found.object);
    const moved = movedFrom(plan, live);
    if (moved !== undefined || live.deleting) return moved ?? 'it is being deleted';
    return hasAddress(live, ip) ? undefined : `it does not have ${ip.text} any more`;
  };
  const message = why();
  return message === undefined ? undefined : refused(ref, message).problem;
}

/** Why it is not the Service that was planned for, with the pin that it had. */
function movedFrom({ service, ip }: AdoptPlan, { uid, pin }: BalancedService): string | undefined {
  if (uid !== service.uid) return 'it is another Service of that name now';
  return pin.type === 'one' && pin.ip.text === ip.text ? undefined : `it is not pinned to ${ip.text} any more`;
}

/** What is there now, uncached. */
export async function targetOf(
  client: KubeClient,
  plan: AdoptPlan,
  step: AdoptStep,
  signal: AbortSignal,
): Promise<Target> {
  const found = await client.get(refOf(step.object), { signal });
  if (found.type === 'absent')
    return step.write === 'create' ? { type: 'absent' } : refused(step.object, 'it is not there any more');
  return found.type === 'found' ? judge(plan, step, found.object) : refused(step.object, found.message);
}

interface Writing {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  /** Asks the server what it would say, and stores nothing. */
  readonly dryRun: boolean;
}

/** Writes one step onto what was found. */
export async function writeStep(
  { client, signal, dryRun }: Writing,
  step: AdoptStep,
  target: Target,
): Promise<StepWrite> {
  const { object } = step;
  if (target.type === 'refused') return target;
  if (target.type === 'wanted') return { type: 'found', object: target.object };
  if (target.type === 'open') return merge({ client, signal, dryRun }, step, target);
  if (dryRun) {
    const outcome = await client.apply(object, { fieldManager, dryRun, signal });
    if ('object' in outcome) return { type: 'written', object: outcome.object, before: null };
    return refused(object, outcome.message);
  }
  const outcome = await client.create(object as SharedObject, { fieldManager, signal });
  if (outcome.type === 'created') return { type: 'written', object: outcome.object, before: null };
  return outcome.type === 'exists' ? { type: 'stale' } : refused(object, outcome.message);
}

async function merge(
  { client, signal, dryRun }: Writing,
  { object }: AdoptStep,
  { object: live, before }: Extract<Target, { type: 'open' }>,
): Promise<StepWrite> {
  const guard = { uid: uidOf(live), resourceVersion: resourceVersionOf(live) };
  if (object.kind === 'Service') {
    const outcome = await client.apply(object, { fieldManager, dryRun, ...guard, signal });
    if ('object' in outcome) return { type: 'written', object: outcome.object, before };
    return outcome.type === 'stale' ? outcome : refused(object, outcome.message);
  }
  const { claimRef } = objectOf(object.spec);
  const spec: JsonObject = { claimRef };
  const ref = { ...refOf(object), apiVersion: 'local.sdn.cozystack.io/v1alpha1' } as const;
  const outcome = dryRun
    ? await client.preview(ref, { resourceVersion: guard.resourceVersion, values: { spec }, fieldManager }, { signal })
    : await client.mergeShared(ref, { ...guard, spec }, { fieldManager, signal });
  if (outcome.type === 'updated') return { type: 'written', object: outcome.object, before };
  if (outcome.type === 'stale') return outcome;
  return refused(object, outcome.type === 'absent' ? 'it is not there any more' : outcome.message);
}
