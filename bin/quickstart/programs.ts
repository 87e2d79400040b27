import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Place } from './place.ts';

const entry = fileURLToPath(new URL('../keelson.ts', import.meta.url));

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Puts `keelson`, `kubectl` and `helm` into one folder, set up for the local cluster. Answers the environment they use.
 */
export async function writePrograms(
  place: Place,
  tools: {
    readonly kubectl: string;
    readonly helm: string;
    readonly kubeconfig: string;
    /** Program that tells git the password of the rendered repository, where it has one. */
    readonly askpass?: string;
  },
): Promise<Record<string, string>> {
  await mkdir(place.programs, { recursive: true });
  const env = {
    KUBECONFIG: tools.kubeconfig,
    KEELSON_SIGNING_KEY_FILE: join(place.keys, 'signing.key'),
    ...(tools.askpass === undefined ? {} : { GIT_ASKPASS: tools.askpass }),
  };
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  const path = `PATH=${quoted(place.programs)}:"$PATH"`;
  const keelson = `#!/bin/sh\n${[...exports, path].join('\n')}\nexec ${quoted(process.execPath)} --disable-warning=ExperimentalWarning ${quoted(entry)} "$@"\n`;
  await writeFile(join(place.programs, 'keelson'), keelson);
  await chmod(join(place.programs, 'keelson'), 0o755);
  const kubectl = `#!/bin/sh\n${exports[0] ?? ''}\nexec ${quoted(tools.kubectl)} "$@"\n`;
  await writeFile(join(place.programs, 'kubectl'), kubectl);
  await chmod(join(place.programs, 'kubectl'), 0o755);
  await symlink(tools.helm, join(place.programs, 'helm'));
  return env;
}
