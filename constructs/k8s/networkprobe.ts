import { networkProbe, probeContainers } from '../api/constants.ts';
import type { JsonObject } from '../lib/json.ts';
import { evidenceMounts, evidenceVolumes, podIdentity } from './probe.ts';

/**
 * The network probe: a server and a client on every node that carries pods of the network, and a Service before the
 * servers. They are ordinary pods of that network, since they stand for all the others: no host network, no host folders, no
 * privileges, no account at the API server. The client's own token is good for nothing but to prove which pod it is.
 */

export interface NetworkProbeOptions {
  readonly namespace: string;
  readonly image: string;
  readonly pullSecrets: readonly string[];
  /** Where pods of the network can run, as the workloads of Open vSwitch say it. */
  readonly scheduling: JsonObject;
  /** Families that the Service has to have; absent: those of the cluster. */
  readonly stack: 'ipv4' | 'ipv6' | 'dual_stack' | undefined;
}

const user = 65532;

type Part = 'network-client' | 'network-server';

const nameOf: Readonly<Record<Part, string>> = {
  'network-client': networkProbe.clients,
  'network-server': networkProbe.servers,
};
const labelsOf = (part: Part): JsonObject => ({ 'app.kubernetes.io/name': nameOf[part] });

const families: Readonly<Record<NonNullable<NetworkProbeOptions['stack']>, JsonObject>> = {
  ipv4: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'] },
  ipv6: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] },
  // A cluster without the second family is observed, and told of; it is not refused while it is applied.
  dual_stack: { ipFamilyPolicy: 'PreferDualStack' },
};

/** Two DaemonSets and a Service. */
export const networkProbeObjects = (options: NetworkProbeOptions): JsonObject[] => [
  service(options),
  daemonSet('network-server', options),
  daemonSet('network-client', options),
];

const service = ({ namespace, stack }: NetworkProbeOptions): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: networkProbe.service, namespace, labels: labelsOf('network-server') },
  spec: {
    type: 'ClusterIP',
    selector: labelsOf('network-server'),
    ports: [{ name: 'echo', port: networkProbe.echoPort, protocol: 'TCP', targetPort: networkProbe.echoPort }],
    ...families[stack ?? 'dual_stack'],
  },
});

function daemonSet(part: Part, options: NetworkProbeOptions): JsonObject {
  const { namespace, pullSecrets, scheduling } = options;
  const labels = labelsOf(part);
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: nameOf[part], namespace, labels },
    spec: {
      revisionHistoryLimit: 3,
      selector: { matchLabels: labels },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } },
      template: {
        metadata: { labels },
        spec: {
          ...scheduling,
          // Named, since a token is bound to an account; no token for the API server comes into the pod.
          serviceAccountName: 'default',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 5,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: user,
            runAsGroup: user,
            fsGroup: user,
            seccompProfile: { type: 'RuntimeDefault' },
          },
          ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }),
          containers: [{ ...container(part, options.image), ...own[part] }],
          ...(part === 'network-client' ? { volumes: evidenceVolumes() } : {}),
        },
      },
    },
  };
}

const container = (part: Part, image: string): JsonObject => ({
  name: probeContainers.network,
  image,
  args: ['probe', part],
  env: podIdentity(),
  resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '500m', memory: '128Mi' } },
  securityContext: {
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  terminationMessagePolicy: 'FallbackToLogsOnError',
});

const own: Readonly<Record<Part, JsonObject>> = {
  'network-client': { volumeMounts: evidenceMounts() },
  // The Service leads to a server once it serves, and no sooner.
  'network-server': {
    ports: [{ name: 'echo', containerPort: networkProbe.echoPort, protocol: 'TCP' }],
    readinessProbe: {
      httpGet: { path: networkProbe.readyPath, port: networkProbe.echoPort },
      periodSeconds: 5,
      timeoutSeconds: 2,
      failureThreshold: 3,
    },
  },
};
