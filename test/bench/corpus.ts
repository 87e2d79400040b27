/** The objects of a run: the mix of a real platform, from a seed, so that every contender gets the same. */
import type { JsonObject } from '../../constructs/lib/json.ts';

/** Where an object stands for contenders that know phases. */
export type CorpusPhase = 'definitions' | 'access' | 'config' | 'workloads' | 'objects';

export interface CorpusObject {
  readonly phase: CorpusPhase;
  readonly object: JsonObject;
}

export const corpusPhases: readonly CorpusPhase[] = ['definitions', 'access', 'config', 'workloads', 'objects'];

/** Prefix of everything the corpus names, in the API and in etcd. */
export const corpusPrefix = 'bench';

/** Namespaces that are there before a run begins. */
export const corpusNamespaces: readonly string[] = [0, 1, 2, 3].map((n) => `${corpusPrefix}-${n}`);

/** Group of the custom resources whose definition is there before a run begins. */
export const customGroup = 'settings.bench.example.com';

/** Share of each kind in 1,000 objects. */
const mix: readonly (readonly [share: number, make: Maker])[] = [
  [50, definition],
  [20, clusterRole],
  [20, clusterRoleBinding],
  [30, role],
  [30, roleBinding],
  [500, configMap],
  [100, secret],
  [50, service],
  [100, deployment],
  [50, daemonSet],
  [50, custom],
];

type Maker = (n: number, random: () => number) => CorpusObject;

/** Numbers from 0 to 1, the same ones for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** `count` objects of the mix; every share is kept to the nearest whole object. */
export function corpus(count: number, seed: number): CorpusObject[] {
  const random = seededRandom(seed);
  const objects: CorpusObject[] = [];
  let share = 0;
  for (const [part, make] of mix) {
    const from = Math.round((share * count) / 1_000);
    share += part;
    const to = Math.round((share * count) / 1_000);
    for (let n = 0; n < to - from; n += 1) objects.push(make(n, random));
  }
  return objects;
}

/**
 * What the scenario *half* keeps: every second object, and every definition. A definition that is deleted waits for the API
 * server's own clean-up, which was seen to forget one of many for minutes, whoever had deleted it.
 */
export const halfOf = (objects: readonly CorpusObject[]): CorpusObject[] =>
  objects.filter(({ phase }, n) => phase === 'definitions' || n % 2 === 0);

const name = (n: number): string => `${corpusPrefix}-${String(n).padStart(4, '0')}`;
const namespaceOf = (n: number): string => corpusNamespaces[n % corpusNamespaces.length] ?? corpusPrefix;
const namespaced = (n: number): JsonObject => ({ name: name(n), namespace: namespaceOf(n), labels: { app: name(n) } });

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** The words of all texts: as settings and scripts do, the corpus says the same few hundred over and over. */
const vocabulary: readonly string[] = (() => {
  const random = seededRandom(97);
  const letter = (): string => letters[Math.floor(random() * letters.length)] ?? '';
  return Array.from({ length: 400 }, () => Array.from({ length: 3 + Math.floor(random() * 8) }, letter).join(''));
})();

function text(length: number, random: () => number): string {
  let said = '';
  while (said.length < length) said += `${vocabulary[Math.floor(random() * vocabulary.length)]} `;
  return said.slice(0, length).trimEnd();
}

function configMap(n: number, random: () => number): CorpusObject {
  const data = { 'settings.conf': text(300 + Math.floor(random() * 1_400), random), level: 'info' };
  return { phase: 'config', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: namespaced(n), data } };
}

function secret(n: number, random: () => number): CorpusObject {
  const data = { value: Buffer.from(text(300, random)).toString('base64') };
  return {
    phase: 'config',
    object: { apiVersion: 'v1', kind: 'Secret', metadata: namespaced(n), type: 'Opaque', data },
  };
}

const rbac = 'rbac.authorization.k8s.io';

const rules = (random: () => number): JsonObject[] =>
  Array.from({ length: 2 + Math.floor(random() * 3) }, () => ({
    apiGroups: ['', 'apps'],
    resources: ['configmaps', 'secrets', 'deployments'].slice(0, 1 + Math.floor(random() * 3)),
    verbs: ['get', 'list', 'watch'],
  }));

