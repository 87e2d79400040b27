import { annotatedByPeople } from '../../constructs/k8s/couriers.ts';
import { ManifestObject, type NamedManifest, synthesize } from '../../constructs/k8s/manifest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { LoadedCluster } from '../load/load.ts';

/** Unit `sync/30-specs`: the specs themselves, as they were committed. */
export function specsUnit(loaded: LoadedCluster): JsonObject[] {
  return synthesize((scope) => {
    for (const { value } of loaded.specs) {
      const manifest = value as NamedManifest;
      const annotations = isObject(manifest.metadata.annotations) ? manifest.metadata.annotations : {};
      const metadata = { ...manifest.metadata, annotations: { ...annotations, ...annotatedByPeople } };
      new ManifestObject(scope, { ...manifest, metadata });
    }
  });
}
