import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FluxImages } from '../../test/cluster/flux/images.ts';
import { fluxNamespace } from '../../test/cluster/flux/objects.ts';
import { fluxRuns, installFlux } from '../../test/cluster/flux/start.ts';
import { type LocalGit, serveGit } from '../../test/cluster/local/git.ts';
import { carriedByFlux } from '../../test/cluster/local/specs.ts';
import type { Cluster } from '../../test/cluster/types.ts';
import type { Place } from './place.ts';
import type { Say } from './say.ts';

/** How often Flux looks for a push. */
const interval = '10s';
const carriedLimitMs = 180_000;

/** Serves the rendered repository to the cluster, and names Flux as its courier in the specs. */
export async function nameFlux(cluster: Cluster, place: Place): Promise<LocalGit> {
  const git = await serveGit(cluster, { rendered: place.rendered, folder: place.keys });
  const file = join(place.specs, 'clusters/local/cluster.yaml');
  await writeFile(file, carriedByFlux(await readFile(file, 'utf8'), { url: git.url, interval }));
  return git;
}

/** Installs Flux and points it at the tree with `bootstrap`; done when it has carried what was published. */
export async function startFlux(
  cluster: Cluster,
  { images, git, say, bootstrap }: { images: FluxImages; git: LocalGit; say: Say; bootstrap: () => Promise<void> },
): Promise<void> {
  await say.step('Starting Flux, which needs the network that is there now', async () => {
    await installFlux(cluster, images, git, { onProgress: (line) => say.note(line) });
    await fluxRuns(cluster);
  });
  await bootstrap();
  await say.step('Waiting until Flux has carried what was published', async () => {
    const units = ['10-system', '20-releases', '30-specs'].map((unit) => `kustomization/keelson-${unit}`);
    const wait = ['wait', '--for=condition=Ready', `--timeout=${carriedLimitMs / 1000}s`, ...units];
    say.note(await cluster.kubectl(['-n', fluxNamespace, ...wait], { limitMs: carriedLimitMs + 10_000 }));
  });
}
