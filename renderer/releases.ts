import { fluxOf } from '../constructs/api/cluster.ts';
import type { Tree } from '../constructs/api/tree.ts';
import type { JsonObject } from '../constructs/lib/json.ts';
import { describeObject, identityOf, objectId } from '../constructs/lib/names.ts';
import type { Problem } from '../constructs/lib/problems.ts';
import type { DomainRelease, DomainRenderer, ReleaseObject } from './domain.ts';
import type { ImageSearch } from './images/find.ts';
import { pinImages } from './images/pin.ts';
import type { LoadedCluster } from './load/load.ts';
import { settingsFiles } from './load/settings.ts';
import { manifestRelease } from './manifests/manifests.ts';

/** All releases of a cluster before images are pinned, ordered by name. */
export async function collectReleases(
  loaded: LoadedCluster,
  domains: readonly DomainRenderer[],
  signal?: AbortSignal,
  previous?: Tree,
): Promise<{ releases: DomainRelease[]; problems: Problem[]; warnings: Problem[]; changes: Problem[] }> {
  const releases: DomainRelease[] = [];
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const changes: Problem[] = [];
  for (const set of loaded.manifests) {
    const made = manifestRelease(set);
    problems.push(...made.problems);
    releases.push(made.release);
  }
  for (const domain of domains) {
    const made = await domain.render(loaded, signal, previous);
    problems.push(...made.problems);
    warnings.push(...made.warnings);
    changes.push(...(made.changes ?? []));
    releases.push(...made.releases);
  }
  releases.sort((a, b) => (a.name < b.name ? -1 : 1));
  problems.push(...ownership(loaded, releases), ...settingsProblems(loaded, releases));
  problems.push(...artifactProblems(loaded, releases));
  return { releases, problems, warnings, changes };
}

/** What decides, in the objects of a release, which strings are images. */
export const imageSearch = (loaded: LoadedCluster, release: DomainRelease): ImageSearch => ({
  repositories: [...(release.imageRepositories ?? [])],
  imageHosts: loaded.cluster.spec.allow.imageHosts,
});

/** The release with every image reference pinned by the lock; its objects must not be used when there are problems. */
export function pinRelease(
  loaded: LoadedCluster,
  release: DomainRelease,
): { release: DomainRelease; problems: Problem[] } {
  const objects = release.phases.flatMap((phase) => phase.objects);
  const pinned = pinImages(
    objects.map((source) => source.object),
    {
      ...imageSearch(loaded, release),
      images: loaded.lock?.spec.images ?? [],
      registries: loaded.cluster.spec.registries,
    },
  );
  const queue = [...pinned.objects];
  const places = new Map(objects.map((source) => [labelOf(source.object), source]));
  const phases = release.phases.map((phase) => ({
    ...phase,
    objects: phase.objects.map((source): ReleaseObject => ({ ...source, object: queue.shift() ?? source.object })),
  }));
  const problems = pinned.problems.map((problem): Problem => {
    const source = places.get(problem.object ?? '');
    if (source === undefined) return problem;
    return {
      remedy: 'write registry/repository:tag or registry/repository@sha256:…',
      ...problem,
      file: source.origin,
      ...(source.line === undefined ? {} : { line: source.line }),
    };
  });
  return { release: { ...release, phases }, problems };
}

const labelOf = (object: JsonObject): string => describeObject(identityOf(object));

/** One object has one release; and what decides over the executor is not for payloads to change. */
function ownership(loaded: LoadedCluster, releases: readonly DomainRelease[]): Problem[] {
  const problems: Problem[] = [];
  const { namespace } = loaded.cluster.spec.executor;
  const first = new Map<string, { release: string; source: ReleaseObject }>();
  for (const release of releases)
    for (const source of release.phases.flatMap((phase) => phase.objects)) {
      const identity = identityOf(source.object);
      const place = {
        file: source.origin,
        ...(source.line === undefined ? {} : { line: source.line }),
        object: describeObject(identity),
      };
      const id = objectId(identity);
      const other = first.get(id);
      if (other === undefined) first.set(id, { release: release.name, source });
      else if (other.release !== release.name)
        problems.push({
          reason: 'DuplicateObject',
          message: `releases ${other.release} and ${release.name} both hold it; the other one is from ${other.source.origin}`,
          remedy: 'keep it in one of the two',
          ...place,
        });
      if (identity.namespace === namespace || id === `/Namespace//${namespace}`)
        problems.push({
          reason: 'SystemNamespace',
          message: `namespace ${namespace} belongs to the executor; no payload writes there`,
          remedy: 'use another namespace',
          ...place,
        });
    }
  return problems;
}

