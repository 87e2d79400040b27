import { annotations, labels, managedByValue } from '../../constructs/api/constants.ts';
import {
  type Gate,
  manifestDigest,
  type PayloadContent,
  type PayloadIndex,
  type PayloadObject,
  payloadContent,
  payloadDigest,
} from '../../constructs/api/payload.ts';
import { encodePayload, objectFile, objectSha256, type Payload } from '../../constructs/api/payload-codec.ts';
import { generateKeyPair, type KeyPair, signDigest } from '../../constructs/api/signature.ts';
import { type JsonObject, sortedCopy } from '../../constructs/lib/json.ts';
import { manifestFileName, objectId } from '../../constructs/lib/names.ts';

/** One object of a payload under construction, and the marks of its index entry. */
export interface Manifest {
  readonly object: JsonObject;
  readonly flags?: Partial<
    Pick<PayloadObject, 'keep' | 'conflict' | 'yieldFields' | 'recreate' | 'createOnly' | 'absent'>
  >;
}

export interface PhaseInput {
  readonly name: string;
  readonly gates?: readonly Gate[];
  readonly manifests: readonly Manifest[];
}

export interface PayloadInput {
  readonly release: string;
  readonly phases: readonly PhaseInput[];
  readonly key?: KeyPair;
  readonly content?: Partial<PayloadContent>;
}

export interface BuiltPayload {
  readonly payload: Payload;
  readonly digest: string;
  readonly archive: Uint8Array;
}

const sha = (c: string): string => `sha256:${c.repeat(64)}`;

export const gate = (type: string, scope: string, more: Partial<Gate> = {}): Gate => ({
  type,
  scope,
  softLimit: '10m',
  ...more,
});

interface Named extends JsonObject {
  metadata: JsonObject & { name: string; namespace?: string; labels?: JsonObject; annotations?: JsonObject };
}

/** An object with the marks that the renderer puts on everything. */
function marked(object: JsonObject, release: string, phase: string): JsonObject {
  const { metadata } = object as Named;
  const id = objectId({
    apiVersion: String(object.apiVersion),
    kind: String(object.kind),
    name: metadata.name,
    namespace: metadata.namespace,
  });
  return sortedCopy({
    ...object,
    metadata: {
      ...metadata,
      labels: {
        ...metadata.labels,
        [labels.managedBy]: managedByValue,
        [labels.release]: release,
        [labels.phase]: phase,
      },
      annotations: { ...metadata.annotations, [annotations.id]: id },
    },
  });
}

/** Builds, signs and packs a payload as the renderer would. */
export async function buildPayload(input: PayloadInput): Promise<BuiltPayload> {
  const objects = new Map<string, JsonObject>();
  let n = 0;
  const phases = input.phases.map((phase, place) => {
    const dir = `${String((place + 1) * 10)}-${phase.name}`;
    const entries = phase.manifests.map(({ object, flags }): PayloadObject => {
      const full = marked(object, input.release, phase.name);
      const { metadata } = full as Named;
      const identity = {
        apiVersion: String(full.apiVersion),
        kind: String(full.kind),
        ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
        name: metadata.name,
      };
      objects.set(objectId(identity), full);
      return {
        file: objectFile(n++),
        yaml: `${dir}/${manifestFileName(identity)}`,
        sha256: objectSha256(full),
        ...identity,
        keep: false,
        conflict: 'fail',
        recreate: false,
        createOnly: false,
        absent: false,
        ...flags,
      };
    });
    return { name: phase.name, dir, gates: [...(phase.gates ?? [])], objects: entries };
  });
  const content = payloadContent.parse({
    cluster: 'test',
    release: { name: input.release, domain: 'manifests' },
    manifestDigest: manifestDigest(phases),
    installations: [],
    requires: [],
    spans: [],
    phases,
    ...input.content,
  });
  const digest = payloadDigest(content);
  const index: PayloadIndex = {
    formatVersion: 1,
    digest,
    ...(input.key === undefined ? {} : { signature: signDigest(digest, input.key.privateKey) }),
    content,
    provenance: {
      keelson: '0.0.0',
      inputs: { specs: sha('1'), lock: sha('2'), inventory: sha('3'), charts: [] },
      filteredHooks: [],
    },
  };
  const payload: Payload = { index, objects };
  return { payload, digest, archive: await encodePayload(payload) };
}

export const testKey: KeyPair = generateKeyPair();

export const configMap = (
  namespace: string,
  name: string,
  data: Record<string, string> = { value: 'one' },
): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
  data,
});

const image = `registry.example/app@${sha('a')}`;

const podTemplate = (app: string): JsonObject => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image, ports: [{ containerPort: 8080, protocol: 'TCP' }] }] },
});

export const deployment = (namespace: string, name: string, replicas = 2): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: podTemplate(name) },
});

const daemonSet = (namespace: string, name: string): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name, namespace },
  spec: { selector: { matchLabels: { app: name } }, template: podTemplate(name) },
});

export const namespaceObject = (name: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
});

const widgetDefinition = (group: string): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
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
                required: ['size'],
                properties: { size: { type: 'integer', minimum: 1 }, color: { type: 'string' } },
              },
            },
          },
        },
      },
    ],
  },
});

const widget = (group: string, namespace: string, name: string, spec: JsonObject = { size: 3 }): JsonObject => ({
  apiVersion: `${group}/v1`,
  kind: 'Widget',
  metadata: { name, namespace },
  spec,
});

export interface SliceNames {
  readonly release: string;
  /** Namespace that comes with the payload. */
  readonly namespace: string;
  /** Group of the CRD that comes with the payload. */
  readonly group: string;
}

/** Twelve objects in three phases: a namespace and things in it, a CRD and an object of it, RBAC, workloads. */
export function slicePhases(names: SliceNames, value = 'one', extra: readonly Manifest[] = []): PhaseInput[] {
  const { namespace, group, release } = names;
  const inNamespace = (object: JsonObject): Manifest => ({ object });
  return [
    {
      name: 'definitions',
      gates: [gate('Established', 'definitions')],
      manifests: [inNamespace(namespaceObject(namespace)), inNamespace(widgetDefinition(group))],
    },
    {
      name: 'access',
      manifests: [
        { object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'app', namespace } } },
        {
          object: {
            apiVersion: 'rbac.authorization.k8s.io/v1',
            kind: 'Role',
            metadata: { name: 'app', namespace },
            rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
          },
        },
        {
          object: {
            apiVersion: 'rbac.authorization.k8s.io/v1',
            kind: 'RoleBinding',
            metadata: { name: 'app', namespace },
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'app' },
            subjects: [{ kind: 'ServiceAccount', name: 'app', namespace }],
          },
        },
        {
          object: {
            apiVersion: 'rbac.authorization.k8s.io/v1',
            kind: 'ClusterRole',
            metadata: { name: `${release}-reader` },
            rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
          },
        },
        inNamespace(configMap(namespace, 'settings', { value })),
        inNamespace(configMap(namespace, 'scripts', { run: 'exit 0' })),
      ],
    },
    {
      name: 'workloads',
      gates: [gate('WorkloadsReady', 'workloads')],
      manifests: [
        inNamespace(configMap(namespace, 'extra')),
        inNamespace(deployment(namespace, 'server')),
        inNamespace(daemonSet(namespace, 'agent')),
        inNamespace(widget(group, namespace, 'first')),
        ...extra,
      ],
    },
  ];
}
