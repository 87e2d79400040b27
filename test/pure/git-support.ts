import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Real git repositories in a temporary folder, without the settings of the person who runs the tests. */
export interface Playground {
  readonly root: string;
  readonly env: Record<string, string>;
  git(directory: string, ...args: string[]): string;
  /** A repository with one commit. */
  repository(name: string, files: Record<string, string>): string;
  bare(name: string): string;
  commit(directory: string, files: Record<string, string>, message: string): string;
  dispose(): void;
}

export function playground(): Playground {
  const root = mkdtempSync(join(tmpdir(), 'keelson-git-'));
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: root,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: join(root, 'gitconfig'),
  };
  writeFileSync(
    env.GIT_CONFIG_GLOBAL,
    '[user]\n  name = Tester\n  email = tester@example.com\n[core]\n  autocrlf = true\n',
  );
  const git = (directory: string, ...args: string[]): string =>
    execFileSync('git', args, { cwd: directory, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  const commit: Playground['commit'] = (directory, files, message) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    }
    git(directory, 'add', '--all');
    git(directory, 'commit', '--quiet', '--allow-empty', '-m', message);
    return git(directory, 'rev-parse', 'HEAD');
  };
  return {
    root,
    env,
    git,
    commit,
    repository(name, files) {
      const directory = join(root, name);
      mkdirSync(directory);
      git(directory, 'init', '--quiet', '--initial-branch=main');
      commit(directory, files, 'first');
      return directory;
    },
    bare(name) {
      git(root, 'init', '--quiet', '--bare', '--initial-branch=main', name);
      return join(root, name);
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}
