import { findBlob } from '../oci/findblob.ts';
import { mountBlob } from '../oci/mountblob.ts';
import { pullBlob } from '../oci/pullblob.ts';
import { pullManifest } from '../oci/pullmanifest.ts';
import { type PushTimes, pushBlob } from '../oci/pushblob.ts';
import { pushManifest } from '../oci/pushmanifest.ts';
import { referenceName } from '../oci/reference.ts';
import type { RegistrySession } from '../oci/session.ts';
import type { ContentSource, ContentTarget } from './content.ts';

/** Content of the registries that references name. */
export function registrySource(session: RegistrySession): ContentSource {
  return {
    manifest: (ref, mediaType, signal) => pullManifest(session, ref, mediaType, signal),
    async blob(ref, blob, spool, onBytes, signal) {
      const pulled = await pullBlob(session, ref, blob, spool, onBytes, signal);
      return pulled.ok ? { ok: true, value: { file: spool, ours: true } } : pulled;
    },
  };
}

/** Registries as a target: every reference says which. */
export function registryTarget(session: RegistrySession, spool: string, times: PushTimes): ContentTarget {
  /** Repositories, by registry and digest, that are known to have a blob. */
  const homes = new Map<string, string>();
  const homeKey = (registry: string, digest: string): string => `${registry} ${digest}`;
  return {
    spool,
    keptUnder: referenceName,
    async hasBlob(ref, blob, signal) {
      const key = homeKey(ref.registry, blob.digest);
      const found = await findBlob(session, ref, blob.digest, signal);
      if (!found.ok) return found;
      const home = homes.get(key);
      const mounted = !found.value && home !== undefined && (await mountBlob(session, ref, blob.digest, home, signal));
      if (found.value) homes.set(key, ref.repository);
      return { ok: true, value: found.value || mounted };
    },
    async putBlob(ref, blob, { file }, signal) {
      const pushed = await pushBlob(session, ref, blob, file, times, signal);
      if (pushed.ok) homes.set(homeKey(ref.registry, blob.digest), ref.repository);
      return pushed;
    },
    putManifest(ref, manifest, signal) {
      const { registry, repository } = ref;
      return pushManifest(session, { registry, repository, digest: manifest.digest }, manifest, signal);
    },
    async finish(_root, ref, top, signal) {
      if (ref.tag === undefined) return { ok: true, value: undefined };
      const { registry, repository, tag } = ref;
      const tagged = await pushManifest(session, { registry, repository, tag }, top, signal);
      return tagged.ok ? { ok: true, value: undefined } : tagged;
    },
  };
}
