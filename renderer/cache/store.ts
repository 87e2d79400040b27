/**
 * What earlier renders found out, in the user's cache folder. An entry is used only when its bytes say that they are whole
 * and answer this very question; everything else (a miss, damage, a full disk) costs time and nothing else.
 */
import { randomUUID } from 'node:crypto';
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { canonicalJson, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { makeFolder } from '../../constructs/lib/makefolder.ts';

/** What an entry is about. */
export type CacheKind = 'document' | 'helm' | 'outcome';

export interface RenderCache {
  /** The value that was kept for this question, or undefined. */
  read(kind: CacheKind, question: JsonValue): Promise<JsonValue | undefined>;
  /** Keeps a value; failing to is no error. */
  write(kind: CacheKind, question: JsonValue, value: JsonValue): Promise<void>;
  /** Drops what was not used for longest, when entries were written and all of them are over the bound. */
  sweep(): Promise<void>;
}

/** The file operations of a cache; tests put a full disk in their place. */
export interface RenderCacheFiles {
  read(path: string): Promise<string>;
  write(path: string, text: string): Promise<void>;
}

export interface RenderCacheOptions {
  readonly folder: string;
  /** Names the program down to its bytes: another program may answer every question differently. */
  readonly program: string;
  readonly clock: Clock;
  /** Bound on all entries together. */
  readonly maxBytes?: number;
  readonly files?: RenderCacheFiles;
}

const defaultMaxBytes = 256 * 1024 * 1024;

/** After a sweep so much of the bound is in use, so that the next ones find nothing to do. */
const afterSweep = 0.8;

/** How old the last use of an entry may look before it is noted again. */
const noteUseMs = 3_600_000;

const localFiles: RenderCacheFiles = {
  read: (path) => readFile(path, 'utf8'),
  write: (path, text) => writeFile(path, text, { flag: 'wx', mode: 0o600 }),
};

interface Entry {
  readonly path: string;
  readonly bytes: number;
  readonly usedMs: number;
}

/** A cache below `folder`. Several processes may use one folder at once. */
export function createRenderCache(options: RenderCacheOptions): RenderCache {
  const { program, clock, maxBytes = defaultMaxBytes, files = localFiles } = options;
  const home = join(options.folder, 'render');
  let written = false;

  const nameOf = (kind: CacheKind, question: JsonValue): { path: string; id: string } => {
    const id = sha256Hex(canonicalJson([program, kind, question]));
    return { path: join(home, kind, id), id };
  };

  return {
    async read(kind, question) {
      const { path, id } = nameOf(kind, question);
      const text = await files.read(path).catch(() => undefined);
      if (text === undefined) return undefined;
      const value = opened(id, text);
      if (value === undefined) await rm(path, { force: true }).catch(() => undefined);
      else await noteUse(path, clock.now());
      return value;
    },

    async write(kind, question, value) {
      const { path, id } = nameOf(kind, question);
      const part = `${path}.${randomUUID()}.part`;
      try {
        await makeFolder(join(home, kind), 0o700);
        await files.write(part, sealed(id, value));
        await rename(part, path);
        written = true;
      } catch {
        await rm(part, { force: true }).catch(() => undefined);
      }
    },

    async sweep() {
      if (!written) return;
      const entries = await list(home);
      let total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
      if (total <= maxBytes) return;
      for (const { path, bytes } of entries.sort((a, b) => a.usedMs - b.usedMs)) {
        if (total <= maxBytes * afterSweep) return;
        await rm(path, { force: true }).catch(() => undefined);
        total -= bytes;
      }
    },
  };
}

/** Knows nothing and keeps nothing. */
export const noRenderCache: RenderCache = {
  read: () => Promise.resolve(undefined),
  write: () => Promise.resolve(),
  sweep: () => Promise.resolve(),
};

/** The digest covers question and value: neither a damaged file nor one under another's name is taken. */
function sealed(id: string, value: JsonValue): string {
  const body = JSON.stringify({ value });
  return `${sha256Hex(`${id}\n${body}`)}\n${body}`;
}

function opened(id: string, text: string): JsonValue | undefined {
  const end = text.indexOf('\n');
  const body = text.slice(end + 1);
  if (end < 0 || text.slice(0, end) !== sha256Hex(`${id}\n${body}`)) return undefined;
  const parsed = JSON.parse(body) as JsonObject;
  return isObject(parsed) ? (parsed.value ?? undefined) : undefined;
}

/** Notes that an entry is still of use; not every time, since that is a write. */
async function noteUse(path: string, now: number): Promise<void> {
  try {
    const { mtimeMs } = await stat(path);
    if (Math.abs(now - mtimeMs) > noteUseMs) await utimes(path, new Date(now), new Date(now));
  } catch {
    // It went meanwhile; the value was read.
  }
}

async function list(home: string): Promise<Entry[]> {
  const found = await readdir(home, { recursive: true, withFileTypes: true }).catch(() => []);
  const entries: Entry[] = [];
  for (const entry of found) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const stats = await stat(path).catch(() => undefined);
    if (stats !== undefined) entries.push({ path, bytes: stats.size, usedMs: stats.mtimeMs });
  }
  return entries;
}
