import { explainReason, findReason, reasons } from '../../constructs/api/reasons.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';

/** `keelson explain REASON`: what a reason means and what to do. */
export async function run(invocation: Invocation, options: CommonOptions, name: string): Promise<ExitCode> {
  const lower = name.toLowerCase();
  const reason = findReason(name) ?? reasons.find((entry) => entry.reason.toLowerCase() === lower);
  if (reason === undefined) {
    const close = reasons.map((entry) => entry.reason).filter((known) => known.toLowerCase().includes(lower));
    throw new ProblemError([
      {
        reason: 'UnknownReason',
        message: `there is no reason ${name}`,
        remedy: close.length > 0 ? `did you mean ${close.join(', ')}?` : 'docs/reference lists all reasons',
      },
    ]);
  }
  print(invocation, options.output, reason, () => explainReason(reason));
  return exitCodes.done;
}
