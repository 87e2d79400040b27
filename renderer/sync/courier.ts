import type { Cluster } from '../../constructs/api/cluster.ts';
import { courierFolders, emptyUnitFile, type Unit, unitFolder, units } from '../../constructs/api/tree.ts';
import { argoObjects, systemAnnotations } from '../../constructs/couriers/argo.ts';
import { fluxObjects } from '../../constructs/couriers/flux.ts';
import type { CourierInput, CourierObject } from '../../constructs/couriers/objects.ts';
import { ManifestObject, synthesize } from '../../constructs/k8s/manifest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import { objectFiles } from './tree.ts';

type Files = ReadonlyMap<string, Uint8Array>;

function courierObjects(input: CourierInput): CourierObject[] {
  switch (input.cluster.spec.delivery.courier) {
    case 'flux':
      return fluxObjects(input);
    case 'argo':
      return argoObjects(input);
    case 'none':
      return [];
  }
}

/** Objects of the system unit with the annotations that the courier reads there. */
export function markSystem(cluster: Cluster, objects: readonly JsonObject[]): JsonObject[] {
  if (cluster.spec.delivery.courier !== 'argo') return [...objects];
  return objects.map((object) => {
    const metadata = isObject(object.metadata) ? object.metadata : {};
    const present = isObject(metadata.annotations) ? metadata.annotations : {};
    return { ...object, metadata: { ...metadata, annotations: { ...present, ...systemAnnotations(object, present) } } };
  });
}

/** Folder `courier/`, and what a courier needs in the folders that it reads; nothing for a cluster without a courier. */
export function courierFiles(
  cluster: Cluster,
  sync: Readonly<Record<Unit, Files>>,
  releases: readonly { readonly name: string }[],
): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  if (cluster.spec.delivery.courier === 'none') return files;
  const objects = courierObjects({ cluster, releases: releases.map(({ name }) => name) });
  for (const folder of Object.values(courierFolders)) {
    const made = synthesize((scope) => {
      for (const { manifest } of objects.filter((o) => o.folder === folder)) new ManifestObject(scope, manifest);
    });
    for (const [path, bytes] of objectFiles(folder, made)) files.set(path, bytes);
  }
  for (const unit of units) if (sync[unit].size === 0) files.set(`${unitFolder(unit)}/${emptyUnitFile}`, nothing());
  return files;
}

/**
 * A cluster without specs has an empty last unit, and Git keeps no empty folder. Flux calls a missing folder an error, and
 * so it calls a kustomization that says nothing at all; one with a name is read as holding no objects.
 */
const nothing = (): Uint8Array =>
  Buffer.from(
    dumpYaml({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', metadata: { name: 'nothing' } }),
  );
