import { type PayloadIndex, payloadObjectId } from '../constructs/api/payload.ts';
import type { Tree } from '../constructs/api/tree.ts';
import type { JsonObject } from '../constructs/lib/json.ts';
import type { Problem } from '../constructs/lib/problems.ts';
import type { ParseDocuments } from './cache/documents.ts';
import { type DomainRelease, type DomainRenderer, specKinds } from './domain.ts';
import { type LoadedCluster, loadCluster } from './load/load.ts';
import type { ClusterFiles } from './load/source.ts';
import { pullSecretWarnings } from './manifests/pullsecrets.ts';
import { type BuiltPayload, buildPayload, type PayloadContext } from './payload/build.ts';
import { payloadChunks, payloadFiles } from './payload/files.ts';
import { type Signer, signPayload } from './payload/sign.ts';
import { collectReleases, pinRelease } from './releases.ts';
import { courierFiles, markSystem } from './sync/courier.ts';
import { departedObjects } from './sync/departed.ts';
import { releasesUnit } from './sync/releases.ts';
import { specsUnit } from './sync/specs.ts';
import { executorImage, systemUnit } from './sync/system.ts';
import { makeTree, unitFiles } from './sync/tree.ts';

export interface RenderInput {
  readonly source: ClusterFiles;
  readonly domains: readonly DomainRenderer[];
  /** Version of this renderer, for provenance. */
  readonly keelson: string;
  /** Commit of the specs, for provenance. */
  readonly specCommit?: string;
  /** Signs payloads; without it new payloads stay unsigned. */
  readonly signer?: Signer;
  /** The tree that was published before; payloads that did not change keep their index. */
  readonly previous?: Tree;
  /** Takes back the rights to objects that payloads no longer name. */
  readonly forgetKinds?: boolean;
  /** Reads the files' documents; one that knows them from before saves time. */
  readonly parse?: ParseDocuments;
  readonly signal?: AbortSignal;
}

export interface RenderedRelease {
  readonly name: string;
  readonly index: PayloadIndex;
  readonly objects: ReadonlyMap<string, JsonObject>;
}

export interface Rendered {
  readonly loaded: LoadedCluster;
  readonly releases: readonly RenderedRelease[];
  readonly tree: Tree;
  readonly warnings: readonly Problem[];
  /** Warnings about the change from the tree that was published before. */
  readonly changes: readonly Problem[];
}

export type RenderOutcome =
  | { readonly ok: true; readonly rendered: Rendered }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * The rendered tree of a cluster: a function of its files and of bytes that its lock names, and of nothing else. When
 * anything is wrong there is no tree, and every problem is told.
 */
export async function renderCluster(input: RenderInput): Promise<RenderOutcome> {
  const read = loadCluster(input.source, specKinds(input.domains), input.parse);
  if (!read.ok) return read;
  const { loaded } = read;
  const collected = await collectReleases(loaded, input.domains, input.signal, input.previous);
  const problems = [...collected.problems];
  const image = executorImage(loaded);
  problems.push(...image.problems);
  const pinned = collected.releases.map((release) => pinRelease(loaded, release));
  problems.push(...pinned.flatMap((release) => release.problems));
  if (problems.length > 0) return { ok: false, problems };
  const context = payloadContext(input, loaded);
  const built = pinned.map(({ release }) => ({ release, ...buildPayload(release, context) }));
  const failed = built.flatMap((result) => result.problems);
  if (failed.length > 0 || image.image === undefined) return { ok: false, problems: failed };
  const complete = built.flatMap(({ release, payload }) => (payload === undefined ? [] : [{ release, payload }]));
  const rendered = await toTree(input, loaded, complete, image.image);
  const { registries } = loaded.cluster.spec;
  const unnamed = pinned.flatMap(({ release }) => pullSecretWarnings(release, registries));
  const warnings = [...loaded.warnings, ...collected.warnings, ...unnamed];
  return { ok: true, rendered: { ...rendered, warnings, changes: collected.changes } };
}

function payloadContext(input: RenderInput, loaded: LoadedCluster): PayloadContext {
  const uid = loaded.cluster.spec.clusterUID ?? loaded.inventory?.spec.clusterUID;
  return {
    cluster: loaded.cluster.metadata.name,
    ...(uid === undefined ? {} : { clusterUID: uid }),
    keelson: input.keelson,
    ...(input.specCommit === undefined ? {} : { specCommit: input.specCommit }),
    inputs: loaded.inputs,
  };
}

async function toTree(
  input: RenderInput,
  loaded: LoadedCluster,
  built: readonly { release: DomainRelease; payload: BuiltPayload }[],
  image: string,
): Promise<Omit<Rendered, 'warnings' | 'changes'>> {
  const files = new Map<string, Uint8Array>();
  const releases: RenderedRelease[] = [];
  const delivered = [];
  for (const { payload } of built) {
    const folder = `payload/${payload.release}`;
    const signed = signPayload(payload, input.signer, input.previous?.get(`${folder}/index.json`));
    for (const [path, bytes] of payloadFiles(payload, signed)) files.set(`${folder}/${path}`, bytes);
    const chunks = await payloadChunks(payload, signed.index, loaded.cluster.spec.executor.namespace);
    delivered.push({ name: payload.release, digest: payload.digest, chunks });
    releases.push({ name: payload.release, index: signed.index, objects: payload.objects });
  }
  const objects = built.flatMap(({ payload }) => [...payload.objects.values()]);
  const requires = built.flatMap(({ release }) => release.requires);
  const current = built.flatMap(({ payload }) => payload.content.phases.flatMap((p) => p.objects.map(payloadObjectId)));
  const departed = departedObjects(input.forgetKinds === true ? undefined : input.previous, new Set(current));
  const domainReleases = built.map(({ release }) => release);
  const system = systemUnit({ loaded, objects, requires, departed, releases: domainReleases }, image);
  const sync = {
    '10-system': unitFiles('10-system', markSystem(loaded.cluster, system)),
    '20-releases': unitFiles('20-releases', releasesUnit(loaded, delivered)),
    '30-specs': unitFiles('30-specs', specsUnit(loaded)),
  };
  for (const part of [...Object.values(sync), courierFiles(loaded.cluster, sync, delivered)])
    for (const [path, bytes] of part) files.set(path, bytes);
  return { loaded, releases, tree: makeTree(loaded.cluster.metadata.name, delivered, files, departed) };
}
