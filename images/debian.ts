import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sha256Hex } from '../constructs/lib/digest.ts';

const run = promisify(execFile);
const limits = { timeout: 600_000, maxBuffer: 64 << 20 };

/** Left out with all that only they need: interpreters, and what serves a booted, administered system. */
const leftOut =
  /^(python3|libpython|perl|lib.*-perl$|libperl|debconf|cdebconf|dpkg$|adduser$|passwd$|libpam|init-system-helpers$|lsb-|mailcap$|mime-support$|media-types$|usrmerge$|usr-is-merged$|original-awk$|gawk$|install-info$|base-files$|base-passwd$|gcc-[0-9]+-base$|debianutils$|util-linux-extra$|tar$|libc-bin$)/;

/** Parts of packages that no program reads. */
const unread = ['doc', 'man', 'info', 'locale', 'lintian', 'bash-completion', 'bug', 'menu', 'icons', 'zsh'].map(
  (name) => `./usr/share/${name}`,
);
const unreadPatterns = [...unread, './usr/lib/*/gconv'];

/** Top directories that are links into /usr on a merged system. */
const merged = ['bin', 'sbin', 'lib', 'lib64'];

/** Names of what `apt-cache depends` lists as needed. An alternative after `|` counts: the first one is listed. */
export function parseDepends(output: string): string[] {
  return output.split('\n').flatMap((line) => {
    const [, name] = /^\s+\|?(?:Pre)?Depends: ([a-z0-9][a-z0-9+.-]*)(?::\S+)?$/.exec(line) ?? [];
    return name === undefined ? [] : [name];
  });
}

/** The packages and everything they depend on, without what {@link leftOut} names; sorted. */
async function closure(packages: readonly string[]): Promise<string[]> {
  const known = new Set<string>();
  let next = [...packages];
  while (next.length > 0) {
    for (const name of next) known.add(name);
    const arguments_ = [
      'depends',
      '--no-recommends',
      '--no-suggests',
      '--no-conflicts',
      '--no-breaks',
      '--no-replaces',
    ];
    const { stdout } = await run('apt-cache', [...arguments_, '--no-enhances', ...next], limits);
    next = [...new Set(parseDepends(stdout))].filter((name) => !known.has(name) && !leftOut.test(name));
  }
  return [...known].sort();
}

/**
 * A root directory made of Debian packages and what they depend on, unpacked and not installed: no script runs and the
 * host stays as it is. It is kept below `cache` for these packages and this release of Debian; who wants newer versions
 * of them removes it.
 * @returns the directory. @throws with apt's words when a package does not exist or can not be fetched.
 */
export async function debianRoot(packages: readonly string[], cache: string): Promise<string> {
  const release = await readFile('/etc/debian_version', 'utf8');
  const key = [release.trim(), process.arch, leftOut.source, ...unreadPatterns, ...packages.toSorted()].join('\n');
  const place = join(cache, `debian-${sha256Hex(key).slice(0, 12)}`);
  const root = join(place, 'root');
  if (existsSync(root)) return root;
  const fresh = join(place, `new-${randomUUID()}`);
  const [archives, tree] = [join(fresh, 'archives'), join(fresh, 'root')];
  try {
    await mkdir(archives, { recursive: true });
    await mkdir(tree);
    for (const name of merged) {
      await mkdir(join(tree, 'usr', name), { recursive: true });
      await symlink(`usr/${name}`, join(tree, name));
    }
    await download(await closure(packages), archives);
    for (const file of (await readdir(archives)).sort()) await unpack(join(archives, file), tree);
    // Another process may have been faster; its directory is as good.
    await rename(tree, root).catch((error: unknown) => {
      if (!existsSync(root)) throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return root;
}

async function download(packages: readonly string[], directory: string): Promise<void> {
  const fetch = () =>
    run('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', 'download', ...packages], { ...limits, cwd: directory });
  await fetch().catch(async () => {
    // A machine that never asked has no lists of packages, or old ones.
    await run('apt-get', ['update', '-q'], limits);
    await fetch();
  });
}

async function unpack(archive: string, tree: string): Promise<void> {
  const options = ['--keep-directory-symlink', '--no-same-owner', ...unreadPatterns.map((path) => `--exclude=${path}`)];
  const script = 'set -o pipefail; archive=$1; shift; dpkg-deb --fsys-tarfile "$archive" | tar -x "$@"';
  await run('bash', ['-c', script, 'unpack', archive, ...options, '-C', tree], limits);
}
