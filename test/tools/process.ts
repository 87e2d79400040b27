import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/**
 * Starts a program that the kernel kills as soon as this process dies, however it dies (kill -9 included). The program
 * keeps the process id of the child. Call it from the main thread only: the kernel watches the starting thread.
 */
export function spawnTied(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], options);
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Settles when the child has ended and its output is read to the end. @throws when it could not be started. */
export function exited(child: ChildProcess): Promise<Exit> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
}

/** Kills one child by its id with SIGKILL and waits until it is gone. */
export async function kill9(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  await gone;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
  /** Milliseconds after which the program is killed. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
}

export interface RunResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end and returns what it printed; a non-zero exit is an answer, not an exception. */
export async function run(command: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const limit = AbortSignal.timeout(options.limitMs);
  const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
  const child = spawnTied(command, args, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const onAbort = (): void => {
    child.kill('SIGKILL');
  };
  signal.addEventListener('abort', onAbort, { once: true });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(options.input ?? '');
  try {
    const exit = await exited(child);
    if (options.signal?.aborted === true) options.signal.throwIfAborted();
    if (limit.aborted) throw new Error(`${command} ${args.slice(0, 3).join(' ')}: no end after ${options.limitMs} ms`);
    return { ...exit, stdout: out(), stderr: err() };
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}
