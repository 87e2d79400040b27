import { delimiter } from 'node:path';
import { createClient, type KubeClient } from '../executor/kube/client.ts';
import { type CredentialSource, kubeConfigCredentials } from '../executor/kube/credentials.ts';
import { createTransport } from '../executor/kube/transport.ts';
import type { CommonOptions, Invocation } from './invocation.ts';
import { version } from './version.ts';

/** What can not be read now would be tried again and again, as an API server that does not answer is. */
async function readable(credentials: CredentialSource): Promise<void> {
  try {
    await credentials.current();
  } catch (error) {
    // Further lines of a reader quote what stands in the file, which may be a token.
    const message = (error instanceof Error ? error.message : String(error)).split('\n')[0];
    throw new Error(
      `the kubeconfig can not be used: ${message}\n    remedy: name a good one with --kubeconfig or KUBECONFIG; ~/.kube/config is read otherwise`,
    );
  }
}

/**
 * Runs work with a client of the cluster that the options, or the person's kubeconfig, name.
 * @throws Error at once when there is no kubeconfig that can be used.
 */
export async function withClient<T>(
  invocation: Invocation,
  options: CommonOptions,
  work: (client: KubeClient, credentials: CredentialSource) => Promise<T>,
): Promise<T> {
  const { clock, random, env } = invocation;
  // A list of files is for the library to merge; what a person names is one file, whatever its name is.
  const file = options.kubeconfig ?? (env.KUBECONFIG?.includes(delimiter) === true ? undefined : env.KUBECONFIG);
  const credentials = kubeConfigCredentials({
    clock,
    signal: invocation.signal,
    ...(file === undefined || file === '' ? {} : { file }),
    ...(options.context === undefined ? {} : { context: options.context }),
  });
  await readable(credentials);
  const transport = createTransport({ credentials, userAgent: `keelson/${version}` });
  try {
    return await work(createClient({ transport: transport.send, clock, random }), credentials);
  } finally {
    await transport.close();
  }
}
