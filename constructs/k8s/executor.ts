import type { Construct } from 'constructs';
import type { ClusterSpec } from '../api/cluster.ts';
import { networkNamespace, roleName } from '../api/constants.ts';
import type { JsonObject } from '../lib/json.ts';
import { ManifestObject } from './manifest.ts';
import { ownLabels } from './system.ts';

export interface ExecutorOptions {
  readonly spec: Pick<ClusterSpec, 'executor'>;
  /** Reference with a digest. */
  readonly image: string;
  readonly pullSecrets: readonly string[];
  /** Namespaces whose Flux sources may be read. */
  readonly fluxNamespaces: readonly string[];
  /** Namespaces with probes to ask; without one nobody is asked. */
  readonly evidence: readonly string[];
}

const user = 65532;

/** What the pods of all roles have in common: no privileges, a temporary folder, and Secrets to pull with. */
export const plainPod = (pullSecrets: readonly string[]): JsonObject => ({
  securityContext: {
    runAsNonRoot: true,
    runAsUser: user,
    runAsGroup: user,
    fsGroup: user,
    seccompProfile: { type: 'RuntimeDefault' },
  },
  ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) }),
  volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '64Mi' } }],
});

/** What their containers have in common. */
export const plainContainer = (): JsonObject => ({
  securityContext: {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
  },
  terminationMessagePolicy: 'FallbackToLogsOnError',
  volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
});

/**
 * The executor's Deployment. It must run where nothing else can: on the host's network, on nodes that are not ready,
 * without cluster DNS, and without a cluster address for the API server when an address of its own is given.
 */
export function executorDeployment(scope: Construct, options: ExecutorOptions): ManifestObject {
  const { executor } = options.spec;
  const name = roleName('executor');
  const labels = { 'app.kubernetes.io/name': name, ...ownLabels };
  return new ManifestObject(scope, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: executor.namespace, labels },
    spec: {
      replicas: executor.replicas,
      revisionHistoryLimit: 3,
      selector: { matchLabels: { 'app.kubernetes.io/name': name } },
      // Both replicas hold host ports, so a new one fits only where an old one has gone.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      template: { metadata: { labels }, spec: podSpec(options, labels) },
    },
  });
}

function podSpec(options: ExecutorOptions, labels: JsonObject): JsonObject {
  const { executor } = options.spec;
  const name = roleName('executor');
  return {
    serviceAccountName: name,
    hostNetwork: true,
    dnsPolicy: 'Default',
    priorityClassName: 'system-cluster-critical',
    terminationGracePeriodSeconds: 30,
    nodeSelector: { 'kubernetes.io/os': 'linux', ...executor.nodeSelector },
    tolerations: [{ operator: 'Exists' }],
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          {
            topologyKey: 'kubernetes.io/hostname',
            labelSelector: { matchLabels: { 'app.kubernetes.io/name': String(labels['app.kubernetes.io/name']) } },
          },
        ],
      },
    },
    ...plainPod(options.pullSecrets),
    containers: [container(options)],
  };
}

function container(options: ExecutorOptions): JsonObject {
  const { apiServer, evidenceAtOnce, namespace, retain, testBypassGates, testLeaseDuration, testObserveInterval } =
    options.spec.executor;
  return {
    name: 'executor',
    image: options.image,
    args: [
      ...['executor', '--role=executor', `--namespace=${namespace}`, `--retain=${retain}`],
      // The usual variables lead to the cluster address of the API server, which needs a working network.
      ...(apiServer === undefined ? [] : [`--api-server=${apiServer}`]),
      ...(options.fluxNamespaces.length === 0 ? [] : [`--flux-namespaces=${options.fluxNamespaces.join(',')}`]),
      ...(options.evidence.length === 0 ? [] : ['--evidence']),
      ...(options.evidence.some((namespace) => namespace !== networkNamespace)
        ? [`--evidence-namespaces=${options.evidence.join(',')}`]
        : []),
      ...(options.evidence.length === 0 || evidenceAtOnce === undefined
        ? []
        : [`--evidence-at-once=${evidenceAtOnce}`]),
      ...(testBypassGates.length === 0 ? [] : [`--test-bypass-gates=${testBypassGates.join(',')}`]),
      ...(testLeaseDuration === undefined ? [] : [`--test-lease-duration=${testLeaseDuration}`]),
      ...(testObserveInterval === undefined ? [] : [`--test-observe-interval=${testObserveInterval}`]),
    ],
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
      { name: 'NODE_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
    ],
    resources: {
      requests: { cpu: '50m', memory: '128Mi' },
      limits: { memory: '512Mi' },
    },
    ...plainContainer(),
  };
}
