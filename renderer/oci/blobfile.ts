import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../constructs/lib/digest.ts';
import { fileTrouble } from '../../constructs/lib/replacefile.ts';

/** The disk refused: nothing more can be copied. The message names the place and says what to do. */
export class DiskTrouble extends Error {
  constructor(place: string, error: unknown) {
    super(
      `${place} can not be written: ${fileTrouble(error)}; what was copied so far stays, so make room and run it again`,
    );
  }
}

/** Digest of a file, or undefined when there is no such file. */
async function fileDigest(file: string, signal?: AbortSignal): Promise<Digest | undefined> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(file, signal === undefined ? {} : { signal })) hash.update(chunk);
  } catch (error) {
    signal?.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return `sha256:${hash.digest('hex')}`;
}

/** Whether a file holds exactly the content of a digest. */
export async function holds(file: string, digest: Digest, size: number, signal?: AbortSignal): Promise<boolean> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || !found.isFile() || found.size !== size) return false;
  return (await fileDigest(file, signal)) === digest;
}

/** Writes a file from parts, and flushes it. @throws DiskTrouble; whatever the parts throw. */
export async function writeParts(
  file: string,
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  seen: (bytes: number) => void = () => undefined,
): Promise<void> {
  const trouble = (error: unknown): never => {
    throw new DiskTrouble(dirname(file), error);
  };
  const handle = await open(file, 'w', 0o644).catch(trouble);
  try {
    for await (const part of parts) {
      await handle.writeFile(part).catch(trouble);
      seen(part.length);
    }
    await handle.sync().catch(trouble);
  } finally {
    await handle.close();
  }
}
