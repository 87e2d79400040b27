import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { waitFor } from '../../../constructs/lib/wait.ts';
import { freePort } from '../../tools/ports.ts';
import type { Cluster } from '../types.ts';

const program = fileURLToPath(new URL('./gitd.ts', import.meta.url));
const username = 'keelson';

/** The rendered repository as the host, the nodes and their pods reach it. */
export interface LocalGit {
  /** URL without credentials. */
  readonly url: string;
  readonly username: string;
  readonly password: string;
  /** Program that answers git's questions for user name and password (`GIT_ASKPASS`). */
  readonly askpass: string;
}

/**
 * Serves a bare repository over HTTP on the cluster's bridge, which this machine alone reaches, until the cluster goes.
 * @param place the repository, and a folder for the password and the program that tells it.
 */
export async function serveGit(
  cluster: Cluster,
  place: { readonly rendered: string; readonly folder: string },
): Promise<LocalGit> {
  const password = randomBytes(16).toString('hex');
  const passwordFile = join(place.folder, 'git-password');
  const askpass = join(place.folder, 'git-askpass');
  await mkdir(place.folder, { recursive: true });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  const script = `#!/bin/sh\ncase "$1" in Username*) echo ${username} ;; *) cat '${passwordFile.replaceAll("'", "'\\''")}' ;; esac\n`;
  await writeFile(askpass, script, { mode: 0o755 });
  const { address } = cluster.state().bridge;
  const port = await freePort();
  const options = { root: dirname(place.rendered), address, port, username, 'password-file': passwordFile };
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  await cluster.startProgram('git', [process.execPath, '--disable-warning=ExperimentalWarning', program, ...args]);
  const url = `http://${address}:${port}`;
  await waitFor({
    what: 'the Git server to answer',
    limitMs: 20_000,
    intervalMs: 50,
    clock: systemClock,
    probe: async (saw) => {
      try {
        const { status } = await fetch(url, { signal: AbortSignal.timeout(2_000) });
        return status === 401 ? true : undefined;
      } catch (error) {
        saw(String(error));
        return undefined;
      }
    },
  });
  return { url: `${url}/${basename(place.rendered)}`, username, password, askpass };
}
