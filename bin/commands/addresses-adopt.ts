import { resolve } from 'node:path';
import { parseDuration } from '../../constructs/lib/duration.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { carryOutAdoption, tryAdoption } from '../../executor/addressbook/adopt/carryout.ts';
import { readFacts } from '../../executor/addressbook/adopt/facts.ts';
import { type AdoptPlan, type AdoptRequest, planAdoption } from '../../executor/addressbook/adopt/plan.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { adoptionJson, adoptionText } from '../addresses/adoption.ts';
import { appendAudit } from '../addresses/audit.ts';
import { readProblem } from '../addresses/book.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
  readonly class?: string;
  readonly claim?: string;
  /** Digest of the plan that is approved. */
  readonly approve?: string;
  /** File that the record of what is done is appended to. */
  readonly audit?: string;
  readonly timeout: string;
}

/**
 * `keelson addresses adopt SERVICE`: shows how the address of a Service would come under the ledger, as the server answers to
 * it; with `--approve` does it. Run again, it goes on where it was.
 */
export async function run(invocation: Invocation, options: Options, service: string): Promise<ExitCode> {
  const limitMs = parseDuration(options.timeout);
  const { namespace, class: className, claim: claimName, approve } = options;
  const request: AdoptRequest = {
    namespace,
    service,
    ...(className === undefined ? {} : { className }),
    ...(claimName === undefined ? {} : { claimName }),
  };
  return withClient(invocation, options, async (client) => {
    const plan = await planOf(client, request, invocation.signal);
    if (approve !== undefined && approve !== plan.digest) throw otherPlan(plan, approve);
    refuseProblems(await tryAdoption({ client, signal: invocation.signal }, plan));
    if (approve === undefined) print(invocation, options.output, adoptionJson(plan), () => adoptionText(plan));
    else await carryOut(invocation, client, plan, { file: auditFile(options, request), limitMs });
    return exitCodes.done;
  });
}

/** @throws ProblemError with everything that is in the way. */
async function planOf(client: KubeClient, request: AdoptRequest, signal: AbortSignal): Promise<AdoptPlan> {
  const read = await readFacts(client, request, signal);
  if (read.type !== 'read') throw new FailedWithProblems([readProblem(read)]);
  const decision = planAdoption(read.facts, request);
  if (decision.type === 'refused') throw new ProblemError(decision.problems);
  return decision.plan;
}

const auditFile = ({ audit }: Options, { namespace, service }: AdoptRequest): string =>
  audit ?? `keelson-adopt-${namespace}-${service}.jsonl`;

const otherPlan = ({ digest }: AdoptPlan, approved: string): ProblemError =>
  new ProblemError([
    {
      reason: 'PlanNotApproved',
      message: `the plan is ${digest}, not the one that --approve names`,
      value: approved,
      remedy: 'look at the plan again, and approve the digest that it shows',
    },
  ]);

async function carryOut(
  invocation: Invocation,
  client: KubeClient,
  plan: AdoptPlan,
  { file, limitMs }: { readonly file: string; readonly limitMs: number },
): Promise<void> {
  const { clock, signal, cwd, out, err } = invocation;
  const path = resolve(cwd, file);
  const outcome = await carryOutAdoption(
    {
      client,
      clock,
      signal,
      limitMs,
      audit: (entry) => appendAudit(path, clock, entry as unknown as JsonObject),
      tell: err,
    },
    plan,
  );
  if (outcome.type === 'failed') throw new FailedWithProblems(outcome.problems);
  const { namespace, name } = plan.service;
  out(
    `Service ${namespace}/${name} has ${plan.ip.text} from claim ${plan.claim.name} now; what was done is in ${file}`,
  );
}
