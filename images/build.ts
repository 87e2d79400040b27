import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Digest, sha256Digest } from '../constructs/lib/digest.ts';
import { canonicalJson, type JsonObject } from '../constructs/lib/json.ts';
import { type Blob, type LayerEntry, writeLayer } from './layer.ts';

const mediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
} as const;

/** What an image runs and as whom. */
export interface ImageConfig {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  /** Numeric `uid` or `uid:gid`. */
  readonly user?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly workingDir?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface ImageInput {
  /** Folder that becomes (or is added to as) an OCI image layout. */
  readonly layout: string;
  /** Layers from the lowest up. */
  readonly layers: readonly (readonly LayerEntry[])[];
  readonly config: ImageConfig;
  readonly architecture: ImageArchitecture;
}

export type ImageArchitecture = 'amd64' | 'arm64';

/** A blob of the layout with what it is; the order of a push is the order of this list. */
export interface ImagePart extends Blob {
  readonly mediaType: string;
}

/** An image in a layout: an index with one platform, its manifest, config and layers. */
export interface BuiltImage {
  readonly layout: string;
  /** The index's digest: what `name@sha256:...` names. */
  readonly digest: Digest;
  readonly index: ImagePart;
  readonly manifest: ImagePart;
  readonly blobs: readonly ImagePart[];
}

/** The architecture of the running machine in OCI's words. @throws Error for one that has no pinned Node. */
export function hostArchitecture(arch: string): ImageArchitecture {
  if (arch === 'x64') return 'amd64';
  if (arch === 'arm64') return 'arm64';
  throw new Error(`images are built for x64 and arm64, not ${arch}`);
}

/** Builds an image from files, without an engine. The digest depends on the entries and the config alone. */
export async function buildImage(input: ImageInput): Promise<BuiltImage> {
  const blobs = join(input.layout, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const layers: ImagePart[] = [];
  for (const entries of input.layers) {
    layers.push({ ...(await writeLayer(blobs, entries)), mediaType: mediaTypes.layer });
  }
  const platform = { architecture: input.architecture, os: 'linux' };
  const config = await writeJson(blobs, mediaTypes.config, {
    ...platform,
    created: '1970-01-01T00:00:00Z',
    config: configJson(input.config),
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
    history: layers.map(() => ({ created: '1970-01-01T00:00:00Z', created_by: 'keelson image build' })),
  });
  const manifest = await writeJson(blobs, mediaTypes.manifest, {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: descriptor(config),
    layers: layers.map(descriptor),
  });
  const indexContent = {
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [{ ...descriptor(manifest), platform }],
  };
  const index = await writeJson(blobs, mediaTypes.index, indexContent);
  await writeWhole(join(input.layout, 'oci-layout'), canonicalJson({ imageLayoutVersion: '1.0.0' }));
  await writeWhole(
    join(input.layout, 'index.json'),
    canonicalJson({ schemaVersion: 2, mediaType: mediaTypes.index, manifests: [descriptor(index)] }),
  );
  await removeStale(blobs, [index, manifest, config, ...layers]);
  return { layout: input.layout, digest: index.digest, index, manifest, blobs: [config, ...layers] };
}

function descriptor(part: ImagePart): JsonObject {
  return { mediaType: part.mediaType, digest: part.digest, size: part.size };
}

function configJson(config: ImageConfig): JsonObject {
  return {
    ...(config.entrypoint === undefined ? {} : { Entrypoint: [...config.entrypoint] }),
    ...(config.command === undefined ? {} : { Cmd: [...config.command] }),
    ...(config.user === undefined ? {} : { User: config.user }),
    ...(config.workingDir === undefined ? {} : { WorkingDir: config.workingDir }),
    ...(config.env === undefined ? {} : { Env: Object.entries(config.env).map(([name, value]) => `${name}=${value}`) }),
    ...(config.labels === undefined ? {} : { Labels: { ...config.labels } }),
  };
}

async function writeJson(blobs: string, mediaType: string, value: JsonObject): Promise<ImagePart> {
  const bytes = Buffer.from(canonicalJson(value));
  const digest = sha256Digest(bytes);
  await writeWhole(join(blobs, digest.slice('sha256:'.length)), bytes);
  return { digest, size: bytes.length, mediaType };
}

/** Writes a file that others, of this process too, may be reading or writing: they see an old or a new one, whole. */
async function writeWhole(file: string, content: string | Uint8Array): Promise<void> {
  const fresh = `${file}.${randomUUID()}.new`;
  await writeFile(fresh, content);
  await rename(fresh, file);
}

/** Milliseconds after which a blob that the image no longer has is removed: nobody pushes an older build any more. */
const staleMs = 3_600_000;

async function removeStale(blobs: string, parts: readonly Blob[]): Promise<void> {
  const used = new Set(parts.map((part) => part.digest.slice('sha256:'.length)));
  for (const name of await readdir(blobs)) {
    const file = join(blobs, name);
    const written = await stat(file).catch(() => undefined);
    if (!used.has(name) && written !== undefined && Date.now() - written.mtimeMs > staleMs)
      await rm(file, { force: true });
  }
}
