import { readFile, rm, writeFile } from 'node:fs/promises';
import type { Problem } from '../../constructs/lib/problems.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { withLock } from './lock.ts';
import { onPath } from './prerequisites.ts';
import { run } from './process.ts';
import type { ToolOptions } from './store.ts';

const policyFile = '/usr/sbin/policy-rc.d';
const policyMark = '# keelson: no services while its installation runs';
const aptOptions = ['-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300'];

/** Those of the packages that dpkg does not know as installed; all of them where there is no dpkg. */
export async function missingDebian(packages: readonly string[], options: ToolOptions = {}): Promise<string[]> {
  const env = options.env ?? process.env;
  if (packages.length === 0) return [];
  if (!onPath('dpkg-query', env)) return [...packages];
  const query = ['-W', '-f', `\${Package} \${db:Status-Status}\n`, ...packages];
  const { stdout } = await run('dpkg-query', query, { env, limitMs: 30_000 });
  const installed = new Set(
    stdout.split('\n').flatMap((line) => (line.endsWith(' installed') ? [line.split(' ')[0]] : [])),
  );
  return packages.filter((name) => !installed.has(name));
}

/**
 * What stops {@link ensureDebian} on this machine: every missing package as a problem where packages can not be
 * installed (no root, no apt); none where they are there or can be.
 */
export async function debianProblems(packages: readonly string[], options: ToolOptions = {}): Promise<Problem[]> {
  const missing = await missingDebian(packages, options);
  const root = process.getuid?.() === 0;
  if (missing.length === 0 || (root && onPath('apt-get', options.env ?? process.env))) return [];
  const why = root ? 'there is no apt-get here' : 'this user is not root';
  const remedy = `as root: apt-get install --no-install-recommends ${missing.join(' ')}`;
  return missing.map((name) => ({
    reason: 'MissingPackage',
    object: name,
    message: `the Debian package is not installed and ${why}`,
    remedy,
  }));
}

/**
 * Installs what is missing of the named Debian packages, without starting their services.
 * @throws ProblemError with every missing package where it can not install; Error when apt-get fails.
 */
export async function ensureDebian(packages: readonly string[], options: ToolOptions = {}): Promise<void> {
  const problems = await debianProblems(packages, options);
  if (problems.length > 0) throw new ProblemError(problems);
  if ((await missingDebian(packages, options)).length === 0) return;
  const onWait = (): void => options.onProgress?.('waiting for another process that installs Debian packages');
  await withLock(
    'debian',
    { onWait, ...(options.signal === undefined ? {} : { signal: options.signal }) },
    async () => {
      const missing = await missingDebian(packages, options);
      if (missing.length === 0) return;
      options.onProgress?.(`installing Debian packages: ${missing.join(', ')}`);
      const began = performance.now();
      await withoutServices(async () => {
        await apt(['update', '-q'], options);
        await apt(['install', ...aptOptions, ...missing], options);
      });
      const still = await missingDebian(packages, options);
      if (still.length > 0) throw new Error(`apt-get succeeded, yet dpkg does not know ${still.join(', ')}`);
      options.onProgress?.(
        `installed ${missing.length} Debian packages in ${Math.round((performance.now() - began) / 1000)} s`,
      );
    },
  );
}

async function apt(args: readonly string[], options: ToolOptions): Promise<void> {
  const result = await run('apt-get', args, {
    env: { ...(options.env ?? process.env), DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
    limitMs: 10 * 60_000,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  if (result.code === 0) return;
  const tail = `${result.stdout}${result.stderr}`.split('\n').slice(-20).join('\n');
  throw new Error(`apt-get ${args[0]} failed (${result.code}):\n${tail}`);
}

/**
 * Keeps the packages' services from starting through a policy file that only speaks while this process lives, so that
 * one that is left behind by a kill changes nothing. A policy file of somebody else stays as it is.
 */
async function withoutServices(work: () => Promise<void>): Promise<void> {
  const present = await readFile(policyFile, 'utf8').catch(() => undefined);
  if (present !== undefined && !present.includes(policyMark)) return work();
  const script = `#!/bin/sh\n${policyMark}\nkill -0 ${process.pid} 2>/dev/null && exit 101\nexit 0\n`;
  await writeFile(policyFile, script, { mode: 0o755 });
  try {
    await work();
  } finally {
    await rm(policyFile, { force: true });
  }
}