function clusterRole(n: number, random: () => number): CorpusObject {
  const metadata = { name: name(n) };
  return {
    phase: 'access',
    object: { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata, rules: rules(random) },
  };
}

function clusterRoleBinding(n: number): CorpusObject {
  const metadata = { name: name(n) };
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: name(n) };
  const subjects = [{ kind: 'ServiceAccount', name: 'default', namespace: namespaceOf(n) }];
  return {
    phase: 'access',
    object: { apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata, roleRef, subjects },
  };
}

function role(n: number, random: () => number): CorpusObject {
  return {
    phase: 'access',
    object: { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: namespaced(n), rules: rules(random) },
  };
}

function roleBinding(n: number): CorpusObject {
  const roleRef = { apiGroup: rbac, kind: 'Role', name: name(n) };
  const subjects = [{ kind: 'ServiceAccount', name: 'default', namespace: namespaceOf(n) }];
  return {
    phase: 'access',
    object: { apiVersion: `${rbac}/v1`, kind: 'RoleBinding', metadata: namespaced(n), roleRef, subjects },
  };
}

function service(n: number): CorpusObject {
  const ports = [
    { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 },
    { name: 'metrics', port: 9090, protocol: 'TCP', targetPort: 9090 },
  ];
  const spec = { selector: { app: name(n) }, ports };
  return { phase: 'workloads', object: { apiVersion: 'v1', kind: 'Service', metadata: namespaced(n), spec } };
}

const image = `registry.example/bench@sha256:${'a'.repeat(64)}`;

function podTemplate(n: number, random: () => number): JsonObject {
  const env = Array.from({ length: 4 + Math.floor(random() * 8) }, (_, at) => ({
    name: `SETTING_${at}`,
    value: text(24, random),
  }));
  const probe = { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 10 };
  return {
    metadata: { labels: { app: name(n) } },
    spec: {
      serviceAccountName: 'default',
      containers: [
        {
          name: 'main',
          image,
          args: ['--listen=:8080', '--metrics=:9090'],
          env,
          ports: [
            { name: 'http', containerPort: 8080, protocol: 'TCP' },
            { name: 'metrics', containerPort: 9090, protocol: 'TCP' },
          ],
          resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '64Mi' } },
          readinessProbe: probe,
          livenessProbe: probe,
          volumeMounts: [{ name: 'settings', mountPath: '/etc/settings', readOnly: true }],
        },
      ],
      volumes: [{ name: 'settings', configMap: { name: name(n) } }],
    },
  };
}

function deployment(n: number, random: () => number): CorpusObject {
  const spec = { replicas: 2, selector: { matchLabels: { app: name(n) } }, template: podTemplate(n, random) };
  return { phase: 'workloads', object: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: namespaced(n), spec } };
}

function daemonSet(n: number, random: () => number): CorpusObject {
  const spec = { selector: { matchLabels: { app: name(n) } }, template: podTemplate(n, random) };
  return { phase: 'workloads', object: { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: namespaced(n), spec } };
}

/** About 8 KB. */
function custom(n: number, random: () => number): CorpusObject {
  const entries = Array.from({ length: 40 }, (_, at) => ({
    name: `entry-${at}`,
    value: text(140, random),
    weight: Math.floor(random() * 100),
  }));
  return {
    phase: 'objects',
    object: { apiVersion: `${customGroup}/v1`, kind: 'Setting', metadata: namespaced(n), spec: { entries } },
  };
}

function definition(n: number, random: () => number): CorpusObject {
  const fields = Array.from({ length: 12 }, (_, at) => [
    `field${at}`,
    { type: 'string', maxLength: 200, description: text(60 + Math.floor(random() * 80), random) },
  ]);
  return { phase: 'definitions', object: definitionOf(`${name(n)}.example.com`, Object.fromEntries(fields)) };
}

/** The definition of the custom resources of the corpus; it is there before a run begins. */
export const settingDefinition = (): JsonObject =>
  definitionOf(customGroup, {
    entries: {
      type: 'array',
      maxItems: 100,
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, value: { type: 'string' }, weight: { type: 'integer' } },
      },
    },
  });

function definitionOf(group: string, properties: JsonObject): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `settings.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind: 'Setting', listKind: 'SettingList', plural: 'settings', singular: 'setting' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } },
          },
        },
      ],
    },
  };
}
