import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, readdir, readlink, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Digest } from '../constructs/lib/digest.ts';

interface EntryOwner {
  /** Path inside the image, without a leading slash. */
  readonly path: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** One file, directory or symbolic link of a layer. */
export type LayerEntry = EntryOwner &
  (
    | { readonly type: 'file'; readonly mode: number; readonly source: string }
    | { readonly type: 'file'; readonly mode: number; readonly content: string | Uint8Array }
    | { readonly type: 'directory'; readonly mode: number }
    | { readonly type: 'symlink'; readonly target: string }
  );

/** A blob of an OCI layout. */
export interface Blob {
  readonly digest: Digest;
  readonly size: number;
}

/** Everything below a directory of the host as entries below `prefix`, with owner root and the modes found. */
export async function treeEntries(directory: string, prefix = ''): Promise<LayerEntry[]> {
  const entries: LayerEntry[] = [];
  for (const name of (await readdir(directory)).sort()) {
    const source = join(directory, name);
    const path = prefix === '' ? name : `${prefix}/${name}`;
    const stat = await lstat(source);
    const mode = stat.mode & 0o7777;
    if (stat.isSymbolicLink()) entries.push({ type: 'symlink', path, target: await readlink(source) });
    else if (stat.isDirectory()) entries.push({ type: 'directory', path, mode }, ...(await treeEntries(source, path)));
    else if (stat.isFile()) entries.push({ type: 'file', path, mode, source });
    else throw new Error(`${source}: only files, directories and symbolic links can go into an image layer`);
  }
  return entries;
}

/** Entries by path, each parent directory before what it holds; a path that two entries claim is an error. */
export function completeEntries(entries: readonly LayerEntry[]): LayerEntry[] {
  const byPath = new Map<string, LayerEntry>();
  for (const entry of entries) {
    const known = byPath.get(entry.path);
    if (known !== undefined && !(known.type === 'directory' && entry.type === 'directory')) {
      throw new Error(`image layer: two entries for /${entry.path}`);
    }
    byPath.set(entry.path, entry);
  }
  for (const { path } of entries) {
    const parts = path.split('/');
    for (let depth = 1; depth < parts.length; depth += 1) {
      const parent = parts.slice(0, depth).join('/');
      if (!byPath.has(parent)) byPath.set(parent, { type: 'directory', path: parent, mode: 0o755 });
    }
  }
  return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Writes a layer as an uncompressed tar named by its digest into `blobs`. The bytes depend on the entries alone: sorted,
 * no times, numeric owners. Uncompressed, because such images travel over a loopback and are unpacked once per node.
 */
export async function writeLayer(blobs: string, entries: readonly LayerEntry[]): Promise<Blob> {
  const archive = pack();
  const hash = createHash('sha256');
  let size = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  const temporary = join(blobs, `.layer-${randomUUID()}`);
  const written = pipeline(archive, meter, createWriteStream(temporary));
  const filled = (async () => {
    for (const entry of completeEntries(entries)) await addEntry(archive, entry);
    archive.finalize();
  })();
  await Promise.all([filled, written]);
  const digest: Digest = `sha256:${hash.digest('hex')}`;
  await rename(temporary, join(blobs, digest.slice('sha256:'.length)));
  return { digest, size };
}

async function addEntry(archive: ReturnType<typeof pack>, entry: LayerEntry): Promise<void> {
  const header = {
    name: entry.path,
    mtime: new Date(0),
    uid: entry.uid ?? 0,
    gid: entry.gid ?? 0,
    uname: '',
    gname: '',
  };
  if (entry.type === 'directory') archive.entry({ ...header, type: 'directory', mode: entry.mode });
  else if (entry.type === 'symlink') {
    archive.entry({ ...header, type: 'symlink', mode: 0o777, linkname: entry.target });
  } else if ('content' in entry) {
    archive.entry({ ...header, type: 'file', mode: entry.mode }, Buffer.from(entry.content));
  } else {
    const { size } = await lstat(entry.source);
    await pipeline(createReadStream(entry.source), archive.entry({ ...header, type: 'file', mode: entry.mode, size }));
  }
}
