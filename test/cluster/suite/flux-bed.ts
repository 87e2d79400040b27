import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { systemNamespace } from '../../../constructs/api/constants.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import { buildFluxImages } from '../flux/images.ts';
import { fluxNamespace } from '../flux/objects.ts';
import { fluxRuns, installFlux } from '../flux/start.ts';
import { type LocalGit, serveGit } from '../local/git.ts';
import { carriedByFlux } from '../local/specs.ts';
import { imageCache } from '../programs.ts';
import { type PipelineBed, pipelineBed } from './pipeline-bed.ts';
import { conditionOf, textAt, until } from './pipeline-look.ts';

/** A cluster in which Flux carries what is pushed, over a network for pods that the machine gives it. */
export interface FluxBed extends PipelineBed {
  readonly git: LocalGit;
  /** The newest commit of the rendered repository. */
  head(): string;
  /** Commits and publishes; answers the commit of the rendered repository. */
  push(message: string): Promise<string>;
  /** A Kustomization of ours, by the end of its name. */
  kustomization(part: string): Promise<KubeObject | undefined>;
  /** Waits until a Kustomization is ready at a commit. */
  carried(part: string, commit: string): Promise<void>;
  /** Waits until the Release says so. */
  release(what: string, limitMs: number, probe: (release: KubeObject) => boolean): Promise<KubeObject>;
  /** Names of the inbox ConfigMaps. */
  inbox(): Promise<string[]>;
}

export const release = 'manifests-demo';
/** How soon Flux sees a push: nobody tells it here, so it asks often. */
const interval = '2s';

export async function fluxBed(name: string): Promise<FluxBed> {
  const [bed, images] = await Promise.all([
    pipelineBed(name, { network: false }),
    buildFluxImages(imageCache(process.env)),
  ]);
  const rendered = join(bed.home, 'rendered.git');
  const { cluster, look } = bed;
  const git = await serveGit(cluster, { rendered, folder: bed.home });
  bed.edit('cluster.yaml', (text) =>
    carriedByFlux(text, { url: git.url, interval }).replace(
      '  executor:\n',
      '  executor:\n    testLeaseDuration: 5s\n',
    ),
  );
  await installFlux(cluster, images, git);
  await fluxRuns(cluster);
  const head = (): string => execFileSync('git', ['-C', rendered, 'rev-parse', 'main'], { encoding: 'utf8' }).trim();
  const kustomization = (part: string): Promise<KubeObject | undefined> =>
    look.get({
      apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
      kind: 'Kustomization',
      namespace: fluxNamespace,
      name: `keelson-${part}`,
    });
  return {
    ...bed,
    git,
    head,
    kustomization,
    async push(message) {
      await bed.commit(message);
      await bed.keelson('publish');
      return head();
    },
    async carried(part, commit) {
      await until(`keelson-${part} to be ready at ${commit}`, 60_000, async (saw) => {
        const found = await kustomization(part);
        const ready = conditionOf(found, 'Ready');
        saw(`${textAt(found, '/status/lastAppliedRevision')} ${ready?.status} ${ready?.message}`);
        const here = textAt(found, '/status/lastAppliedRevision').includes(commit);
        return here && ready?.status === 'True' ? true : undefined;
      });
    },
    release: (what, limitMs, probe) =>
      until(what, limitMs, async (saw) => {
        const found = await look.release(release);
        const ready = conditionOf(found, 'Ready');
        saw(`${textAt(found, '/status/desired')} ${ready?.status} ${ready?.reason}: ${ready?.message}`);
        return found !== undefined && probe(found) ? found : undefined;
      }),
    async inbox() {
      const listed = await look.client.list({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        namespace: systemNamespace,
        labelSelector: 'keelson.dev/holds=payload',
      });
      return listed.type === 'listed' ? listed.items.map(({ metadata }) => metadata.name ?? '').sort() : [];
    },
  };
}

/** Managers that apply an object, and those that changed it by other ways, its status left out. */
export function managersOf(object: KubeObject | undefined): string[] {
  const entries = object?.metadata.managedFields ?? [];
  return entries
    .filter((entry) => (entry as { subresource?: string }).subresource !== 'status')
    .map(({ manager, operation }) => `${manager} ${operation}`)
    .sort();
}
