import { spawn } from 'node:child_process';
import { formatDuration } from '../../constructs/lib/duration.ts';

/** A program to run: no shell, exactly the environment given, bounded in time and output. */
export interface RunRequest {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Written to standard input, which is then closed. */
  readonly input?: string;
  readonly limitMs: number;
  /** Cap of standard output and of standard error, in bytes each. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

/** How a program ended. Output is unredacted: callers redact what they tell. */
export type RunOutcome =
  | { readonly kind: 'exited'; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: 'notStarted'; readonly code: string; readonly message: string }
  | { readonly kind: 'stopped'; readonly message: string; readonly stderr: string };

/** Collects a stream up to a cap and says when it was exceeded. */
function collector(maxBytes: number, exceeded: () => void): { add(chunk: Buffer): void; text(): string } {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk) {
      size += chunk.length;
      if (size > maxBytes) exceeded();
      else chunks.push(chunk);
    },
    text: () => Buffer.concat(chunks).toString('utf8'),
  };
}

/**
 * Runs a program to its end. Its process group is killed at the limit, when it writes too much, and on abort.
 * @throws the signal's reason on abort.
 */
export async function run(request: RunRequest): Promise<RunOutcome> {
  request.signal?.throwIfAborted();
  const outcome = await new Promise<RunOutcome>((resolve) => {
    const child = spawn(request.program, [...request.args], {
      env: { ...request.env },
      stdio: 'pipe',
      detached: true,
      ...(request.cwd === undefined ? {} : { cwd: request.cwd }),
    });
    let stopped: string | undefined;
    const stop = (why: string): void => {
      stopped ??= why;
      // The whole group: a helper may have started others that would keep our pipes open.
      if (child.pid !== undefined)
        try {
          process.kill(-child.pid, 'SIGKILL');
        } catch {
          // It ended by itself in the meantime.
        }
    };
    const stdout = collector(request.maxBytes, () => stop(`it wrote more than ${request.maxBytes} bytes`));
    const stderr = collector(request.maxBytes, () => stop(`it wrote more than ${request.maxBytes} bytes of messages`));
    const timer = setTimeout(() => stop(`it did not end within ${formatDuration(request.limitMs)}`), request.limitMs);
    const cancel = (): void => stop('cancelled');
    request.signal?.addEventListener('abort', cancel, { once: true });
    const settle = (result: RunOutcome): void => {
      clearTimeout(timer);
      request.signal?.removeEventListener('abort', cancel);
      resolve(result);
    };
    child.stdout.on('data', (chunk: Buffer) => stdout.add(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.add(chunk));
    // A program that ends without reading its input closes the pipe; how it ended is what counts.
    child.stdin.on('error', () => undefined);
    child.stdin.end(request.input ?? '');
    child.on('error', (error: NodeJS.ErrnoException) =>
      settle({ kind: 'notStarted', code: error.code ?? '', message: error.message }),
    );
    child.on('close', (code, signal) => {
      if (stopped !== undefined) settle({ kind: 'stopped', message: stopped, stderr: stderr.text() });
      else if (code === null)
        settle({ kind: 'stopped', message: `it was ended by ${signal ?? 'a signal'}`, stderr: stderr.text() });
      else settle({ kind: 'exited', code, stdout: stdout.text(), stderr: stderr.text() });
    });
  });
  request.signal?.throwIfAborted();
  return outcome;
}
