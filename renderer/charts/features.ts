import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';

/**
 * What a Kube-OVN chart can do, read from the keys of its values.yaml: versions do not tell, since features went into
 * several release lines at different times, and Helm ignores values that a chart does not know.
 */
export interface ChartFeatures {
  /** `modes`: the chart has `installMode` and renders each mode; `classic`: it renders everything whatever it is told. */
  readonly shape: 'modes' | 'classic';
  /** `OVN_CENTRAL_MODE`: RAFT or one standalone server on a claim. */
  readonly centralMode: boolean;
  /** `externalOvnCentral.nbEndpoint` and `.sbEndpoint`. */
  readonly externalCentral: boolean;
  /** `ovn-central.hcp`. */
  readonly hcp: boolean;
  /** `networking.KUBE_OVN_TLS_ROTATION_INTERVAL`: the controller may rotate the TLS Secret by itself. */
  readonly tlsRotation: boolean;
}

function at(values: JsonObject, path: readonly string[]): JsonValue | undefined {
  let here: JsonValue | undefined = values;
  for (const key of path) here = isObject(here) && Object.hasOwn(here, key) ? here[key] : undefined;
  return here;
}

const has = (values: JsonObject, ...path: string[]): boolean => at(values, path) !== undefined;

/** Values that rendering sets or reads in every release of the chart; without them it is another chart. */
const required: readonly (readonly string[])[] = [
  ['namespace'],
  ['MASTER_NODES'],
  ['MASTER_NODES_LABEL'],
  ['networking', 'NET_STACK'],
  ['global', 'registry', 'address'],
  ['global', 'images', 'kubeovn', 'repository'],
];

/** The features, or the value keys that are missing for a chart named kube-ovn. */
export function detectFeatures(values: JsonObject): { features: ChartFeatures } | { missing: string[] } {
  const missing = required.filter((path) => !has(values, ...path)).map((path) => path.join('.'));
  if (missing.length > 0) return { missing };
  return {
    features: {
      shape: has(values, 'installMode') ? 'modes' : 'classic',
      centralMode: has(values, 'OVN_CENTRAL_MODE'),
      externalCentral:
        has(values, 'externalOvnCentral', 'nbEndpoint') && has(values, 'externalOvnCentral', 'sbEndpoint'),
      hcp: has(values, 'ovn-central', 'hcp'),
      tlsRotation: has(values, 'networking', 'KUBE_OVN_TLS_ROTATION_INTERVAL'),
    },
  };
}

/**
 * Image repositories that the chart's default values name. Some of them are rendered only as text for a controller that
 * makes pods later, so they cannot be learned from the containers.
 */
export function chartImageRepositories(values: JsonObject): string[] {
  const address = at(values, ['global', 'registry', 'address']);
  const images = at(values, ['global', 'images']);
  if (typeof address !== 'string' || !isObject(images)) return [];
  const names = Object.values(images)
    .map((image) => (isObject(image) ? image.repository : undefined))
    .filter((repository): repository is string => typeof repository === 'string' && repository !== '');
  return [...new Set(names.map((name) => `${address.replace(/\/+$/, '')}/${name}`))].sort();
}
