import { redact } from './redact.ts';

/**
 * One thing that is wrong with an input: where it is, what was found and what to do. `reason` is a word of the table of
 * reasons; `path` a field path or JSON pointer; `line` and `column` count from 1.
 */
export interface Problem {
  readonly reason: string;
  readonly message: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  readonly object?: string;
  readonly path?: string;
  readonly value?: string;
  readonly remedy?: string;
}

function place(problem: Problem): string {
  if (problem.file === undefined) return '';
  const at =
    problem.line === undefined ? '' : `:${problem.line}${problem.column === undefined ? '' : `:${problem.column}`}`;
  return `${problem.file}${at}`;
}

/** One line (and one for the remedy) that a person can act on. */
export function formatProblem(problem: Problem): string {
  const where = [place(problem), problem.object, problem.path].filter((part) => part !== undefined && part !== '');
  const found = problem.value === undefined ? '' : ` (found ${JSON.stringify(redact(problem.value).slice(0, 200))})`;
  const line = `${where.length > 0 ? `${where.join(' ')}: ` : ''}${redact(problem.message)}${found} [${problem.reason}]`;
  return problem.remedy === undefined ? line : `${line}\n    remedy: ${redact(problem.remedy)}`;
}

/** All problems, in the order of file, line and object, with a count at the head. */
export function formatProblems(problems: readonly Problem[]): string {
  const sorted = sortProblems(problems);
  const head = sorted.length === 1 ? '1 problem' : `${sorted.length} problems`;
  return [`${head}:`, ...sorted.map((problem) => `  ${formatProblem(problem)}`)].join('\n');
}

/** Problems without doubles, ordered by file, line, column, object, path and reason. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  const key = (problem: Problem): string =>
    [
      problem.file ?? '',
      String(problem.line ?? 0).padStart(9, '0'),
      String(problem.column ?? 0).padStart(6, '0'),
      problem.object ?? '',
      problem.path ?? '',
      problem.reason,
      problem.message,
    ].join('\u0000');
  const byKey = new Map(problems.map((problem) => [key(problem), problem]));
  return [...byKey.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, problem]) => problem);
}

/** Invalid input: every problem found, none of them acted upon. Command lines exit with 2 on it. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(formatProblems(problems));
    this.problems = problems;
  }
}

/** Throws a {@link ProblemError} unless `problems` is empty. */
export function refuseProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ProblemError(problems);
}
