import { type RunResult, run } from '../tools/process.ts';

export interface CommandOptions {
  /** Milliseconds after which the command is killed; 30 s by default. */
  readonly limitMs?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  readonly signal?: AbortSignal;
}

/** The only variables that programs of a cluster get: nothing of the caller's proxies or kubeconfig leaks in. */
export const plainEnvironment: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
};

/** Runs `argv` to its end; a non-zero exit is an answer, a command that can not start or is late throws. */
export function runCommand(argv: readonly string[], options: CommandOptions = {}): Promise<RunResult> {
  const [command = '', ...args] = argv;
  return run(command, args, {
    limitMs: options.limitMs ?? 30_000,
    env: { ...plainEnvironment, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.input === undefined ? {} : { input: options.input }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

/** Runs `argv` and answers its output. @throws Error with what it printed when it does not end with 0. */
export async function mustRun(argv: readonly string[], options: CommandOptions = {}): Promise<string> {
  const result = await runCommand(argv, options);
  if (result.code === 0) return result.stdout;
  const said = (result.stderr || result.stdout).trim().slice(-2000);
  throw new Error(
    `${argv.join(' ')}: ${result.code === null ? `killed by ${result.signal}` : `exit ${result.code}`}: ${said}`,
  );
}
