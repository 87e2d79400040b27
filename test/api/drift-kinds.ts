import type { JsonObject } from '../../constructs/lib/json.ts';
import { gate, type Manifest, namespaceObject, type PhaseInput, type SliceNames } from './slice-payload.ts';

const image = `registry.example/app@sha256:${'a'.repeat(64)}`;

const template = (app: string): JsonObject => ({
  metadata: { labels: { app } },
  spec: {
    containers: [
      {
        name: 'main',
        image,
        args: ['--verbose', '1'],
        env: [
          { name: 'PLAIN', value: 'x' },
          { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
        ],
        ports: [{ containerPort: 8080 }, { containerPort: 8081, name: 'metrics' }],
        resources: { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { cpu: '1.50', memory: '2147483648' } },
        readinessProbe: { httpGet: { path: '/', port: 8080 }, timeoutSeconds: 1 },
        volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
        securityContext: {},
      },
    ],
    volumes: [
      { name: 'tmp', emptyDir: {} },
      { name: 'settings', configMap: { name: 'settings', defaultMode: 420 } },
    ],
    nodeSelector: {},
    tolerations: [{ operator: 'Exists' }],
    terminationGracePeriodSeconds: 0,
  },
});

const workload = (kind: string, name: string, spec: JsonObject): JsonObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec: { selector: { matchLabels: { app: name } }, template: template(name), ...spec },
});

const definition = (group: string): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind: 'Gadget', plural: 'gadgets' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  size: { 'x-kubernetes-int-or-string': true },
                  parts: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: { name: { type: 'string' }, weight: { type: 'integer', default: 1 } },
                    },
                  },
                  tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                },
              },
            },
          },
        },
      },
    ],
  },
});

const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }];

/** Objects of many kinds, each with values that the API server defaults, normalises, orders or converts. */
function inNamespace({ group }: SliceNames): JsonObject[] {
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { cpu: '1000m', empty: '' } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'bare', annotations: {} }, data: {} },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'app' }, automountServiceAccountToken: false },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'app' },
      spec: {
        selector: { app: 'server' },
        ports: [
          { name: 'http', port: 80, targetPort: 'http' },
          { name: 'dns', port: 53, protocol: 'UDP' },
        ],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } },
    },
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'most' },
      spec: { hard: { 'requests.cpu': '1000m', 'limits.memory': '1024Mi', pods: '010' } },
    },
    {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'usual' },
      spec: { limits: [{ type: 'Container', default: { cpu: '500m' }, defaultRequest: { cpu: '0.1' } }] },
    },
    workload('Deployment', 'server', {
      replicas: 0,
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: '25%' } },
    }),
    workload('StatefulSet', 'store', { replicas: 0, serviceName: 'app' }),
    workload('DaemonSet', 'agent', { updateStrategy: { type: 'OnDelete' } }),
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'nightly' },
      spec: {
        schedule: '0 3 * * *',
        suspend: true,
        jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'run', image }] } } } },
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'only' },
      spec: {
        podSelector: {},
        policyTypes: ['Ingress'],
        ingress: [{ ports: [{ port: 80 }], from: [{ podSelector: { matchLabels: { app: 'a' } } }] }],
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'web' },
      spec: {
        rules: [
          {
            host: 'web.example.com',
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'app', port: { number: 80 } } } }],
            },
          },
        ],
      },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'server' },
      spec: { maxUnavailable: '50%', selector: { matchLabels: { app: 'server' } } },
    },
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'server' },
      spec: {
        maxReplicas: 3,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'store' },
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '0.5' } } },
        ],
      },
    },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'app' }, rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'app' },
      roleRef: { kind: 'Role', name: 'app', apiGroup: 'rbac.authorization.k8s.io' },
      subjects: [
        { kind: 'ServiceAccount', name: 'app' },
        { kind: 'User', name: 'jane' },
      ],
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'Gadget',
      metadata: { name: 'first' },
      spec: {
        size: '3',
        parts: [{ name: 'b' }, { name: 'a', weight: 2 }],
        tags: ['z', 'a'],
        free: { n: 1, list: [1, {}] },
      },
    },
  ];
}

function clusterScoped({ release, namespace }: SliceNames): JsonObject[] {
  return [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: `${release}-reader` }, rules },
    {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: `${release}-high` },
      value: 1000,
      description: '',
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: `${release}-fast` },
      provisioner: 'example.com/none',
      parameters: {},
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: `${release}-check` },
      webhooks: [
        {
          name: 'check.example.com',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Ignore',
          clientConfig: { service: { name: 'nobody', namespace } },
          objectSelector: { matchLabels: { never: 'matched' } },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
        },
      ],
    },
  ];
}

const placed = (object: JsonObject, namespace: string): Manifest => ({
  object: { ...object, metadata: { ...(object.metadata as JsonObject), namespace } },
});

/** All of them, in two phases. */
export function kindsPhases(names: SliceNames): PhaseInput[] {
  const { namespace, group } = names;
  const subjects = (object: JsonObject): JsonObject =>
    object.kind !== 'RoleBinding'
      ? object
      : {
          ...object,
          subjects: (object.subjects as JsonObject[]).map((s) => (s.kind === 'User' ? s : { ...s, namespace })),
        };
  return [
    {
      name: 'definitions',
      gates: [gate('Established', 'definitions')],
      manifests: [{ object: namespaceObject(namespace) }, { object: definition(group) }],
    },
    {
      name: 'objects',
      manifests: [
        ...clusterScoped(names).map((object) => ({ object })),
        ...inNamespace(names).map((object) => placed(subjects(object), namespace)),
      ],
    },
  ];
}
