import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runKeelson, type Said } from '../commandline.ts';

/** The command line in the repository of specs of its own, with the plain cluster in it. */
export interface CommandBed {
  /** Temporary folder; the specs are in `specs` below. */
  readonly root: string;
  readonly specs: string;
  /** The cluster's folder. */
  readonly folder: string;
  readonly env: Record<string, string>;
  keelson(args: readonly string[], signal?: AbortSignal): Promise<Said>;
  git(...args: string[]): string;
  /** Changes a file of the cluster's folder. */
  edit(path: string, change: (text: string) => string): void;
  commit(message: string): void;
  dispose(): void;
}

/** @param more environment beside PATH and HOME. */
export function commandBed(more: Record<string, string> = {}): CommandBed {
  const root = mkdtempSync(join(tmpdir(), 'keelson-command-'));
  const specs = join(root, 'specs');
  const folder = join(specs, 'clusters/example');
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: root,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: join(root, 'gitconfig'),
    ...more,
  };
  writeFileSync(env.GIT_CONFIG_GLOBAL, '[user]\n  name = Tester\n  email = tester@example.com\n');
  execFileSync('git', ['init', '--quiet', '--initial-branch=main', specs], { env });
  cpSync(join(import.meta.dirname, '../pure/plain-cluster'), folder, { recursive: true });
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: specs, env, encoding: 'utf8' }).trim();
  return {
    root,
    specs,
    folder,
    env,
    git,
    keelson: (args, signal = new AbortController().signal) => runKeelson(args, { env, cwd: specs, signal }),
    edit(path, change) {
      const file = join(folder, path);
      writeFileSync(file, change(readFileSync(file, 'utf8')));
    },
    commit(message) {
      git('add', '--all');
      git('commit', '--quiet', '-m', message);
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}
