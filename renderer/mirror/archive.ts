/** Charts that are no artifact of a registry at their source become one, the same for everybody. */
import type { LockedChart } from '../../constructs/api/lock.ts';
import { type Digest, sha256Digest } from '../../constructs/lib/digest.ts';
import { canonicalJson } from '../../constructs/lib/json.ts';
import type { HttpClient } from '../http/types.ts';
import { writeParts } from '../oci/blobfile.ts';
import { chartLayerType } from '../oci/chartlayer.ts';
import { rawManifest } from '../oci/pullmanifest.ts';
import { failed, httpFailure, type RegistryOutcome } from '../oci/types.ts';
import type { ContentSource } from './content.ts';

export interface MadeArtifact {
  readonly manifest: Digest;
  /** Manifest and configuration by digest. */
  readonly parts: ReadonlyMap<Digest, Uint8Array>;
}

/** The artifact that `helm push` would make of an archive, as far as a lock knows it. */
export function chartArtifact(chart: Omit<LockedChart, 'kubeVersion'>): MadeArtifact {
  const { name, version, appVersion } = chart;
  const config = Buffer.from(canonicalJson({ apiVersion: 'v2', name, version, appVersion }));
  const manifest = Buffer.from(
    canonicalJson({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: {
        mediaType: 'application/vnd.cncf.helm.config.v1+json',
        digest: sha256Digest(config),
        size: config.length,
      },
      layers: [{ mediaType: chartLayerType, digest: chart.digest, size: chart.size }],
    }),
  );
  const parts = new Map([config, manifest].map((bytes) => [sha256Digest(bytes), bytes] as const));
  return { manifest: sha256Digest(manifest), parts };
}

/** The tag of a chart's version, by the convention of Helm. */
export const versionTag = (version: string): string => version.replaceAll('+', '_');

/** A source that also has what was made here, and archives that are fetched by URL. */
export function withArchives(
  base: ContentSource,
  made: ReadonlyMap<string, Uint8Array>,
  urls: ReadonlyMap<string, string>,
  http: HttpClient,
): ContentSource {
  return {
    async manifest(ref, mediaType, signal) {
      const bytes = made.get(ref.digest ?? '');
      if (bytes === undefined) return base.manifest(ref, mediaType, signal);
      return { ok: true, value: rawManifest(bytes, sha256Digest(bytes), '') };
    },
    async blob(ref, blob, spool, onBytes, signal) {
      const bytes = made.get(blob.digest);
      const url = urls.get(blob.digest);
      if (bytes === undefined && url === undefined) return base.blob(ref, blob, spool, onBytes, signal);
      if (bytes !== undefined) await writeParts(spool, [bytes], onBytes);
      else if (url !== undefined) {
        const fetched = await fetchArchive(http, url, blob, spool, signal);
        if (!fetched.ok) return fetched;
        onBytes(blob.size);
      }
      return { ok: true, value: { file: spool, ours: true } };
    },
  };
}

async function fetchArchive(
  http: HttpClient,
  url: string,
  blob: { readonly digest: Digest; readonly size: number },
  file: string,
  signal: AbortSignal | undefined,
): Promise<RegistryOutcome<undefined>> {
  const outcome = await http.request({
    url,
    maxBytes: blob.size,
    into: (chunks) => writeParts(file, chunks),
    ...(signal === undefined ? {} : { signal }),
  });
  if (!outcome.ok) return { ok: false, failure: httpFailure(outcome.failure) };
  const { status, digest, url: from } = outcome.reply;
  if (status !== 200) return failed(status === 404 ? 'notFound' : 'unavailable', `${from} answered ${status}`);
  if (digest !== blob.digest) return failed('digestMismatch', `${from}: the archive received is ${digest}`);
  return { ok: true, value: undefined };
}
