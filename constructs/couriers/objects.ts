import type { Cluster } from '../api/cluster.ts';
import { labels, managedByValue } from '../api/constants.ts';
import type { CourierFolder } from '../api/tree.ts';
import type { JsonObject } from '../lib/json.ts';

/** What a courier is pointed at. */
export interface CourierInput {
  readonly cluster: Cluster;
  /** Names of all Releases of the tree. */
  readonly releases: readonly string[];
}

/** An object of a courier and the folder of the rendered tree that holds it. */
export interface CourierObject {
  readonly folder: CourierFolder;
  readonly manifest: JsonObject & {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: JsonObject & { readonly name: string; readonly namespace: string };
  };
}

/** Labels by which the objects of a cluster's courier are found again, also by those who stopped using it. */
export const courierLabels = (cluster: Cluster): Record<string, string> => ({
  [labels.managedBy]: managedByValue,
  [labels.cluster]: cluster.metadata.name,
});
