/** Carries an adoption out: step by step, each on record before it is sent, the next one only when it has settled. */
import type { Clock } from '../../../constructs/lib/clock.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import { waitFor } from '../../../constructs/lib/wait.ts';
import { type AddressView, type ClaimView, readLedgerObject } from '../../addresses/objects.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf, resourceVersionOf, uidOf } from '../../kube/types.ts';
import { type BalancedService, readService } from '../pins.ts';
import type { Audit } from './audit.ts';
import type { AdoptPlan, AdoptStep, AdoptStepName } from './plan.ts';
import { associated, bothBound, claimSeen, type Missing } from './settled.ts';
import { addressLeft, targetOf, writeStep } from './write.ts';

export interface AdoptWork {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly audit: Audit;
  /** Longest wait after each step, in milliseconds. */
  readonly limitMs: number;
  /** Pause between two looks while waiting. */
  readonly pollMs?: number;
  /** Told of every step that was taken. */
  readonly tell: (line: string) => void;
}

export type AdoptOutcome =
  | { readonly type: 'adopted' }
  | { readonly type: 'failed'; readonly problems: readonly Problem[] };

/** How often a step is tried again when the object changed between look and write, as status does all the time. */
const attempts = 5;

/** What the server says to every step that is still to be taken. Nothing is stored. */
export async function tryAdoption(
  { client, signal }: Pick<AdoptWork, 'client' | 'signal'>,
  plan: AdoptPlan,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const step of plan.steps.filter(({ done }) => !done)) {
    const outcome = await writeStep({ client, signal, dryRun: true }, step, await targetOf(client, plan, step, signal));
    if (outcome.type === 'refused') problems.push(outcome.problem);
  }
  return problems;
}

/**
 * Takes the steps of a plan. It may be ended at any moment and begun again with a new plan of the same digest.
 * @throws WaitTimeout when a step does not settle in time; what was written stays, and is gone on from.
 */
export async function carryOutAdoption(work: AdoptWork, plan: AdoptPlan): Promise<AdoptOutcome> {
  const { service, ip, className, claim, addressName, digest } = plan;
  const adoption = { service: { ...service }, address: ip.text, className, claim: { ...claim }, addressName };
  await work.audit({ event: 'plan', digest, adoption });
  try {
    for (const step of plan.steps) {
      const problem = await take(work, plan, step);
      if (problem !== undefined) {
        await work.audit({ event: 'failed', message: problem.message });
        return { type: 'failed', problems: [problem] };
      }
      await settle(work, plan, step.step);
      await work.audit({ event: 'settled', step: step.step });
    }
  } catch (error) {
    if (!work.signal.aborted) await work.audit({ event: 'failed', message: String(error) });
    throw error;
  }
  await work.audit({ event: 'done' });
  return { type: 'adopted' };
}

/** What of an object the ledger is about; nothing else of a Service is anybody's business. */
const recorded = ({ kind, spec, metadata }: KubeObject, step: AdoptStep): NonNullable<KubeObject['spec']> =>
  kind === 'Service'
    ? { annotations: { ...step.object.metadata.annotations } }
    : { spec: spec ?? {}, generation: metadata.generation ?? 0 };

async function take(work: AdoptWork, plan: AdoptPlan, step: AdoptStep): Promise<Problem | undefined> {
  const { client, signal, audit, tell } = work;
  const object = describeRef(refOf(step.object));
  for (let n = 0; n < attempts; n += 1) {
    const target = await targetOf(client, plan, step, signal);
    if (target.type === 'wanted') {
      await audit({ event: 'found', step: step.step, object, uid: uidOf(target.object) });
      tell(`${object} is as wanted`);
      return undefined;
    }
    const left =
      step.step === 'address' && target.type !== 'refused' ? await addressLeft(client, plan, signal) : undefined;
    if (left !== undefined) return left;
    if (target.type !== 'refused')
      await audit({
        event: 'writing',
        step: step.step,
        object,
        before: target.type === 'open' ? target.before : null,
      });
    const outcome = await writeStep({ client, signal, dryRun: false }, step, target);
    if (outcome.type === 'refused') return outcome.problem;
    if (outcome.type !== 'written') continue;
    const { object: live } = outcome;
    const identity = { uid: uidOf(live), resourceVersion: resourceVersionOf(live) };
    await audit({ event: 'written', step: step.step, object, ...identity, after: recorded(live, step) });
    tell(`${object} ${step.note}`);
    return undefined;
  }
  return {
    reason: 'StepRefused',
    object,
    message: 'it changed every time between a look at it and the write',
    remedy: 'run the command again; it goes on where it was',
  };
}

const waits: Readonly<Record<AdoptStepName, string>> = {
  claim: 'the core to see the claim',
  address: 'the claim to have the address',
  service: 'the driver to record the Service',
};

async function settle(work: AdoptWork, plan: AdoptPlan, step: AdoptStepName): Promise<void> {
  const { clock, signal, limitMs, pollMs = 100 } = work;
  await waitFor({
    what: waits[step],
    limitMs,
    intervalMs: pollMs,
    clock,
    signal,
    probe: async (saw) => {
      const missing = await look(work, plan, step);
      if (missing === undefined) return true;
      saw(missing);
      return undefined;
    },
  });
}

async function look({ client, signal }: AdoptWork, plan: AdoptPlan, step: AdoptStepName): Promise<Missing> {
  const of = (name: AdoptStepName): ObjectRef =>
    refOf(plan.steps.find((one) => one.step === name)?.object ?? { apiVersion: '', kind: '', metadata: {} });
  const read = async (name: AdoptStepName): Promise<KubeObject | undefined> => {
    const found = await client.get(of(name), { signal });
    return found.type === 'found' ? found.object : undefined;
  };
  const claim = async (): Promise<ClaimView | undefined> => ledgerView(await read('claim'), 'IPAddressClaim');
  const address = async (): Promise<AddressView | undefined> => ledgerView(await read('address'), 'IPAddress');
  if (step === 'claim') return claimSeen(await claim());
  if (step === 'address') return bothBound(await claim(), await address());
  const live = await read('service');
  const service: BalancedService | undefined = live === undefined ? undefined : readService(live);
  return associated(await address(), service, plan.ip);
}

type ViewOf<Kind> = Extract<NonNullable<ReturnType<typeof readLedgerObject>>, { kind: Kind }>;

function ledgerView<Kind extends 'IPAddress' | 'IPAddressClaim'>(
  object: KubeObject | undefined,
  kind: Kind,
): ViewOf<Kind> | undefined {
  const view = object === undefined ? undefined : readLedgerObject(object);
  return view?.kind === kind ? (view as ViewOf<Kind>) : undefined;
}
