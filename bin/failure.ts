import type { JsonObject } from '../constructs/lib/json.ts';
import { formatProblems, type Problem, ProblemError, sortProblems } from '../constructs/lib/problems.ts';
import { redact } from '../constructs/lib/redact.ts';
import { WaitTimeout } from '../constructs/lib/wait.ts';
import { type ExitCode, exitCodes } from './invocation.ts';

/** A command that was carried out as far as it goes, and what went wrong with it: the input is not to blame. */
export class FailedWithProblems extends Error {
  override readonly name = 'FailedWithProblems';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(formatProblems(problems));
    this.problems = problems;
  }
}

/** What an error means: what a person is told, what a program is told, and the exit status. */
export interface Failure {
  readonly text: string;
  readonly problems: readonly Problem[];
  readonly code: ExitCode;
}

const plain = (message: string): Failure => {
  const text = redact(message);
  return { text, problems: [{ reason: 'CommandFailed', message: text }], code: exitCodes.failed };
};

export function failure(error: unknown, signal: AbortSignal): Failure {
  if (error instanceof ProblemError || error instanceof FailedWithProblems) {
    const code = error instanceof ProblemError ? exitCodes.invalid : exitCodes.failed;
    return { text: formatProblems(error.problems), problems: sortProblems(error.problems), code };
  }
  if (signal.aborted) return plain('cancelled');
  if (error instanceof WaitTimeout) return plain(error.message);
  return plain(
    error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : String(error),
  );
}

/** Problems as a program reads them: one JSON object on one line, with the same redaction as for people. */
export function problemsJson(problems: readonly Problem[]): string {
  const safe = problems.map((problem): JsonObject => {
    const texts = Object.entries(problem).map(([key, value]) => [
      key,
      typeof value === 'string' ? redact(value) : value,
    ]);
    return Object.fromEntries(texts) as JsonObject;
  });
  return JSON.stringify({ problems: safe });
}

/** Whether a command line, however wrong it is, asks for JSON. */
export const asksForJson = (args: readonly string[]): boolean =>
  args.some((arg, n) => /^(-o|--output=)json$/.test(arg) || (/^(-o|--output)$/.test(arg) && args[n + 1] === 'json'));
