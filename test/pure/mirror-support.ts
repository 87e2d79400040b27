import { gzipSync } from 'node:zlib';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { Digest } from '../../constructs/lib/digest.ts';
import { scratchFolder } from '../../constructs/lib/scratchfolder.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import type { HttpClient } from '../../renderer/http/types.ts';
import type { ContentSource, MirrorRoot } from '../../renderer/mirror/content.ts';
import { type CopyResult, copyAll } from '../../renderer/mirror/copy.ts';
import { layoutSource, layoutTarget } from '../../renderer/mirror/layouts.ts';
import { planMirror } from '../../renderer/mirror/plan.ts';
import { registrySource, registryTarget } from '../../renderer/mirror/registries.ts';
import { withBreaker } from '../../renderer/oci/breaker.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { type LayoutEntry, prepareLayout, readLayout, writeLayoutIndex } from '../../renderer/oci/layout.ts';
import { openSession, type RegistrySession } from '../../renderer/oci/session.ts';
import { imageIndexType, imageManifestType } from '../standins/artifacts.ts';
import type { StandInRegistry } from '../standins/registry.ts';

const layerType = 'application/vnd.oci.image.layer.v1.tar+gzip';
const attestationType = 'application/vnd.in-toto+json';
/** A type that no tool of ours knows. */
export const oddType = 'application/vnd.example.odd.v7+json';

/** Where an image is put: a stand-in, or any other registry. */
export interface Shelf {
  blob(bytes: Uint8Array): Digest | Promise<Digest>;
  manifest(tag: string | undefined, mediaType: string, content: object): Digest | Promise<Digest>;
}

export const shelfOf = (registry: StandInRegistry, repository: string): Shelf => ({
  blob: (bytes) => registry.putBlob(repository, bytes),
  manifest: (tag, mediaType, content) => registry.putManifest(repository, tag ?? 'unnamed', mediaType, content),
});

/** A layer whose content depends on `seed` alone. */
export const layerOf = (seed: string, size = 2_000): Buffer => gzipSync(Buffer.alloc(size, seed), { level: 0 });

/**
 * An image as builders make it: an index of two platforms, an attestation, and an artifact of a type of its own whose
 * manifest names its one blob in a way that is not ours.
 */
export async function putWholeImage(shelf: Shelf, tag: string, layers: readonly Buffer[]): Promise<Digest> {
  const describe = async (mediaType: string, bytes: Buffer) => ({
    mediaType,
    digest: await shelf.blob(bytes),
    size: bytes.length,
  });
  const manifest = async (config: object, list: readonly { mediaType: string; bytes: Buffer }[], more: object = {}) => {
    const content = {
      schemaVersion: 2,
      mediaType: imageManifestType,
      config: await describe('application/vnd.oci.image.config.v1+json', Buffer.from(JSON.stringify(config))),
      layers: await Promise.all(list.map(({ mediaType, bytes }) => describe(mediaType, bytes))),
      ...more,
    };
    const digest = await shelf.manifest(undefined, imageManifestType, content);
    return { mediaType: imageManifestType, digest, size: JSON.stringify(content).length };
  };
  const platforms = [];
  for (const architecture of ['amd64', 'arm64']) {
    const all = [...layers, layerOf(`${tag} ${architecture}`)];
    const made = await manifest(
      { os: 'linux', architecture, tag },
      all.map((bytes) => ({ mediaType: layerType, bytes })),
    );
    platforms.push({ ...made, platform: { os: 'linux', architecture } });
  }
  const attested = await manifest({}, [{ mediaType: attestationType, bytes: Buffer.from(`{"of":"${tag}"}`) }]);
  return shelf.manifest(tag, imageIndexType, {
    schemaVersion: 2,
    mediaType: imageIndexType,
    manifests: [
      ...platforms,
      {
        ...attested,
        platform: { os: 'unknown', architecture: 'unknown' },
        annotations: { 'vnd.docker.reference.type': 'attestation-manifest' },
      },
    ],
  });
}

export interface Copier {
  readonly http: HttpClient;
  toRegistry(roots: readonly MirrorRoot[], rules: { match: string; mirror: string }[]): Promise<CopyResult>;
  toLayout(roots: readonly MirrorRoot[], folder: string): Promise<CopyResult>;
  fromLayout(
    folder: string,
    roots: readonly MirrorRoot[],
    rules: { match: string; mirror: string }[],
  ): Promise<CopyResult>;
}

/** Copies with short waits between registries that may be contacted. */
export function copier(hosts: readonly string[], scratch: string, signal = new AbortController().signal): Copier {
  const retry = { attempts: 4, initialMs: 1, factor: 1, maxMs: 30, jitter: 0 };
  const http = createHttpClient({
    allowedHosts: hosts,
    allowField: 'spec.registries',
    clock: systemClock,
    random: () => 0.5,
    retry,
  });
  const session = openSession({ http, credentials: anonymous });
  const common = {
    concurrency: 3,
    onProgress: () => undefined,
    onDone: () => undefined,
    signal,
  };
  const intoRegistry = async (
    source: ContentSource,
    roots: readonly MirrorRoot[],
    rules: { match: string; mirror: string }[],
    to: RegistrySession,
  ): Promise<CopyResult> => {
    const plan = planMirror(roots, rules, undefined, 'cluster.yaml');
    if (plan.problems.length > 0) throw new Error(JSON.stringify(plan.problems));
    const spool = await scratchFolder(scratch, 'spool-');
    const target = registryTarget(to, spool.path, { clock: systemClock, random: () => 0.5, retry });
    return copyAll(plan.jobs, { ...common, source, target }).finally(spool.dispose);
  };
  return {
    http,
    toRegistry: (roots, rules) => {
      const unbroken = withBreaker(session);
      return intoRegistry(registrySource(unbroken), roots, rules, unbroken);
    },
    fromLayout: (folder, roots, rules) => intoRegistry(layoutSource(folder), roots, rules, session),
    async toLayout(roots, folder) {
      const before = await readLayout(folder);
      await prepareLayout(folder);
      const spool = await scratchFolder(folder, '.part-');
      const named: LayoutEntry[] = [];
      const jobs = roots.map((root) => ({ root, to: root.ref }));
      const target = layoutTarget(folder, spool.path, named);
      const source = registrySource(withBreaker(session));
      const result = await copyAll(jobs, { ...common, source, target }).finally(spool.dispose);
      await writeLayoutIndex(folder, before.kind === 'read' ? before.entries : [], named);
      return result;
    },
  };
}

export const rootOf = (host: string, repository: string, tag: string, digest: Digest): MirrorRoot => ({
  ref: { registry: host, repository, tag, digest },
});

export const digestsIn = (registry: StandInRegistry, repository: string): string[] =>
  registry
    .blobs()
    .filter((key) => key.startsWith(`${repository} `))
    .map((key) => key.split(' ')[1] ?? '');
