import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { Reference } from './reference.ts';
import { formatReference } from './reference.ts';
import { descriptors, type RegistryClient } from './registry.ts';
import { failed, type Manifest, type RegistryOutcome } from './types.ts';

function platformText(platform: JsonObject): string | undefined {
  const [os, architecture, variant] = [platform.os, platform.architecture, platform.variant];
  if (typeof os !== 'string' || typeof architecture !== 'string') return undefined;
  // Attestations travel in an index under this name; nothing runs on it.
  if (os === 'unknown' || os === '' || architecture === '') return undefined;
  return typeof variant === 'string' && variant !== '' ? `${os}/${architecture}/${variant}` : `${os}/${architecture}`;
}

/** `os/architecture[/variant]` of everything an image runs on, sorted: from its index, or from the configuration of a single image. */
export async function platformsOf(
  client: RegistryClient,
  ref: Reference,
  manifest: Manifest,
  signal?: AbortSignal,
): Promise<RegistryOutcome<string[]>> {
  if (manifest.kind === 'index') {
    const found = descriptors(manifest, 'manifests')
      .map((entry) => (isObject(entry.platform) ? platformText(entry.platform) : undefined))
      .filter((text): text is string => text !== undefined);
    return { ok: true, value: [...new Set(found)].sort() };
  }
  const config = manifest.content.config;
  const invalid = (message: string): RegistryOutcome<string[]> =>
    failed('invalid', `${formatReference(ref)}: ${message}`);
  if (!isObject(config) || typeof config.digest !== 'string') return invalid('the manifest names no configuration');
  const blob = await client.blob(ref, config.digest, 4 * 1024 * 1024, signal);
  if (!blob.ok) return blob;
  try {
    const parsed: unknown = JSON.parse(Buffer.from(blob.value).toString('utf8'));
    const platform = isObject(parsed) ? platformText(parsed) : undefined;
    return platform === undefined ? invalid('the configuration names no platform') : { ok: true, value: [platform] };
  } catch {
    return invalid('the configuration is not JSON');
  }
}
