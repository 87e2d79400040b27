import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AdminClient, adminClient } from './client.ts';
import { kubeconfigText } from './credentials.ts';
import { type ApiServer, type ApiServerHandle, startApiServer } from './server.ts';

export interface SharedServer extends ApiServerHandle {
  readonly admin: AdminClient;
}

/** Environment variables through which the runner hands the api layer's one server to the test files. */
const sharedVariables = { handle: 'KEELSON_TEST_APISERVER', kubeconfig: 'KEELSON_TEST_KUBECONFIG' } as const;

/** Writes the handle of a server beside its data and returns the variables for the test files' environment. */
export async function shareServer(server: ApiServer): Promise<Record<string, string>> {
  const { admin: _admin, pid: _pid, etcdPid: _etcd, kill9: _kill9, restart: _restart, stop: _stop, ...handle } = server;
  const file = join(server.directory, 'handle.json');
  await writeFile(file, JSON.stringify(handle), { mode: 0o600 });
  return { [sharedVariables.handle]: file, [sharedVariables.kubeconfig]: server.kubeconfig };
}

/**
 * The api layer's one server; a test file asks for it once, at its top. A file that is run by itself starts its own, which
 * goes when the file's process ends. Tests share it: they work in fresh namespaces, give cluster-scoped objects names of their own, and never kill it.
 */
export async function sharedApiServer(env: NodeJS.ProcessEnv = process.env): Promise<SharedServer> {
  const file = env[sharedVariables.handle];
  if (file === undefined) return startApiServer({ tools: { onProgress: (line) => console.error(line) } });
  const handle = JSON.parse(await readFile(file, 'utf8')) as ApiServerHandle;
  return { ...handle, admin: adminClient(handle) };
}

/**
 * Writes a client configuration for another token, URL or namespace than the admin's and returns the file. Without
 * `url` it points to the server itself; give a proxy's URL to go through it.
 */
export async function writeKubeconfig(
  file: string,
  server: ApiServerHandle,
  input: { readonly token?: string; readonly url?: string; readonly namespace?: string } = {},
): Promise<string> {
  const url = input.url ?? server.url;
  const text = kubeconfigText({
    url,
    token: input.token ?? server.token,
    ...(url.startsWith('https:') ? { ca: server.ca } : {}),
    ...(input.namespace === undefined ? {} : { namespace: input.namespace }),
  });
  await writeFile(file, text, { mode: 0o600 });
  return file;
}
