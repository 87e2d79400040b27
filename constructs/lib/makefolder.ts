import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder, and those above it that are missing; one that is there is left as it is.
 *
 * Node's own recursion asks for ever where a file system says of a folder in one that is there that it is missing (`/proc`),
 * no signal ends it, and of a read-only file system it tells something else.
 * @param mode permissions of what is made.
 * @throws the error of the file system.
 */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  const one = (): Promise<unknown> => mkdir(folder, mode === undefined ? {} : { mode });
  try {
    await one();
  } catch (error) {
    if (await isFolder(folder)) return;
    const above = dirname(folder);
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT' && above !== folder;
    if (!missing) throw error;
    // The one above may have been made since: then one more attempt tells.
    if (!(await isFolder(above))) await makeFolder(above, mode);
    await one().catch(async (late: unknown) => {
      // Somebody else may have made it meanwhile.
      if (!(await isFolder(folder))) throw late;
    });
  }
}

const isFolder = async (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
