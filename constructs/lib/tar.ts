/** Archives from outside are read with limits and suspicion; ours are written so that the same content gives the same bytes. */
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { gzipSync } from 'fflate';
import { extract, pack } from 'tar-stream';

export interface TarFile {
  /** Relative path with '/' between its parts. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface TarLimits {
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  /** Most bytes of content for a byte of archive. */
  readonly maxRatio: number;
}

export const defaultTarLimits: TarLimits = {
  maxFiles: 5000,
  maxFileBytes: 16 * 1024 * 1024,
  maxTotalBytes: 64 * 1024 * 1024,
  maxRatio: 200,
};

/** An archive that must not be unpacked; `entry` names the offending member where there is one. */
export class UnsafeArchive extends Error {
  override readonly name = 'UnsafeArchive';
  readonly entry: string | undefined;

  constructor(message: string, entry?: string) {
    super(entry === undefined ? message : `${message}: ${JSON.stringify(entry)}`);
    this.entry = entry;
  }
}

function safePath(name: string): string {
  const path = name.replace(/^(\.\/)+/, '').replace(/\/+$/, '');
  // Some archives begin with an entry for the folder that everything else is in.
  if (path === '.') return '';
  if (path.includes('\u0000') || path.includes('\\'))
    throw new UnsafeArchive('archive entry has a forbidden character', name);
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path))
    throw new UnsafeArchive('archive entry has an absolute path', name);
  if (path.split('/').some((part) => part === '..' || part === '.'))
    throw new UnsafeArchive('archive entry leaves its folder', name);
  return path;
}

class Budget {
  readonly #limits: TarLimits;
  readonly #ceiling: number;
  #files = 0;
  #total = 0;

  constructor(limits: TarLimits, archiveBytes: number) {
    this.#limits = limits;
    this.#ceiling = Math.min(limits.maxTotalBytes, Math.max(1024 * 1024, archiveBytes * limits.maxRatio));
  }

  file(name: string): void {
    if (++this.#files > this.#limits.maxFiles)
      throw new UnsafeArchive(`archive has more than ${this.#limits.maxFiles} entries`, name);
  }

  bytes(fileBytes: number, more: number, name: string): void {
    if (fileBytes > this.#limits.maxFileBytes)
      throw new UnsafeArchive(`archive entry is over ${this.#limits.maxFileBytes} bytes`, name);
    this.#total += more;
    if (this.#total > this.#ceiling)
      throw new UnsafeArchive(`archive unpacks to more than ${this.#ceiling} bytes`, name);
  }
}

/**
 * The regular files of a gzipped tar, in archive order. Refused as a whole: absolute or climbing paths, links, devices,
 * names given twice, too many or too large files, a gzip bomb, a truncated or damaged archive.
 * @param wanted files that are answered; the others are checked like them, and their bytes are let go.
 * @throws UnsafeArchive
 */
export async function readTarGz(
  archive: Uint8Array,
  limits: TarLimits = defaultTarLimits,
  wanted: (path: string) => boolean = () => true,
): Promise<TarFile[]> {
  const budget = new Budget(limits, archive.byteLength);
  const files = new Map<string, TarFile>();
  const seen = new Set<string>();
  const reader = extract();
  const gunzip = createGunzip();
  const source = Readable.from([archive]);
  source.on('error', (error) => gunzip.destroy(error));
  gunzip.on('error', (error) => reader.destroy(error));
  source.pipe(gunzip).pipe(reader);
  try {
    for await (const entry of reader) {
      const { name, type } = entry.header;
      budget.file(name);
      if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory')
        throw new UnsafeArchive(`archive entry is a ${type ?? 'thing of unknown type'}, not a file`, name);
      const path = safePath(name);
      const kept = wanted(path);
      const chunks: Uint8Array[] = [];
      let size = 0;
      for await (const chunk of entry as AsyncIterable<Uint8Array>) {
        size += chunk.byteLength;
        budget.bytes(size, chunk.byteLength, name);
        if (kept) chunks.push(chunk);
      }
      if (type === 'directory') continue;
      if (path === '') throw new UnsafeArchive('archive entry has no name', name);
      if (seen.has(path)) throw new UnsafeArchive('archive has two entries of one name', name);
      seen.add(path);
      if (kept) files.set(path, { path, bytes: Buffer.concat(chunks) });
    }
  } catch (error) {
    if (error instanceof UnsafeArchive) throw error;
    throw new UnsafeArchive(`archive is damaged or truncated (${(error as Error).message})`);
  } finally {
    source.destroy();
    gunzip.destroy();
    reader.destroy();
  }
  return [...files.values()];
}

/** An uncompressed tar with files sorted by path, mode 0644, and no times, owners or names of this machine. */
export async function packTar(files: readonly TarFile[]): Promise<Uint8Array> {
  const archive = pack();
  const chunks: Uint8Array[] = [];
  const done = (async () => {
    for await (const chunk of archive as AsyncIterable<Uint8Array>) chunks.push(chunk);
  })();
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))) {
    const header = { name: file.path, mode: 0o644, uid: 0, gid: 0, uname: '', gname: '', mtime: new Date(0) };
    archive.entry(header, Buffer.from(file.bytes));
  }
  archive.finalize();
  await done;
  return Buffer.concat(chunks);
}

/** gzip by a pure-JS library at a fixed level: the bytes do not depend on the machine or its zlib. */
export function gzipFixed(bytes: Uint8Array): Uint8Array {
  return gzipSync(bytes, { level: 9, mtime: 0 });
}
