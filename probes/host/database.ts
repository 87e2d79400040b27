import { join } from 'node:path';
import { readdir, statfs } from '../../constructs/lib/files.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import type { ComponentFacts } from '../server/collector.ts';
import { placeOf } from './place.ts';

type DatabaseRoot = ComponentFacts<'host', 'database'>;

/** Names that a look tells; that there is one is what counts. */
const mostEntries = 64;

/** What a new file system brings along is nobody's data, while it is empty. */
const isBare = async (folder: string, name: string): Promise<boolean> =>
  name === 'lost+found' && (await readdir(join(folder, name)).then(({ length }) => length === 0));

/** Whether the folder of the databases holds anything, and how much room is where it is or would be. */
export async function databaseRoot(root: string, path: string): Promise<Result<DatabaseRoot>> {
  const place = await placeOf(root, path);
  if (place.type === 'fault') return place;
  const { file, exists } = place.value;
  const { bavail, bsize } = await statfs(file, { bigint: true });
  const freeBytes = (bavail * bsize).toString();
  if (!exists) return ok({ path, state: 'absent', entries: [], freeBytes });
  const entries = await readdir(file).catch((error: NodeJS.ErrnoException) => error);
  if (!Array.isArray(entries))
    return fault(entries.code === 'EACCES' ? 'denied' : 'protocol', `${path} can not be read as a folder`);
  const held: string[] = [];
  for (const name of entries.sort()) if (!(await isBare(file, name))) held.push(name);
  return ok({ path, state: held.length === 0 ? 'empty' : 'occupied', entries: held.slice(0, mostEntries), freeBytes });
}
