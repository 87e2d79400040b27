import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatDuration, parseDuration } from '../../constructs/lib/duration.ts';
import { tiedDirectory } from '../tools/directory.ts';
import { exited, spawnTied } from '../tools/process.ts';
import { endLeftovers } from './leftovers.ts';

export interface FileResult {
  readonly file: string;
  readonly passed: number;
  /** Failed tests, and one for each problem that is no test: a crash, a time-out, no tests at all. */
  readonly failed: number;
  readonly problems: readonly string[];
  readonly durationMs: number;
  readonly output: string;
}

export interface FileOptions {
  readonly top: string;
  readonly env: NodeJS.ProcessEnv;
  /** A limit on top of the file's own: what is left of the layer's budget. */
  readonly budgetMs?: number;
  readonly signal?: AbortSignal;
}

const usualLimitMs = 120_000;
/** What says why a hook failed. */
const loud = new URL('./loud.ts', import.meta.url).href;
const maxOutput = 4 * 1024 * 1024;

/** A file's own time limit: 120 s, or what its first lines say in a comment `// time limit: 300s`. */
export function timeLimit(text: string): number {
  const head = text.split('\n').slice(0, 5).join('\n');
  const [, limit] = /^\/\/ time limit: (\S+)$/m.exec(head) ?? [];
  return limit === undefined ? usualLimitMs : parseDuration(limit);
}

/**
 * Runs one test file in a process group of its own, with a temporary folder of its own. At its limit the group is
 * killed. What it leaves running is killed and counts as a failure.
 */
export async function runFile(file: string, options: FileOptions): Promise<FileResult> {
  const began = performance.now();
  const own = timeLimit(readFileSync(join(options.top, file), 'utf8'));
  const limitMs = Math.min(own, options.budgetMs ?? own);
  const temporary = await tiedDirectory('keelson-test-');
  const mark = randomUUID();
  try {
    const outcome = await execute(file, limitMs, options, {
      ...options.env,
      TMPDIR: temporary.path,
      KEELSON_TEST_FILE_ID: mark,
    });
    const left = await endLeftovers(mark);
    const counts = readCounts(outcome.output);
    const problems = findProblems(outcome, counts, limitMs, left);
    return {
      file,
      passed: counts.passed,
      failed: counts.total - counts.passed + problems.length,
      problems,
      durationMs: performance.now() - began,
      output: outcome.output,
    };
  } finally {
    await temporary.remove();
  }
}

interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  readonly output: string;
}

async function execute(file: string, limitMs: number, options: FileOptions, env: NodeJS.ProcessEnv): Promise<Outcome> {
  const child = spawnTied(process.execPath, ['--disable-warning=ExperimentalWarning', '--import', loud, file], {
    cwd: options.top,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    if (size <= maxOutput) chunks.push(chunk);
  };
  child.stdout?.on('data', take);
  child.stderr?.on('data', take);
  let timedOut = false;
  const killGroup = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup();
  }, limitMs);
  options.signal?.addEventListener('abort', killGroup, { once: true });
  try {
    const exit = await ended(child, killGroup);
    const cancelled = options.signal?.aborted === true;
    return { ...exit, timedOut, cancelled, output: Buffer.concat(chunks).toString('utf8') };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', killGroup);
  }
}

/** The end of the file's own process; what of its group still holds the output open is killed a second later. */
async function ended(child: ReturnType<typeof spawnTied>, killGroup: () => void): ReturnType<typeof exited> {
  let grace: NodeJS.Timeout | undefined;
  child.once('exit', () => {
    grace = setTimeout(() => {
      killGroup();
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, 1000);
  });
  try {
    return await exited(child);
  } finally {
    clearTimeout(grace);
  }
}

interface Counts {
  readonly total: number;
  readonly passed: number;
  readonly skipped: number;
}

/** The totals that uvu prints at the end of a file. */
export function readCounts(output: string): Counts {
  const last = (word: string): number => {
    const found = [...output.matchAll(new RegExp(`^ {2}${word}: +([0-9]+)$`, 'gm'))].at(-1);
    return Number(found?.[1] ?? 0);
  };
  return { total: last('Total'), passed: last('Passed'), skipped: last('Skipped') };
}

function findProblems(outcome: Outcome, counts: Counts, limitMs: number, left: readonly string[]): string[] {
  const problems = left.map((program) => `left running: ${program}`);
  const failedTests = counts.total > counts.passed;
  if (outcome.timedOut) problems.push(`killed at its limit of ${formatDuration(limitMs)}`);
  else if (outcome.cancelled) problems.push('the run was cancelled');
  else if (outcome.signal !== null) problems.push(`ended by ${outcome.signal}`);
  else if (outcome.output.includes('Exiting early'))
    problems.push('ended inside a test that waits for what never comes');
  else if (counts.total === 0) problems.push('ran no test: is test.run() missing?');
  else if (outcome.code !== 0 && !failedTests) problems.push(`all tests passed, yet it ended with ${outcome.code}`);
  else if (outcome.code === 0 && failedTests) problems.push('tests failed, yet it ended with 0');
  if (counts.skipped > 0) problems.push(`${counts.skipped} tests are skipped`);
  return problems;
}
