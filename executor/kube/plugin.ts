/** Programs that a kubeconfig names for credentials. The library that runs them knows no limit, and no way to end them. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import type { KubeConfig } from '@kubernetes/client-node';
import { formatDuration } from '../../constructs/lib/duration.ts';

interface PluginLimits {
  /** A person may have to log in meanwhile. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
}

type Start = (command: string, args: readonly string[] | undefined, options: SpawnOptions) => ChildProcess;

/** The part of the library that starts programs; it takes another way to do so, which its types do not tell. */
interface Starter {
  execFn?: Start;
}

/** Lets every plug-in of a configuration end with the limit or the signal. Answers which one the limit ended. */
export function boundPlugins(config: KubeConfig, { limitMs, signal }: PluginLimits): () => string | undefined {
  let overdue: string | undefined;
  const start: Start = (command, args = [], options) => {
    overdue = undefined;
    const child = spawn(command, args, {
      ...options,
      timeout: limitMs,
      killSignal: 'SIGKILL',
      ...(signal === undefined ? {} : { signal }),
    });
    child.once('exit', (_code, by) => {
      if (by !== 'SIGKILL') return;
      // The library waits for both to close, and a program that the plug-in started may hold them open for ever.
      child.stdout?.destroy();
      child.stderr?.destroy();
      if (signal?.aborted !== true)
        overdue = `the credential plug-in ${command} gave no answer within ${formatDuration(limitMs)}`;
    });
    return child;
  };
  const { authenticators = [] } = config as unknown as { authenticators?: readonly Starter[] };
  for (const one of authenticators) if (one.execFn !== undefined) one.execFn = start;
  return () => overdue;
}
