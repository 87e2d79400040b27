import { fluxOf } from '../../constructs/api/cluster.ts';
import type { Requirement } from '../../constructs/api/payload.ts';
import type { DepartedObject } from '../../constructs/api/tree.ts';
import { executorDeployment } from '../../constructs/k8s/executor.ts';
import { synthesize } from '../../constructs/k8s/manifest.ts';
import { monitoringObjects } from '../../constructs/k8s/monitoring/objects.ts';
import { admissionPolicies } from '../../constructs/k8s/policies.ts';
import { executorRBAC, observedNamespaces } from '../../constructs/k8s/rbac.ts';
import { definitions, systemNamespace } from '../../constructs/k8s/system.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { pinImage } from '../images/pin.ts';
import type { LoadedCluster } from '../load/load.ts';
import { settingsFiles } from '../load/settings.ts';
import { pullSecretsOf } from '../oci/mirrors.ts';

export interface SystemInput {
  readonly loaded: LoadedCluster;
  /** All objects of all payloads. */
  readonly objects: readonly JsonObject[];
  readonly requires: readonly Requirement[];
  /** Objects that payloads no longer name. */
  readonly departed: readonly DepartedObject[];
}

/** The image of the executor as the lock pins it; a problem names the field of cluster.yaml. */
export function executorImage(loaded: LoadedCluster): { image?: string; problems: readonly Problem[] } {
  const { spec } = loaded.cluster;
  const pinned = pinImage(
    spec.images.executor,
    { images: loaded.lock?.spec.images ?? [], registries: spec.registries },
    { file: `${loaded.folder}/${settingsFiles.cluster}`, path: 'spec.images.executor' },
  );
  return pinned.ok ? { image: pinned.value, problems: [] } : { problems: pinned.problems };
}

/** Unit `sync/10-system`: what must be there before anything else can be looked at. */
export function systemUnit(input: SystemInput, image: string): JsonObject[] {
  const { spec } = input.loaded.cluster;
  const { namespace, artifactFor } = fluxOf(spec.delivery);
  const artifacts = artifactFor.length > 0;
  const probes = spec.images.probe !== undefined;
  const evidence = probes ? observedNamespaces(input) : [];
  return synthesize((scope) => {
    systemNamespace(scope, spec);
    definitions(scope, new Set(input.loaded.specs.map(({ identity }) => groupOf(identity.apiVersion))));
    executorRBAC(scope, {
      namespace: spec.executor.namespace,
      objects: input.objects,
      requires: input.requires,
      departed: input.departed,
      artifacts,
      probes,
    });
    admissionPolicies(
      scope,
      spec,
      input.loaded.specs.flatMap(({ identity }) => identity.namespace ?? []),
    );
    executorDeployment(scope, {
      spec,
      image,
      pullSecrets: pullSecretsOf(image, spec.registries),
      fluxNamespaces: artifacts ? [namespace] : [],
      // Probes are beside the daemons of an installation of the network, and nowhere else.
      evidence,
    });
    monitoringObjects(scope, spec);
  });
}
