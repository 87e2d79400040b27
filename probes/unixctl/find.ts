/** Where a daemon's control socket is. */
import { join } from 'node:path';
import { readdir, readStart, stat } from '../../constructs/lib/files.ts';
import { type Fault, fault, ok, type Result, socketFault } from '../jsonrpc/fault.ts';

export interface FoundDaemon {
  readonly path: string;
  /** As the daemon counts; where it has process ids of its own, nobody else finds it by that. */
  readonly pid: number;
}

/** The process id in a file, as the daemon counts; undefined when there is none. At most 64 bytes are read. */
export async function readPid(path: string): Promise<number | undefined> {
  const text = await shortText(path);
  return text !== undefined && /^[0-9]{1,10}$/.test(text) ? Number(text) : undefined;
}

const shortText = (path: string): Promise<string | undefined> =>
  readStart(path, 64).then(
    (bytes) => bytes.toString('latin1').trim(),
    () => undefined,
  );

const isSocket = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isSocket() === true;

/** A directory that is not there has no daemon in it; of one that can not be looked into nobody knows. */
const unlisted = (error: unknown, where: string): Fault =>
  (error as NodeJS.ErrnoException).code === 'ENOTDIR'
    ? fault('refused', `${where} is no directory`)
    : socketFault(error, where);

/**
 * `<program>.<pid>.ctl` in a directory. The file `<program>.pid` says which; a daemon that crashed leaves its socket behind,
 * so without that file only a single socket is taken.
 */
export async function findControl(directory: string, program: string): Promise<Result<FoundDaemon>> {
  const at = (pid: string | number): FoundDaemon => ({
    path: join(directory, `${program}.${pid}.ctl`),
    pid: Number(pid),
  });
  const written = await readPid(join(directory, `${program}.pid`));
  if (written !== undefined && (await isSocket(at(written).path))) return ok(at(written));
  const listed = await readdir(directory).then(ok, (error: unknown) => unlisted(error, `${program}: ${directory}`));
  if (listed.type !== 'ok') return listed;
  const pids = listed.value.flatMap((name) => {
    const rest = name.startsWith(`${program}.`) ? name.slice(program.length + 1) : '';
    return /^[0-9]{1,10}\.ctl$/.test(rest) ? [rest.slice(0, -'.ctl'.length)] : [];
  });
  const [only, second] = pids;
  if (only === undefined) return fault('refused', `${program}: no control socket in ${directory}`);
  if (second !== undefined)
    return fault('protocol', `${program}: ${pids.length} control sockets in ${directory}, and no file that says which`);
  return ok(at(only));
}
