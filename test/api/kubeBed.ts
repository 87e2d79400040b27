import { systemClock } from '../../constructs/lib/clock.ts';
import { type ClientOptions, createClient, type KubeClient } from '../../executor/kube/client.ts';
import { type CredentialSource, cachedCredentials } from '../../executor/kube/credentials.ts';
import { createTransport, type OwnedTransport, type Transport } from '../../executor/kube/transport.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import type { ApiServerHandle } from '../apiserver/server.ts';
import { type SharedServer, sharedApiServer } from '../apiserver/shared.ts';

export interface EdgeOptions extends Partial<ClientOptions> {
  readonly token?: string;
  /** A proxy in front of the server. */
  readonly url?: string;
  /** Wraps the real transport, to put faults before it. */
  readonly wrap?: (inner: Transport) => Transport;
}

/** The product's client against a real server, with short pauses. */
export interface Edge {
  readonly client: KubeClient;
  readonly transport: OwnedTransport;
}

export function staticCredentials(server: ApiServerHandle, token = server.token, url = server.url): CredentialSource {
  const credentials = {
    server: url,
    tls: { ca: server.ca, insecure: false },
    headers: { authorization: `Bearer ${token}` },
  };
  return cachedCredentials(async () => credentials, systemClock, 1e9);
}

export function edgeOf(server: ApiServerHandle, options: EdgeOptions = {}): Edge {
  const { token, url, wrap, ...rest } = options;
  const transport = createTransport({ credentials: staticCredentials(server, token, url) });
  const client = createClient({
    transport: wrap === undefined ? transport.send : wrap(transport.send),
    clock: systemClock,
    random: Math.random,
    backoff: { initialMs: 20, factor: 2, maxMs: 500, jitter: 0.2 },
    ...rest,
  });
  return { client, transport };
}

/** The shared server, a namespace of one's own in it, and the product's client. */
export interface KubeBed extends Edge {
  readonly server: SharedServer;
  readonly namespace: string;
  close(): Promise<void>;
}

export async function kubeBed(prefix: string): Promise<KubeBed> {
  const server = await sharedApiServer();
  const namespace = await freshNamespace(server.admin, prefix);
  const edge = edgeOf(server);
  return {
    ...edge,
    server,
    namespace,
    async close() {
      await edge.transport.close();
      await server.admin.close();
    },
  };
}

export function configMap(namespace: string, name: string, data: { [key: string]: string }): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data };
}

/** Asks every few milliseconds until it is so; a limit, not a pause, ends the wait. */
export async function until(what: string, probe: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await probe())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await systemClock.sleep(5);
  }
}
