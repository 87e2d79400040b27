import { spawn } from 'node:child_process';

export interface RunOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Takes each line the program writes. */
  readonly onLine: (line: string) => void;
}

/** Runs a program to its end, its lines passed on as they come. @throws Error with its exit code. */
export function runProgram(argv: readonly string[], options: RunOptions): Promise<void> {
  const [program = '', ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: options.signal,
    });
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) options.onLine(line);
      });
      stream.on('end', () => {
        if (rest !== '') options.onLine(rest);
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${argv.join(' ')} ended with ${code ?? 'a signal'}`));
    });
  });
}
