import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Problem, ProblemError } from '../../constructs/lib/problems.ts';
import { run } from './process.ts';

/** From this version on, Go fetches by itself the newer toolchain that a go.mod asks for. */
const oldestGo = [1, 21] as const;

/** True when an executable of that name is on PATH or in the usual system folders. */
export function onPath(name: string, env: NodeJS.ProcessEnv): boolean {
  const folders = [...(env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return folders.some((folder) => {
    if (folder === '') return false;
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** What is wrong with this machine's Go, or undefined. */
export async function goProblem(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<Problem | undefined> {
  const remedy = `install Go ${oldestGo.join('.')} or newer and put it on PATH`;
  if (!onPath('go', env)) return { reason: 'MissingTool', message: 'Go is needed to build the test tools', remedy };
  const { stdout } = await run('go', ['env', 'GOVERSION'], {
    env,
    limitMs: 60_000,
    ...(signal === undefined ? {} : { signal }),
  });
  const [, major, minor] = /go([0-9]+)\.([0-9]+)/.exec(stdout) ?? [];
  const have = Number(major) * 1000 + Number(minor);
  if (have >= oldestGo[0] * 1000 + oldestGo[1]) return undefined;
  return { reason: 'MissingTool', message: 'Go is too old to build the test tools', value: stdout.trim(), remedy };
}

/** @throws ProblemError when Go is missing or too old. */
export async function requireGo(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  const problem = await goProblem(env, signal);
  if (problem !== undefined) throw new ProblemError([problem]);
}
