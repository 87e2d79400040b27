import { addressesGroup } from '../../constructs/api/addresses.ts';
import { addressesOf } from '../../constructs/api/addresses-settings.ts';
import { fluxOf } from '../../constructs/api/cluster.ts';
import type { Requirement } from '../../constructs/api/payload.ts';
import type { DepartedObject } from '../../constructs/api/tree.ts';
import { addressesDeployment } from '../../constructs/k8s/addresses/deployment.ts';
import { addressesRBAC } from '../../constructs/k8s/addresses/rights.ts';
import { executorDeployment } from '../../constructs/k8s/executor.ts';
import { synthesize } from '../../constructs/k8s/manifest.ts';
import { monitoringObjects } from '../../constructs/k8s/monitoring/objects.ts';
import { admissionPolicies } from '../../constructs/k8s/policies.ts';
import { executorRBAC, observedNamespaces } from '../../constructs/k8s/rbac.ts';
import { definitions, systemNamespace } from '../../constructs/k8s/system.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DomainRelease } from '../domain.ts';
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
  readonly releases: readonly DomainRelease[];
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
  const settings = addressesOf(spec);
  const ledger = input.releases.some(({ domain }) => domain === 'addresses');
  const gates = input.releases.flatMap(({ phases }) => phases.flatMap((phase) => phase.gates));
  const specGroups = input.loaded.specs.map(({ identity }) => groupOf(identity.apiVersion));
  const pullSecrets = pullSecretsOf(image, spec.registries);
  return synthesize((scope) => {
    systemNamespace(scope, spec);
    definitions(scope, new Set([...specGroups, ...(ledger ? [addressesGroup] : [])]));
    executorRBAC(scope, {
      namespace: spec.executor.namespace,
      objects: input.objects,
      requires: input.requires,
      departed: input.departed,
      gated: gates.flatMap(({ target }) => target ?? []),
      artifacts,
      probes,
      ledger,
    });
    if (ledger) addressesRBAC(scope, spec.executor.namespace, settings);
    admissionPolicies(
      scope,
      spec,
      input.loaded.specs.flatMap(({ identity }) => identity.namespace ?? []),
      // With the placeholders go the holds of all addresses.
      ledger && settings.workers.includes('driver') ? [settings.metallb.placeholderNamespace] : [],
    );
    executorDeployment(scope, {
      spec,
      image,
      pullSecrets,
      fluxNamespaces: artifacts ? [namespace] : [],
      // Probes are beside the daemons of an installation of the network, and nowhere else.
      evidence,
    });
    if (ledger) addressesDeployment(scope, { spec, image, pullSecrets });
    monitoringObjects(scope, spec);
  });
}
