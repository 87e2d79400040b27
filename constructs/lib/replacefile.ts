import { rename, rm, writeFile } from 'node:fs/promises';

const words: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EFBIG: 'the limit for the size of files is reached',
  EROFS: 'the file system is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'a folder stands in its place',
};

/** An error of the file system as a person reads it: what happened in words, and its code. */
export function fileTrouble(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? String(error);
  return words[code] === undefined ? code : `${words[code]} (${code})`;
}

/**
 * Writes a file so that a reader finds the old content or the new one, and never a part.
 * @param part where the new content grows; it is gone afterwards, whatever happens. By default a name beside the file, which
 * the next one to write takes over; two that may write at once need one each.
 * @throws Error that names the file and why it could not be written; the old content stands.
 */
export async function replaceFile(file: string, content: Uint8Array | string, part = `${file}.part`): Promise<void> {
  try {
    // What stands there is left over, or a link that somebody put there: it is not written through.
    await rm(part, { force: true });
    await writeFile(part, content, { mode: 0o644, flag: 'wx' });
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw new Error(`${file} can not be written: ${fileTrouble(error)}; what stood there before is unchanged`);
  }
}
