import { createClient, type KubeClient } from '../executor/kube/client.ts';
import { kubeConfigCredentials } from '../executor/kube/credentials.ts';
import { createTransport } from '../executor/kube/transport.ts';
import type { CommonOptions, Invocation } from './invocation.ts';
import { version } from './version.ts';

/** Runs work with a client of the cluster that the options, or the person's kubeconfig, name. */
export async function withClient<T>(
  invocation: Invocation,
  options: CommonOptions,
  work: (client: KubeClient) => Promise<T>,
): Promise<T> {
  const { clock, random, env } = invocation;
  const file = options.kubeconfig ?? env.KUBECONFIG;
  const credentials = kubeConfigCredentials({
    clock,
    // A list of files is for the library to merge.
    ...(file === undefined || file.includes(':') ? {} : { file }),
    ...(options.context === undefined ? {} : { context: options.context }),
  });
  const transport = createTransport({ credentials, userAgent: `keelson/${version}` });
  try {
    return await work(createClient({ transport: transport.send, clock, random }));
  } finally {
    await transport.close();
  }
}
