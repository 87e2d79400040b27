import { type RunResult, run } from '../tools/process.ts';
import type { ApiServerHandle } from './server.ts';

export interface KubectlOptions {
  readonly input?: string;
  /** Another client configuration than the admin's. */
  readonly kubeconfig?: string;
  readonly limitMs?: number;
}

/** Runs kubectl against the server; a non-zero exit is an answer. */
export function kubectl(
  server: ApiServerHandle,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<RunResult> {
  return run(server.kubectl, ['--kubeconfig', options.kubeconfig ?? server.kubeconfig, ...args], {
    env: { HOME: server.directory, PATH: '/usr/bin:/bin' },
    limitMs: options.limitMs ?? 60_000,
    ...(options.input === undefined ? {} : { input: options.input }),
  });
}
