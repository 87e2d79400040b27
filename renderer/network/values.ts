/**
 * The chart values of a specification. Only what the specification speaks of is set; the rest stays the chart's default.
 * Nothing is left to the chart's look-ups, which find nothing offline: addresses and the update strategy are explicit.
 */
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { ChartFeatures } from '../charts/features.ts';
import { type Endpoint, formatEndpoint, parseEndpoint } from './endpoint.ts';
import { chartTLSSecret } from './tls.ts';

const installModes = { full: 'full', centralOnly: 'controlPlaneOnly', nodeNetworking: 'dataPlaneOnly' } as const;

export interface ValuesInput {
  readonly spec: InstallationSpec;
  readonly namespace: string;
  /** Ordered central addresses; empty when the mode renders no central. */
  readonly centralAddresses: readonly string[];
  /** Addresses of nodes that may carry the controller; only their number counts, and only where central is elsewhere. */
  readonly nodeAddresses: readonly string[];
  readonly pullSecrets: readonly string[];
}

export interface ExternalEndpoints {
  readonly northbound: Endpoint;
  readonly southbound: Endpoint;
}

/** The half of a hosted pair that this installation is, or undefined. */
const hcpOf = (spec: InstallationSpec): InstallationSpec['hcp'] | undefined =>
  spec.hcp?.enabled === true ? spec.hcp : undefined;

/** Name of the Secret with OVN's keys: the specification's, else the one that Kube-OVN itself uses. */
export const tlsSecretName = (spec: InstallationSpec): string => hcpOf(spec)?.tlsSecretRef?.name ?? chartTLSSecret;

/** The endpoints of a central elsewhere: those of `spec.hcp` for its data-plane half, else those of `spec.external`. */
export function externalEndpoints(spec: InstallationSpec): ExternalEndpoints | undefined {
  const source = hcpOf(spec) ?? spec.external;
  const [northbound, southbound] = [source?.northbound, source?.southbound].map((text) =>
    text === undefined ? undefined : parseEndpoint(text),
  );
  return northbound === undefined || southbound === undefined ? undefined : { northbound, southbound };
}

/** True when OVN speaks TLS in this installation, which needs a Secret named by the specification. */
export function usesTLS(spec: InstallationSpec): boolean {
  const endpoints = externalEndpoints(spec);
  return (
    endpoints !== undefined &&
    [endpoints.northbound, endpoints.southbound].some((endpoint) => endpoint.scheme === 'ssl')
  );
}

/** What a chart of this shape cannot do for the specification. */
export function shapeProblems(spec: InstallationSpec, features: ChartFeatures, object: string): Problem[] {
  const refuse = (path: string, value: string, what: string): Problem => ({
    reason: 'ChartLacksMode',
    message: `this chart has no key for ${what}; it would silently render something else`,
    object,
    path,
    value,
    remedy: 'use a chart whose values.yaml has installMode (1.15.18 to 1.15.24, or later than 1.16.2)',
  });
  const verbatim = spec.mode === 'nodeNetworking' && usesTLS(spec);
  return [
    ...(spec.mode === 'full' || features.shape === 'modes'
      ? []
      : [refuse('spec.mode', spec.mode, 'installation modes')]),
    ...(spec.central.database === 'raft' || features.centralMode
      ? []
      : [refuse('spec.central.database', spec.central.database, 'a standalone database')]),
    ...(spec.mode !== 'nodeNetworking' || features.externalCentral
      ? []
      : [refuse('spec.external', spec.mode, 'endpoints of a central elsewhere')]),
    ...(verbatim && !features.hcp ? [refuse('spec.hcp', 'ssl:', 'endpoints that are used verbatim')] : []),
  ];
}

const labelText = (selector: Readonly<Record<string, string>>): string =>
  Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

function centralValues(input: ValuesInput, features: ChartFeatures): JsonObject {
  const { spec } = input;
  const { storage } = spec.central;
  const standalone = spec.central.database === 'standalone';
  return {
    MASTER_NODES: input.centralAddresses.join(','),
    MASTER_NODES_LABEL: labelText(spec.central.nodeSelector),
    ...(storage?.hostPath === undefined ? {} : { OVN_DIR: storage.hostPath }),
    ...(features.centralMode ? { OVN_CENTRAL_MODE: standalone ? 'single' : 'cluster' } : {}),
    ...(storage?.claim === undefined ? {} : { 'ovn-central': { storage: { ...storage.claim } } }),
  };
}

/**
 * A tcp: endpoint goes in as host and port. For ssl: the chart's own key would still print tcp:, so the addresses travel
 * verbatim by the keys of a hosted control plane, which render nothing else in this mode.
 */
function externalValues({ northbound, southbound }: ExternalEndpoints): JsonObject {
  if (northbound.scheme === 'tcp' && southbound.scheme === 'tcp')
    return {
      externalOvnCentral: {
        nbEndpoint: northbound.host,
        nbPort: northbound.port,
        sbEndpoint: southbound.host,
        sbPort: southbound.port,
      },
    };
  return {
    externalOvnCentral: { nbEndpoint: northbound.host, sbEndpoint: southbound.host },
    'ovn-central': {
      hcp: { enabled: true, nbAddress: formatEndpoint(northbound), sbAddress: formatEndpoint(southbound) },
    },
  };
}

/** The values file of a render. */
export function chartValues(input: ValuesInput, features: ChartFeatures): JsonObject {
  const { spec } = input;
  const endpoints = spec.mode === 'nodeNetworking' ? externalEndpoints(spec) : undefined;
  const networking: JsonObject = {
    ...(spec.networkStack === undefined ? {} : { NET_STACK: spec.networkStack }),
    ...(usesTLS(spec) ? { ENABLE_SSL: true } : {}),
  };
  return {
    namespace: input.namespace,
    ...(features.shape === 'modes' ? { installMode: installModes[spec.mode] } : {}),
    // Offline the chart takes the number of nodes from MASTER_NODES, and from it at most two controller replicas.
    ...(spec.mode === 'nodeNetworking'
      ? { MASTER_NODES: input.nodeAddresses.slice(0, 2).join(',') }
      : centralValues(input, features)),
    ...(endpoints === undefined ? {} : externalValues(endpoints)),
    ...(Object.keys(networking).length === 0 ? {} : { networking }),
    ...(spec.mode === 'centralOnly'
      ? {}
      : { 'ovs-ovn': { updateStrategy: { type: spec.dataPlane.ovsUpdateStrategy } } }),
    ...(input.pullSecrets.length === 0 ? {} : { global: { registry: { imagePullSecrets: [...input.pullSecrets] } } }),
  };
}
