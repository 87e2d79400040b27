import { deliveryPath, fluxOf } from '../../constructs/api/cluster.ts';
import { apiVersion } from '../../constructs/api/constants.ts';
import type { ChunkConfigMap } from '../../constructs/api/payload-chunks.ts';
import { annotatedByPeople } from '../../constructs/k8s/couriers.ts';
import { ManifestObject, type NamedManifest, synthesize } from '../../constructs/k8s/manifest.ts';
import { ownLabels } from '../../constructs/k8s/system.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { LoadedCluster } from '../load/load.ts';

export interface DeliveredRelease {
  readonly name: string;
  readonly digest: string;
  readonly chunks: readonly ChunkConfigMap[];
}

/** Unit `sync/20-releases`: each release's payload in ConfigMaps or none of it, and the Release that asks for it. */
export function releasesUnit(loaded: LoadedCluster, releases: readonly DeliveredRelease[]): JsonObject[] {
  const { namespace } = loaded.cluster.spec.executor;
  return synthesize((scope) => {
    for (const release of releases) {
      const source = sourceOf(loaded, release.name);
      if ('configMaps' in source)
        for (const chunk of release.chunks) new ManifestObject(scope, chunk as unknown as NamedManifest);
      new ManifestObject(scope, {
        apiVersion,
        kind: 'Release',
        metadata: { name: release.name, namespace, labels: ownLabels, annotations: annotatedByPeople },
        spec: {
          payload: { digest: release.digest },
          source,
          ...deliverySettings(loaded, release.name),
        },
      });
    }
  });
}

/** Where the executor finds the payload of a release: in the inbox, or in the artifact that the tree itself becomes. */
function sourceOf({ cluster }: LoadedCluster, release: string): JsonObject {
  const { namespace, prefix, artifactFor } = fluxOf(cluster.spec.delivery);
  if (!artifactFor.includes(release)) return { configMaps: {} };
  const path = `${deliveryPath(cluster)}/payload/${release}`;
  return { flux: { kind: 'GitRepository', namespace, name: prefix, path } };
}

/** What `spec.releases` of cluster.yaml says about a release; it never reaches the payload. */
function deliverySettings(loaded: LoadedCluster, release: string): JsonObject {
  const settings = loaded.cluster.spec.releases?.[release];
  return settings === undefined ? {} : (structuredClone(settings) as unknown as JsonObject);
}
