import { fileURLToPath } from 'node:url';
import type { BuiltImage } from '../../../images/build.ts';
import { buildKeelsonImage } from '../../../images/keelson.ts';
import { buildOvnImage } from '../../../images/ovn.ts';
import { pushImage } from '../../../images/push.ts';
import { packageChart } from '../../charts/build.ts';
import { runtimePackages, runtimePrograms, runtimeScripts } from '../../charts/runtime.ts';
import { pushArtifact, pushBlob } from '../../standins/push.ts';

const entry = fileURLToPath(new URL('../../../bin/keelson.ts', import.meta.url));

export interface LocalImages {
  readonly keelson: BuiltImage;
  readonly ovn: BuiltImage;
}

/** Builds the image of Keelson itself into the cache. */
export const buildOwnImage = (cache: string): Promise<BuiltImage> => buildKeelsonImage({ entry, cache });

/** Puts the image of Keelson itself into the local registry. */
export async function pushOwnImage(registry: string, keelson: BuiltImage): Promise<void> {
  await pushImage(keelson, { registry, repository: 'keelson/keelson', tag: 'local' });
}

/** Builds both images of the local cluster into the cache. */
export async function buildImages(cache: string): Promise<LocalImages> {
  const scripts = await runtimeScripts(cache);
  const [keelson, ovn] = await Promise.all([
    buildOwnImage(cache),
    buildOvnImage({ packages: runtimePackages, programs: runtimePrograms, scripts, cache }),
  ]);
  return { keelson, ovn };
}

/** Tags under which the chart asks for its images; they are what the lock turns into digests. */
const chartVersion = 'v1.16.13';

/** Puts images and chart into the local registry. Answers the chart's digest. */
export async function fillRegistry(registry: string, images: LocalImages): Promise<string> {
  await pushOwnImage(registry, images.keelson);
  await pushImage(images.ovn, { registry, repository: 'kubeovn/kube-ovn', tag: chartVersion });
  await pushImage(images.ovn, { registry, repository: 'kubeovn/vpc-nat-gateway', tag: chartVersion });
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
