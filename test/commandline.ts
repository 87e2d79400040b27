/** The command line inside of this process, as a person would run it. */
import * as assert from 'uvu/assert';
import type { ExitCode } from '../bin/invocation.ts';
import { main } from '../bin/program.ts';
import { type Clock, systemClock } from '../constructs/lib/clock.ts';

/** What came of a command. */
export interface Said {
  readonly code: ExitCode;
  /** Results, line by line. */
  readonly out: string;
  /** Progress, warnings and errors. */
  readonly err: string;
}

export interface Desk {
  readonly cwd: string;
  /** The whole environment: nothing of this process's own is seen. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Cancels the command; by itself it ends after two minutes. */
  readonly signal?: AbortSignal;
  /** By default that of the machine. */
  readonly clock?: Clock;
}

const limitMs = 120_000;

/** Runs `keelson ARGS`. Nothing throws that a command would have told. */
export async function runKeelson(
  args: readonly string[],
  { cwd, env, signal = AbortSignal.timeout(limitMs), clock = systemClock }: Desk,
): Promise<Said> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await main(args, {
    env,
    cwd,
    clock,
    random: Math.random,
    signal,
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    terminal: false,
  });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** What was said, of a command that has to end well. */
export function done(said: Said): Said {
  assert.is(said.code, 0, `${said.out}\n${said.err}`);
  return said;
}
