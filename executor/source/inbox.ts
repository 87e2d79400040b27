/** The inbox: ConfigMaps that a courier delivered. What is in it is nobody's word until it is verified. */
import type { KubeClient } from '../kube/client.ts';
import { assemble, readChunks } from './chunks.ts';
import type { PayloadSource } from './source.ts';

/** A source that assembles the chunks of the wanted digest. */
export function inboxSource(client: KubeClient, namespace: string): PayloadSource {
  return {
    async fetch({ release, digest }, signal) {
      return assemble(digest, await readChunks(client, { namespace, release, holds: 'payload' }, signal));
    },
  };
}
