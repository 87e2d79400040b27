import type { DaemonIdentity } from '../../constructs/api/evidence/fields.ts';
import type { Result } from '../jsonrpc/fault.ts';
import { ControlSocket } from '../unixctl/control.ts';
import { findControl } from '../unixctl/find.ts';
import { identify } from './identity.ts';
import type { Look } from './look.ts';

export interface DaemonOptions {
  /** Where its pid file and its control socket are. */
  readonly directory: string;
  readonly program: string;
  readonly procDirectory?: string;
}

/** Finds a daemon by its program, and asks it over its control socket. */
export async function askDaemon<T>(
  { directory, program, procDirectory }: DaemonOptions,
  look: Look,
  questions: (control: ControlSocket, daemon: DaemonIdentity) => Promise<Result<T>>,
): Promise<Result<T>> {
  const found = await findControl(directory, program);
  if (found.type !== 'ok') return found;
  const { path, pid } = found.value;
  const where = procDirectory === undefined ? {} : { procDirectory };
  const identity = await identify({ daemon: program, socket: path, pid, program, ...where });
  if (identity.type !== 'ok') return identity;
  const opened = await ControlSocket.open({ ...look, daemon: program, path });
  if (opened.type !== 'ok') return opened;
  try {
    return await questions(opened.value, identity.value);
  } finally {
    opened.value.close();
  }
}
