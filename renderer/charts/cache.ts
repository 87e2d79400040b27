import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Digest, sha256Digest } from '../../constructs/lib/digest.ts';
import { makeFolder } from '../../constructs/lib/makefolder.ts';

/** What became of a lookup. `corrupt`: something was there, was not what its name says, and was removed. */
export type CacheRead =
  | { readonly kind: 'hit'; readonly bytes: Uint8Array }
  | { readonly kind: 'miss' }
  | { readonly kind: 'corrupt'; readonly message: string };

/** The archives seen so far, by digest. Losing it costs a download, nothing else. */
export interface ChartCache {
  /** The bytes, their digest verified again. */
  read(digest: Digest): Promise<CacheRead>;
  /** Keeps bytes; a message when that failed (full disk, no permission), in which case nothing half-written stays. */
  write(digest: Digest, bytes: Uint8Array): Promise<string | undefined>;
}

/** The file operations that a cache needs. */
export interface CacheFiles {
  /** The content, or undefined when there is no such file or it is larger than `maxBytes`. */
  read(path: string, maxBytes: number): Promise<Uint8Array | undefined>;
  /** Writes and flushes. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
}

/** The real file system. */
export const localFiles: CacheFiles = {
  async read(path, maxBytes) {
    try {
      if ((await stat(path)).size > maxBytes) return new Uint8Array();
      return await readFile(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  },
  async write(path, bytes) {
    const file = await open(path, 'wx', 0o644);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  rename,
  remove: (path) => rm(path, { force: true }),
  makeFolder,
};

function reason(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : String(error));
}

/** A cache in `folder`; `maxBytes` bounds what is read back. */
export function createChartCache(folder: string, maxBytes: number, files: CacheFiles = localFiles): ChartCache {
  const home = join(folder, 'sha256');
  const pathOf = (digest: Digest): string => join(home, digest.slice('sha256:'.length));

  return {
    async read(digest) {
      const path = pathOf(digest);
      let bytes: Uint8Array | undefined;
      try {
        bytes = await files.read(path, maxBytes);
      } catch (error) {
        return { kind: 'corrupt', message: `the cached ${digest} cannot be read (${reason(error)})` };
      }
      if (bytes === undefined) return { kind: 'miss' };
      if (sha256Digest(bytes) === digest) return { kind: 'hit', bytes };
      const removal = await files.remove(path).then(
        () => 'removed',
        (error) => `not removable: ${reason(error)}`,
      );
      return { kind: 'corrupt', message: `the cached ${digest} was damaged and is fetched again (${removal})` };
    },

    async write(digest, bytes) {
      const path = pathOf(digest);
      const part = `${path}.${randomUUID()}.part`;
      try {
        await files.makeFolder(home);
        await files.write(part, bytes);
        await files.rename(part, path);
        return undefined;
      } catch (error) {
        await files.remove(part).catch(() => undefined);
        return `the cache folder ${folder} cannot be written (${reason(error)})`;
      }
    },
  };
}
