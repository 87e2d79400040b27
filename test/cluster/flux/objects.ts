import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { FluxTool } from './programs.ts';

/** Where Flux lives, as its own installer has it. */
export const fluxNamespace = 'flux-system';

const sourceHost = `source-controller.${fluxNamespace}.svc.cluster.local.`;

const rule = (apiGroups: string[], resources: string[], verbs: string[]): JsonObject => ({
  apiGroups,
  resources,
  verbs,
});
const read = ['get', 'list', 'watch'];
const all = ['*'];

const account = (name: FluxTool): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace: fluxNamespace },
});

const subject = (name: FluxTool): JsonObject => ({ kind: 'ServiceAccount', name, namespace: fluxNamespace });

function binding(name: string, role: string, subjects: JsonObject[]): JsonObject {
  const group = 'rbac.authorization.k8s.io';
  return {
    apiVersion: `${group}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: `${name}-${fluxNamespace}` },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
    subjects,
  };
}

/** What both controllers may do for themselves; and that whatever a Kustomization holds is applied with all rights. */
function access(): JsonObject[] {
  const role = `crd-controller-${fluxNamespace}`;
  const both = [subject('source-controller'), subject('kustomize-controller')];
  return [
    account('source-controller'),
    account('kustomize-controller'),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: role },
      rules: [
        rule(['source.toolkit.fluxcd.io', 'kustomize.toolkit.fluxcd.io'], all, all),
        rule([''], ['namespaces', 'secrets', 'configmaps', 'serviceaccounts'], read),
        rule([''], ['events'], ['create', 'patch']),
        rule([''], ['serviceaccounts/token'], ['create']),
        rule(['coordination.k8s.io'], ['leases'], ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']),
      ],
    },
    binding('crd-controller', role, both),
    binding('cluster-reconciler', 'cluster-admin', [subject('kustomize-controller')]),
  ];
}

interface Controller {
  readonly name: FluxTool;
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly ready: JsonObject;
  readonly volumes: Readonly<Record<string, string>>;
  readonly strategy?: JsonObject;
  readonly pod?: JsonObject;
}

function deployment({ name, image, args, ports, ready, volumes, strategy, pod }: Controller): JsonObject {
  const common = ['--watch-all-namespaces', '--log-level=info', '--log-encoding=json', '--enable-leader-election'];
  const every = [
    { name: 'http-prom', containerPort: 8080, protocol: 'TCP' },
    { name: 'healthz', containerPort: 9440, protocol: 'TCP' },
    ...ports.map((port) => ({ ...port, protocol: 'TCP' })),
  ];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: fluxNamespace, labels: { 'control-plane': 'controller' } },
    spec: {
      replicas: 1,
      ...(strategy === undefined ? {} : { strategy }),
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          serviceAccountName: name,
          terminationGracePeriodSeconds: 10,
          securityContext: { fsGroup: 1337 },
          containers: [
            {
              name: 'manager',
              image,
              args: [...common, ...args],
              env: [{ name: 'RUNTIME_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
              ports: every,
              livenessProbe: { httpGet: { path: '/healthz', port: 'healthz' } },
              readinessProbe: { httpGet: ready, periodSeconds: 1 },
              resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '1Gi' } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                runAsNonRoot: true,
                capabilities: { drop: ['ALL'] },
                seccompProfile: { type: 'RuntimeDefault' },
              },
              volumeMounts: Object.entries(volumes).map(([volume, mountPath]) => ({ name: volume, mountPath })),
            },
          ],
          volumes: Object.keys(volumes).map((volume) => ({ name: volume, emptyDir: {} })),
          ...pod,
        },
      },
    },
  };
}

export interface FluxObjectsInput {
  readonly images: Readonly<Record<FluxTool, string>>;
  /** Address of the Service behind which the artifacts are; a free one of the cluster's range. */
  readonly sourceAddress: string;
}

/**
 * Flux as its installer leaves it, but for the controllers that nobody needs here. Nothing here depends on DNS: artifacts have the
 * URLs that they have everywhere, and the one pod that asks for them by name is told where the name leads.
 */
export function fluxObjects({ images, sourceAddress }: FluxObjectsInput): JsonObject[] {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'source-controller', namespace: fluxNamespace, labels: { 'control-plane': 'controller' } },
    spec: {
      type: 'ClusterIP',
      clusterIP: sourceAddress,
      selector: { app: 'source-controller' },
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http' }],
    },
  };
  const source = deployment({
    name: 'source-controller',
    image: images['source-controller'],
    args: ['--storage-path=/data', `--storage-adv-addr=${sourceHost}`],
    ports: [{ name: 'http', containerPort: 9090 }],
    ready: { path: '/', port: 'http' },
    volumes: { data: '/data', tmp: '/tmp' },
    strategy: { type: 'Recreate' },
  });
  const kustomize = deployment({
    name: 'kustomize-controller',
    image: images['kustomize-controller'],
    // A unit waits for another one at the same commit, which is the matter of a second here and half a minute by default.
    args: ['--requeue-dependency=2s'],
    ports: [],
    ready: { path: '/readyz', port: 'healthz' },
    volumes: { temp: '/tmp' },
    pod: { hostAliases: [{ ip: sourceAddress, hostnames: [sourceHost.replace(/\.$/, '')] }] },
  });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: fluxNamespace } };
  return [namespace, ...access(), service, source, kustomize];
}
