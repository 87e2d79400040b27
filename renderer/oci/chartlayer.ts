import { type Digest, isDigest } from '../../constructs/lib/digest.ts';
import { formatReference, type Reference } from './reference.ts';
import { descriptors, type RegistryClient } from './registry.ts';
import { failed, type RegistryOutcome } from './types.ts';

/** Media type of the layer that holds a chart's archive. */
export const chartLayerType = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

export interface ChartLayer {
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}

/** Digest and size of the one chart layer that the reference's manifest names. */
async function findLayer(
  client: RegistryClient,
  ref: Reference,
  signal?: AbortSignal,
): Promise<RegistryOutcome<{ digest: Digest; size: number }>> {
  const manifest = await client.manifest(ref, signal);
  if (!manifest.ok) return manifest;
  const what = formatReference(ref);
  const layers = descriptors(manifest.value, 'layers').filter((layer) => layer.mediaType === chartLayerType);
  const [layer, another] = layers;
  if (manifest.value.kind === 'index' || layer === undefined || another !== undefined)
    return failed('invalid', `${what} is not a Helm chart: ${layers.length} layers of type ${chartLayerType}`);
  if (!isDigest(layer.digest) || typeof layer.size !== 'number')
    return failed('invalid', `${what}: the chart layer has no sha256 digest or size`);
  return { ok: true, value: { digest: layer.digest, size: layer.size } };
}

/**
 * The archive of a chart in a registry. The pinned digest is that of the layer, so a reference without a tag is enough
 * once it is known; a tag that leads to another layer is a mismatch, found before the layer is fetched.
 */
export async function pullChartLayer(
  client: RegistryClient,
  ref: Reference,
  expected: Digest | undefined,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<RegistryOutcome<ChartLayer>> {
  const what = formatReference(ref);
  let digest = expected;
  if (ref.tag !== undefined || ref.digest !== undefined) {
    const layer = await findLayer(client, ref, signal);
    if (!layer.ok) return layer;
    if (expected !== undefined && layer.value.digest !== expected)
      return failed('digestMismatch', `${what}: its chart layer is ${layer.value.digest}, not ${expected}`);
    if (layer.value.size > maxBytes)
      return failed('tooLarge', `${what}: the chart layer has ${layer.value.size} bytes, more than ${maxBytes}`);
    digest = layer.value.digest;
  }
  if (digest === undefined)
    return failed('invalid', `${what} names neither a tag nor a digest`, 'add a tag to the source');
  const blob = await client.blob(ref, digest, maxBytes, signal);
  return blob.ok ? { ok: true, value: { digest, bytes: blob.value } } : blob;
}
