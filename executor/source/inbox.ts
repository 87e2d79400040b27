/** The inbox: ConfigMaps that a courier delivered. What is in it is nobody's word until it is verified. */
import { joinChunks } from '../../constructs/api/payload-chunks.ts';
import type { KubeClient } from '../kube/client.ts';
import { readChunks } from './chunks.ts';
import type { PayloadSource } from './source.ts';

/** A source that assembles the chunks of the wanted digest. */
export function inboxSource(client: KubeClient, namespace: string): PayloadSource {
  return {
    async fetch({ release, digest }, signal) {
      const read = await readChunks(client, { namespace, release, holds: 'payload' }, signal);
      if (read.type === 'unavailable') return read;
      const joined = joinChunks(digest, read.configMaps);
      if (joined.ok) return { type: 'archive', archive: joined.value };
      const [first] = joined.problems;
      if (first?.reason === 'PayloadIncomplete') return { type: 'incomplete', problem: first };
      return { type: 'broken', problems: joined.problems };
    },
  };
}
