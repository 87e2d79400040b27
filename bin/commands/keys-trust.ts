import { ProblemError } from '../../constructs/lib/problems.ts';
import type { TrustOutcome } from '../../executor/courier/trust.ts';
import { changeTrust } from '../../executor/courier/trust-change.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';
import { readTrustFiles } from '../trust.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
}

/** `keelson keys trust FILE`: accepts payloads that this key signed, beside those of the keys trusted before. */
export async function run(invocation: Invocation, options: Options, file: string): Promise<ExitCode> {
  const add = await readTrustFiles(invocation, [file]);
  const { namespace } = options;
  const outcome = await withClient(invocation, options, (client) =>
    changeTrust({ client, namespace, signal: invocation.signal, add, remove: new Set() }),
  );
  return tellTrust(invocation, options, outcome);
}

/** Prints the keys that are trusted now. @throws ProblemError for what was asked for, FailedWithProblems for the rest. */
export function tellTrust(invocation: Invocation, { output }: CommonOptions, outcome: TrustOutcome): ExitCode {
  if ('problem' in outcome)
    throw outcome.kind === 'differs' ? new ProblemError([outcome.problem]) : new FailedWithProblems([outcome.problem]);
  const { kind, keyIds } = outcome;
  print(
    invocation,
    output,
    { changed: kind === 'written', trusted: keyIds },
    () => `trusted keys: ${keyIds.join(', ')}`,
  );
  return exitCodes.done;
}
