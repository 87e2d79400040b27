import { resolve } from 'node:path';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { balancedServices } from '../../executor/addressbook/adopt/facts.ts';
import { stripFinalizers } from '../../executor/addressbook/finalizers/carryout.ts';
import { controllersSeen, type HeldLease } from '../../executor/addressbook/finalizers/leases.ts';
import { planStripping, type StrippingPlan } from '../../executor/addressbook/finalizers/plan.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { appendAudit } from '../addresses/audit.ts';
import { readProblem, requireBook } from '../addresses/book.ts';
import { strippingText } from '../addresses/finalizers.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';

export interface Options extends CommonOptions {
  /** Digest of the plan that is approved. */
  readonly approve?: string;
  readonly audit: string;
}

/**
 * `keelson addresses release-finalizers`: for the day the controllers of the ledger are gone for good. Shows which finalizers
 * nobody will take off any more; with `--approve` takes them off. Refused while a controller runs.
 */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  return withClient(invocation, options, async (client) => {
    const abandoned = await requireGone(client, invocation);
    const book = await requireBook(client, invocation.signal);
    const services = await balancedServices(client, invocation.signal);
    if ('type' in services) throw new FailedWithProblems([readProblem(services)]);
    const plan = planStripping(book, services);
    if (options.approve === undefined)
      print(invocation, options.output, { ...plan, abandoned }, () => strippingText(plan, abandoned));
    else await carryOut(invocation, client, plan, { approved: options.approve, file: options.audit });
    return exitCodes.done;
  });
}

/** @throws ProblemError while somebody takes finalizers off as it should be. */
async function requireGone(client: KubeClient, invocation: Invocation): Promise<readonly HeldLease[]> {
  const seen = await controllersSeen({ client, clock: invocation.clock, signal: invocation.signal }, invocation.err);
  if (seen.type === 'gone') return seen.abandoned;
  if (seen.type === 'failed') throw new FailedWithProblems([readProblem(seen)]);
  throw new ProblemError(
    seen.leases.map(({ namespace, name, holder }) => ({
      reason: 'ControllerRuns',
      object: `Lease ${namespace}/${name}`,
      message: `${holder} holds it: a controller of the ledger runs, and takes finalizers off itself`,
      remedy: 'delete claims, addresses and classes in this order while it runs; stop it first if it is to be gone',
    })),
  );
}

async function carryOut(
  { cwd, clock, signal, out }: Invocation,
  client: KubeClient,
  plan: StrippingPlan,
  { approved, file }: { readonly approved: string; readonly file: string },
): Promise<void> {
  if (approved !== plan.digest)
    throw new ProblemError([
      {
        reason: 'PlanNotApproved',
        message: `the plan is ${plan.digest}, not the one that --approve names`,
        value: approved,
        remedy: 'look at the plan again, and approve the digest that it shows',
      },
    ]);
  const path = resolve(cwd, file);
  const audit = (entry: Parameters<typeof appendAudit>[2]): Promise<void> => appendAudit(path, clock, entry);
  await audit({ event: 'plan', digest: plan.digest, objects: plan.objects.length });
  const { released, problems } = await stripFinalizers({ client, signal, audit }, plan);
  if (problems.length > 0) throw new FailedWithProblems(problems);
  out(`${released} objects of the ledger wait for no controller any more; what was done is in ${file}`);
  for (const { object, what } of plan.leftovers) out(`yours: ${object}: ${what}`);
}
