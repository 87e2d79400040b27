import { type SimpleGitOptions, simpleGit } from 'simple-git';
import { redact } from '../../constructs/lib/redact.ts';
import { allowedVariables, gitEnvironment } from './environment.ts';

/** How git is run. */
export interface GitOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  /** Longest silence of a git command in milliseconds. Default 2 min. */
  readonly silenceMs?: number;
  /** Settings as `key=value`. */
  readonly config?: readonly string[];
}

/** A git command that failed. The message is git's own, without credentials. */
export class GitError extends Error {
  override readonly name = 'GitError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(redact(message));
    this.exitCode = exitCode;
  }
}

/** Git in one directory. */
export interface Git {
  readonly directory: string;
  /** Standard output. @throws GitError when the command fails; the signal's reason on abort. */
  run(...args: string[]): Promise<string>;
  /** Whether the command exits with 0; exit 1 is no. @throws GitError for any other exit. */
  test(...args: string[]): Promise<boolean>;
  /** The bytes of a blob. */
  blob(id: string): Promise<Buffer>;
}

/** Git never changes bytes on their way in or out, asks nobody, and signs nothing by accident of a personal setting. */
const fixedConfig = [
  'core.autocrlf=false',
  'core.quotepath=false',
  'core.symlinks=true',
  'commit.gpgsign=false',
  'gc.auto=0',
  'advice.detachedHead=false',
];

const failed = /^git exited with ([0-9]+)\n/;

export function openGit(directory: string, options: GitOptions): Git {
  const settings: Partial<SimpleGitOptions> = {
    baseDir: directory,
    maxConcurrentProcesses: 4,
    trimmed: false,
    timeout: { block: options.silenceMs ?? 120_000 },
    config: [...fixedConfig, ...(options.config ?? [])],
    allowEnvironment: allowedVariables,
    // The values come from the environment of the person who runs us, or from this file.
    unsafe: {
      allowUnsafeAskPass: true,
      allowUnsafeConfigPaths: true,
      allowUnsafeSshCommand: true,
    },
    ...(options.signal === undefined ? {} : { abort: options.signal }),
    // Without this a command that fails in silence counts as done.
    errors: (error, result) => {
      if (error !== undefined && !Buffer.isBuffer(error)) return error;
      if (result.exitCode === 0) return undefined;
      const said = Buffer.concat([...result.stdErr, ...result.stdOut])
        .toString()
        .trim();
      return Buffer.from(`git exited with ${result.exitCode}\n${said}`);
    },
  };
  const git = simpleGit(settings).env(gitEnvironment(options.env));
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    options.signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      options.signal?.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      if (/\bspawn git ENOENT\b/.test(message))
        throw new GitError('git was not found; install it, or correct PATH', -1);
      const exit = failed.exec(message);
      throw new GitError(exit === null ? message : message.slice(exit[0].length) || message, Number(exit?.[1] ?? -1));
    }
  };
  return {
    directory,
    run: (...args) => guarded(() => git.raw(args)),
    async test(...args) {
      try {
        await guarded(() => git.raw(args));
        return true;
      } catch (error) {
        if (error instanceof GitError && error.exitCode === 1) return false;
        throw error;
      }
    },
    blob: (id) => guarded(() => git.binaryCatFile(['blob', id])),
  };
}
