import type { Construct } from 'constructs';
import { addressesGroup } from '../api/addresses.ts';
import type { ClusterSpec } from '../api/cluster.ts';
import { labels, managedByValue } from '../api/constants.ts';
import { crdOf } from '../api/crd.ts';
import { kinds } from '../api/kinds/index.ts';
import type { JsonObject } from '../lib/json.ts';
import { annotatedByPeople } from './couriers.ts';
import { ManifestObject, type NamedManifest } from './manifest.ts';

export const ownLabels = { [labels.managedBy]: managedByValue } as const;

/**
 * The namespace of the executor. It is tier 0: whoever writes there writes to the cluster. Pods on the host's network
 * need the privileged pod security level.
 */
export function systemNamespace(scope: Construct, spec: Pick<ClusterSpec, 'executor'>): ManifestObject {
  const levels = ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'privileged']);
  return new ManifestObject(scope, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: spec.executor.namespace,
      labels: { ...ownLabels, ...Object.fromEntries(levels) },
      annotations: annotatedByPeople,
    },
  });
}

/** Groups that others deliver as well: their definitions come only to clusters whose specs are of that group. */
const sharedGroups: readonly string[] = [addressesGroup];

/**
 * Definitions of the kinds of ours, given the groups of a cluster's specs. Couriers leave them in place: with a CRD go all
 * objects of its kind.
 */
export function definitions(scope: Construct, specGroups: ReadonlySet<string>): ManifestObject[] {
  const wanted = kinds.filter(({ group }) => !sharedGroups.includes(group) || specGroups.has(group));
  return wanted.map((kind) => {
    const crd = crdOf(kind) as NamedManifest;
    const metadata: JsonObject & { name: string } = { ...crd.metadata, annotations: annotatedByPeople };
    return new ManifestObject(scope, { ...crd, metadata });
  });
}
