import { fileURLToPath } from 'node:url';
import type { BuiltImage } from '../../../images/build.ts';
import { buildKeelsonImage } from '../../../images/keelson.ts';
import { buildOvnImage } from '../../../images/ovn.ts';
import { buildProbeImage } from '../../../images/probe.ts';
import { pushImage } from '../../../images/push.ts';
import { packageChart } from '../../charts/build.ts';
import { runtimePackages, runtimePrograms, runtimeScripts } from '../../charts/runtime.ts';
import { pushArtifact, pushBlob } from '../../standins/push.ts';
import type { ToolOptions } from '../../tools/store.ts';
import { buildMetallbImage, pushMetallbImage } from '../metallb/image.ts';

const program = (path: string): string => fileURLToPath(new URL(`../../../bin/${path}`, import.meta.url));
const entry = program('keelson.ts');

export interface LocalImages {
  readonly keelson: BuiltImage;
  readonly probe: BuiltImage;
  readonly ovn: BuiltImage;
  /** MetalLB's controller; undefined where there are no addresses. */
  readonly metallb: BuiltImage | undefined;
}

/** Builds the image of Keelson itself into the cache. */
export const buildOwnImage = (cache: string): Promise<BuiltImage> => buildKeelsonImage({ entry, cache });

/** Puts the image of Keelson itself into the local registry. */
export async function pushOwnImage(registry: string, keelson: BuiltImage): Promise<void> {
  await pushImage(keelson, { registry, repository: 'keelson/keelson', tag: 'local' });
}

/** What of the local cluster is wanted, and how programs are built that this machine does not have yet. */
export interface ImageOptions extends ToolOptions {
  /** True for MetalLB's controller too. */
  readonly addresses: boolean;
}

/** Builds the images of the local cluster into the cache. */
export async function buildImages(cache: string, { addresses, ...options }: ImageOptions): Promise<LocalImages> {
  const scripts = await runtimeScripts(cache);
  const [keelson, probe, ovn, metallb] = await Promise.all([
    buildOwnImage(cache),
    buildProbeImage({ entry: program('probe.ts'), offer: program('probe-offer.ts'), cache }),
    buildOvnImage({ packages: runtimePackages, programs: runtimePrograms, scripts, cache }),
    addresses ? buildMetallbImage(cache, options) : undefined,
  ]);
  return { keelson, probe, ovn, metallb };
}

/** Tags under which the chart asks for its images; they are what the lock turns into digests. */
const chartVersion = 'v1.16.13';

/** Puts images and chart into the local registry. Answers the chart's digest. */
export async function fillRegistry(registry: string, images: LocalImages): Promise<string> {
  await pushOwnImage(registry, images.keelson);
  await pushImage(images.probe, { registry, repository: 'keelson/probe', tag: 'local' });
  await pushImage(images.ovn, { registry, repository: 'kubeovn/kube-ovn', tag: chartVersion });
  await pushImage(images.ovn, { registry, repository: 'kubeovn/vpc-nat-gateway', tag: chartVersion });
  if (images.metallb !== undefined) await pushMetallbImage(registry, images.metallb);
  const chart = await packageChart('new');
  const digest = await pushBlob(registry, 'charts/kube-ovn', chart.bytes);
  await pushArtifact(registry, 'charts/kube-ovn', chartVersion, {
    config: { name: chart.name, version: chart.version },
    layers: [
      {
        mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
        digest,
        size: chart.bytes.length,
      },
    ],
  });
  return digest;
}
