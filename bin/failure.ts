import { formatProblems, ProblemError } from '../constructs/lib/problems.ts';
import { redact } from '../constructs/lib/redact.ts';
import { WaitTimeout } from '../constructs/lib/wait.ts';
import { type ExitCode, exitCodes } from './invocation.ts';

/** What a person is told about an error, and the exit status it means. */
export function failure(error: unknown, signal: AbortSignal): { text: string; code: ExitCode } {
  if (error instanceof ProblemError) return { text: formatProblems(error.problems), code: exitCodes.invalid };
  if (signal.aborted) return { text: 'cancelled', code: exitCodes.failed };
  if (error instanceof WaitTimeout) return { text: redact(error.message), code: exitCodes.failed };
  const text =
    error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : String(error);
  return { text: redact(text), code: exitCodes.failed };
}