/** Releases that can not come out of an artifact. */
function artifactProblems(loaded: LoadedCluster, releases: readonly DomainRelease[]): Problem[] {
  const { artifactFor } = fluxOf(loaded.cluster.spec.delivery);
  const at = { file: `${loaded.folder}/${settingsFiles.cluster}`, path: 'spec.delivery.flux.artifactFor' };
  return artifactFor.flatMap((name): Problem[] => {
    const release = releases.find((each) => each.name === name);
    if (release?.domain === 'manifests') return [];
    const known = releases.filter(({ domain }) => domain === 'manifests').map((each) => each.name);
    const remedy = `name releases of plain manifests: ${known.join(', ') || 'there are none'}`;
    if (release === undefined)
      return [{ reason: 'UnknownRelease', message: `there is no release ${name}`, ...at, value: name, remedy }];
    const message = `release ${name} brings the network, and an artifact is fetched over it`;
    return [{ reason: 'ArtifactNeedsNetwork', message, ...at, value: name, remedy }];
  });
}

/** Settings of releases that do not exist, and orders that can not be kept. */
function settingsProblems(loaded: LoadedCluster, releases: readonly DomainRelease[]): Problem[] {
  const names = new Set(releases.map((release) => release.name));
  const known = [...names].join(', ') || 'none';
  const file = `${loaded.folder}/${settingsFiles.cluster}`;
  const settings = loaded.cluster.spec.releases ?? {};
  const problems: Problem[] = [];
  for (const [name, delivery] of Object.entries(settings)) {
    const path = `spec.releases.${name}`;
    if (!names.has(name))
      problems.push({
        reason: 'UnknownRelease',
        message: `there is no release ${name}`,
        file,
        path,
        remedy: `correct the name; the releases are ${known}`,
      });
    const phases = releases.find((release) => release.name === name)?.phases.map((phase) => phase.name) ?? [];
    for (const phase of delivery.suspendPhases ?? [])
      if (names.has(name) && !phases.includes(phase))
        problems.push({
          reason: 'UnknownPhase',
          message: `release ${name} has no phase ${phase}`,
          file,
          path: `${path}.suspendPhases`,
          remedy: `correct the name; the phases are ${phases.join(', ')}`,
        });
    for (const needed of delivery.dependsOn ?? [])
      if (!names.has(needed.name))
        problems.push({
          reason: 'UnknownRelease',
          message: `release ${name} depends on ${needed.name}, which does not exist`,
          file,
          path: `${path}.dependsOn`,
          remedy: `correct the name; the releases are ${known}`,
        });
  }
  const circle = findCircle(
    new Map(Object.entries(settings).map(([name, d]) => [name, (d.dependsOn ?? []).map((n) => n.name)])),
  );
  if (circle !== undefined)
    problems.push({
      reason: 'DependencyCycle',
      message: `releases wait for each other: ${circle.join(' -> ')}`,
      file,
      path: 'spec.releases',
      remedy: 'remove one of the dependsOn entries',
    });
  return problems;
}

function findCircle(edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const visit = (name: string, path: readonly string[]): string[] | undefined => {
    const at = path.indexOf(name);
    if (at >= 0) return [...path.slice(at), name];
    if (done.has(name)) return undefined;
    done.add(name);
    for (const next of edges.get(name) ?? []) {
      const found = visit(next, [...path, name]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  for (const name of [...edges.keys()].sort()) {
    const found = visit(name, []);
    if (found !== undefined) return found;
  }
  return undefined;
}
