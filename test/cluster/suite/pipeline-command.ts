import { createInterface } from 'node:readline';
import { exited, kill9, spawnTied } from '../../tools/process.ts';

/** How a program ended and what it said, both outputs also together in the order in which the lines came. */
export interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly text: string;
}

/** A program that runs. */
export interface Command {
  readonly ended: Promise<Said>;
  /** Settles with the first line of either output that matches, said before or after. @throws when it ends without. */
  said(line: RegExp): Promise<string>;
  /** Ends it with SIGTERM, and with SIGKILL if it does not. */
  stop(): Promise<Said>;
}

const graceMs = 5_000;

/** Starts a program that ends with this process. */
export function startCommand(
  argv: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Command {
  const [program = '', ...args] = argv;
  const child = spawnTied(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: { readonly from: 'out' | 'err'; readonly text: string }[] = [];
  const waiting = new Set<() => void>();
  for (const [from, stream] of [
    ['out', child.stdout],
    ['err', child.stderr],
  ] as const) {
    if (stream === null) throw new Error('no output to read');
    createInterface({ input: stream }).on('line', (text) => {
      lines.push({ from, text });
      for (const look of waiting) look();
    });
  }
  const textOf = (from?: 'out' | 'err'): string =>
    lines
      .filter((line) => from === undefined || line.from === from)
      .map(({ text }) => text)
      .join('\n');
  const ended = exited(child).then(({ code }) => ({ code, out: textOf('out'), err: textOf('err'), text: textOf() }));
  return {
    ended,
    said: (line) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find(({ text }) => line.test(text));
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found.text);
        };
        waiting.add(look);
        look();
        ended.then(({ code, text }) => reject(new Error(`it ended (${code}) having said:\n${text}`)), reject);
      }),
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => void kill9(child), graceMs);
      try {
        return await ended;
      } finally {
        clearTimeout(late);
      }
    },
  };
}
