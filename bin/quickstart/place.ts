import { join } from 'node:path';

/** Where the quickstart keeps what it makes; `--down` removes all of it. */
export interface Place {
  readonly root: string;
  /** Git repository with the specs. */
  readonly specs: string;
  /** Bare repository that receives the rendered tree. */
  readonly rendered: string;
  /** Signing key. */
  readonly keys: string;
  /** Programs for the user's PATH. */
  readonly programs: string;
}

/** Name of the cluster and of the folder. */
export const quickstartName = 'quickstart';

/** The place below the user's state folder. */
export function quickstartPlace(env: Readonly<Record<string, string | undefined>>): Place {
  const root = join(env.XDG_STATE_HOME ?? join(env.HOME ?? '/root', '.local', 'state'), 'keelson', quickstartName);
  return {
    root,
    specs: join(root, 'specs'),
    rendered: join(root, 'rendered.git'),
    keys: join(root, 'keys'),
    programs: join(root, 'bin'),
  };
}
