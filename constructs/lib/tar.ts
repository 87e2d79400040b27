/** Archives from outside are read with limits and suspicion; ours are written so that the same content gives the same bytes. */
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, gunzip } from 'node:zlib';
import { gzipSync } from 'fflate';
import { extract, type Header, pack } from 'tar-stream';

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
  /** Most bytes that the archive may unpack to. */
  readonly ceiling: number;
  readonly #limits: TarLimits;
  #files = 0;
  #total = 0;

  constructor(limits: TarLimits, archiveBytes: number) {
    this.#limits = limits;
    this.ceiling = Math.min(limits.maxTotalBytes, Math.max(1024 * 1024, archiveBytes * limits.maxRatio));
  }

  file(name: string): void {
    if (++this.#files > this.#limits.maxFiles)
      throw new UnsafeArchive(`archive has more than ${this.#limits.maxFiles} entries`, name);
  }

  bytes(fileBytes: number, more: number, name: string): void {
    if (fileBytes > this.#limits.maxFileBytes)
      throw new UnsafeArchive(`archive entry is over ${this.#limits.maxFileBytes} bytes`, name);
    this.#total += more;
    if (this.#total > this.ceiling) throw this.tooLarge(name);
  }

  tooLarge(name?: string): UnsafeArchive {
    return new UnsafeArchive(`archive unpacks to more than ${this.ceiling} bytes`, name);
  }
}

/** Refuses what is neither file nor folder, or has no size that such a thing can have. */
function checkForm({ name, type, size }: Header): void {
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory')
    throw new UnsafeArchive(`archive entry is a ${type ?? 'thing of unknown type'}, not a file`, name);
  // The stream of such an entry never ends; and other readers do not agree about what follows it.
  if (typeof size !== 'number' || (type === 'directory' && size > 0))
    throw new UnsafeArchive('archive entry has a size that means nothing', name);
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
      checkForm(entry.header);
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

const block = 512;
const unzip = promisify(gunzip);

/**
 * The files of an archive as {@link packTar} and {@link gzipFixed} make them, in archive order: what {@link readTarGz} would
 * answer, in a tenth of its time. Refused besides: everything that these do not write, such as folders and extended headers.
 * @throws UnsafeArchive
 */
export async function readPacked(archive: Uint8Array, limits: TarLimits): Promise<TarFile[]> {
  const budget = new Budget(limits, archive.byteLength);
  const tar = await unzip(archive, { maxOutputLength: budget.ceiling, chunkSize: 256 * 1024 }).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === 'ERR_BUFFER_TOO_LARGE' ? budget.tooLarge() : damaged(error.message);
    },
  );
  const files = new Map<string, TarFile>();
  let at = 0;
  for (;;) {
    const header = tar.subarray(at, at + block);
    if (header.byteLength < block) throw damaged('it ends early');
    if (header[0] === 0) break;
    const { name, size } = plainHeader(header);
    budget.file(name);
    const path = safePath(name);
    if (path === '') throw new UnsafeArchive('archive entry has no name', name);
    if (files.has(path)) throw new UnsafeArchive('archive has two entries of one name', name);
    budget.bytes(size, size, name);
    const bytes = tar.subarray(at + block, at + block + size);
    if (bytes.byteLength < size) throw damaged('it ends early');
    files.set(path, { path, bytes });
    at += block + Math.ceil(size / block) * block;
  }
  if (tar.subarray(at).some((byte) => byte !== 0)) throw damaged('something follows its end');
  return [...files.values()];
}

const damaged = (why: string): UnsafeArchive => new UnsafeArchive(`archive is damaged or truncated (${why})`);

/** The text of a field, which ends at a zero byte or with the field. */
function fieldOf(header: Buffer, from: number, length: number): string {
  const end = header.indexOf(0, from);
  return header.toString('latin1', from, end < 0 ? from + length : Math.min(end, from + length));
}

function octal(header: Buffer, from: number, length: number): number {
  const text = fieldOf(header, from, length).trim();
  if (!/^[0-7]+$/.test(text)) throw damaged('a header holds no number where one belongs');
  return Number.parseInt(text, 8);
}

/** Name and size of a file from a header in the POSIX form without extensions. */
function plainHeader(header: Buffer): { readonly name: string; readonly size: number } {
  const name = fieldOf(header, 0, 100);
  // The field of the sum itself counts as eight spaces.
  let sum = 8 * 32;
  for (let n = 0; n < block; n += 1) if (n < 148 || n >= 156) sum += header[n] ?? 0;
  if (sum !== octal(header, 148, 8)) throw damaged('a header does not have its sum');
  const plain = header.toString('latin1', 257, 265) === 'ustar\u000000' && header[345] === 0;
  if (!plain || header[156] !== 0x30) throw new UnsafeArchive('archive entry is not a plain file', name);
  if (!/^[\x20-\x7e]+$/.test(name)) throw new UnsafeArchive('archive entry has a forbidden character', name);
  return { name, size: octal(header, 124, 12) };
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
