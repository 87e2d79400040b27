import type { Digest } from '../../constructs/lib/digest.ts';
import type { StandInRegistry } from './registry.ts';

const chartType = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';
export const imageManifestType = 'application/vnd.oci.image.manifest.v1+json';
export const imageIndexType = 'application/vnd.oci.image.index.v1+json';

/** Stores a chart's archive the way `helm push` does. */
export function putChart(
  registry: StandInRegistry,
  repository: string,
  tag: string,
  archive: Uint8Array,
): { layer: Digest; manifest: Digest } {
  const layer = registry.putBlob(repository, archive);
  const config = registry.putBlob(repository, Buffer.from('{"name":"kube-ovn"}'));
  const manifest = registry.putManifest(repository, tag, imageManifestType, {
    schemaVersion: 2,
    mediaType: imageManifestType,
    config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', digest: config, size: 19 },
    layers: [{ mediaType: chartType, digest: layer, size: archive.length }],
  });
  return { layer, manifest };
}

/** Stores one image per platform (`linux/amd64`), under an index when there are several; the digest is what a lock names. */
export function putImage(
  registry: StandInRegistry,
  repository: string,
  tag: string,
  platforms: readonly string[],
): Digest {
  const entries = platforms.map((platform) => {
    const [os, architecture] = platform.split('/');
    const config = registry.putBlob(repository, Buffer.from(JSON.stringify({ os, architecture, tag })));
    const content = {
      schemaVersion: 2,
      mediaType: imageManifestType,
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: config, size: 1 },
      layers: [],
    };
    const digest = registry.putManifest(repository, `${tag}-${architecture}`, imageManifestType, content);
    return { content, entry: { mediaType: imageManifestType, digest, size: 1, platform: { os, architecture } } };
  });
  const [only, another] = entries;
  if (only !== undefined && another === undefined)
    return registry.putManifest(repository, tag, imageManifestType, only.content);
  const attestation = {
    mediaType: imageManifestType,
    digest: `sha256:${'0'.repeat(64)}`,
    size: 1,
    platform: { os: 'unknown', architecture: 'unknown' },
  };
  return registry.putManifest(repository, tag, imageIndexType, {
    schemaVersion: 2,
    mediaType: imageIndexType,
    manifests: [...entries.map(({ entry }) => entry), attestation],
  });
}
