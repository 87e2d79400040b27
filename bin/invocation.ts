import type { Clock, Random } from '../constructs/lib/clock.ts';

/** Everything that a command takes from the process it runs in. Commands read nothing else of it. */
export interface Invocation {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Results; a line end is added. */
  out(text: string): void;
  /** Progress, warnings and errors; a line end is added. */
  err(text: string): void;
  /** Whether results go to a terminal. */
  readonly terminal: boolean;
  /** How wide the terminal is, in characters; absent where there is none. */
  readonly columns?: number;
  /** The file that was started, for threads of the same program; absent where the program runs inside of another. */
  readonly program?: string;
}

/** `0` done, `1` failed, `2` usage or invalid input, `3` differs. */
export const exitCodes = { done: 0, failed: 1, invalid: 2, differs: 3 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const outputFormats = ['table', 'json', 'yaml'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** Options that every command has. */
export interface CommonOptions {
  readonly cluster?: readonly string[];
  readonly output: OutputFormat;
  readonly kubeconfig?: string;
  readonly context?: string;
}
