/** As much of an API server as letting go and orphaning ask for: objects in memory, and who applied what to them. */
import { annotations, labels } from '../../constructs/api/constants.ts';
import { encodeLedger, type LedgerEntry } from '../../constructs/api/ledger.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { objectId } from '../../constructs/lib/names.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { type KubeObject, type ObjectRef, refOf } from '../../executor/kube/types.ts';
import { ledgerOf } from './executor-support.ts';

export const owner = 'c0ffee00-0000-4000-8000-000000000001';
export const release = 'network-main';
export const system = 'keelson-system';

const field = (names: readonly string[]): JsonObject => Object.fromEntries(names.map((name) => [`f:${name}`, {}]));

/** A ConfigMap in `kube-system` as our adoption leaves it: our label, our mark, and the installation as its owner. */
export function adopted(name: string, uid: string, more: Partial<KubeObject['metadata']> = {}): KubeObject {
  const id = `/ConfigMap/kube-system/${name}`;
  const fieldsV1 = {
    'f:data': field(['value']),
    'f:metadata': {
      'f:labels': field([labels.release, labels.installationUID]),
      'f:annotations': field([annotations.id]),
      'f:ownerReferences': { [`k:{"uid":"${owner}"}`]: {} },
    },
  };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'kube-system',
      uid,
      resourceVersion: '1',
      labels: { app: 'ovn', [labels.release]: release, [labels.installationUID]: owner },
      annotations: { [annotations.id]: id },
      ownerReferences: [
        { apiVersion: 'network.keelson.dev/v1alpha1', kind: 'KubeOVNInstallation', name: 'main', uid: owner },
      ],
      managedFields: [{ manager: 'keelson', operation: 'Apply', fieldsV1 }],
      ...more,
    },
    data: { value: 'kept' },
  };
}

/** The same before anything of ours was on it. */
export const foreign = (name: string, uid: string): KubeObject =>
  adopted(name, uid, { labels: { app: 'ovn' }, annotations: {}, ownerReferences: undefined, managedFields: [] });

const named = (fields: unknown): string[] => (isObject(fields) ? Object.keys(fields).map((key) => key.slice(2)) : []);

/** What an apply of nothing takes off: what this manager alone held of labels, annotations and owners. */
function withdrawn(object: KubeObject, manager: string): KubeObject {
  const { managedFields = [], ...metadata } = object.metadata;
  const mine = managedFields.find((entry) => entry.manager === manager)?.fieldsV1?.['f:metadata'];
  const held = isObject(mine) ? mine : {};
  const less = (values: object = {}, fields: unknown) =>
    Object.fromEntries(Object.entries(values).filter(([key]) => !named(fields).includes(key)));
  const { ownerReferences, ...rest } = metadata;
  return {
    ...object,
    metadata: {
      ...rest,
      labels: less(metadata.labels, held['f:labels']),
      annotations: less(metadata.annotations, held['f:annotations']),
      ...(isObject(held['f:ownerReferences']) || ownerReferences === undefined ? {} : { ownerReferences }),
      managedFields: managedFields.filter((entry) => entry.manager !== manager),
    },
  };
}

const resources = [
  { name: 'configmaps', kind: 'ConfigMap', namespaced: true, verbs: ['get', 'list', 'patch'] },
  { name: 'secrets', kind: 'Secret', namespaced: true, verbs: ['get', 'list', 'patch'] },
  { name: 'bindings', kind: 'Binding', namespaced: true, verbs: ['create'] },
];

interface OwnersModel {
  readonly client: KubeClient;
  readonly objects: Map<string, KubeObject>;
  /** Names of the objects that were written, ConfigMaps of ours apart. */
  readonly writes: string[];
}

/** `broken`: paths that are not answered. Secrets may not be listed. */
export function ownersModel(
  entries: readonly LedgerEntry[],
  live: readonly KubeObject[],
  broken: readonly string[] = [],
): OwnersModel {
  const shards = encodeLedger(ledgerOf(...entries), { release, namespace: system }) as unknown as KubeObject[];
  const stored = shards.map((shard) => ({
    ...shard,
    metadata: { ...shard.metadata, uid: 'uid-ledger', resourceVersion: '1' },
  }));
  const objects = new Map([...stored, ...live].map((object) => [objectId(refOf(object)), object]));
  const writes: string[] = [];
  const put = (object: KubeObject): KubeObject => {
    const { namespace = '', name = '' } = object.metadata;
    if (namespace !== system) writes.push(name);
    const next = { ...object, metadata: { ...object.metadata, resourceVersion: String(writes.length + 2) } };
    objects.set(objectId(refOf(object)), next);
    return next;
  };
  const texts: Readonly<Record<string, object>> = {
    '/apis': { groups: [{ preferredVersion: { groupVersion: 'x.io/v1' }, versions: [{ groupVersion: 'x.io/v1' }] }] },
    '/api/v1': { resources },
    '/apis/x.io/v1': { resources: [] },
  };
  const wanted = (selector = ''): [string, string][] =>
    selector
      .split(',')
      .filter((part) => part !== '')
      .map((part): [string, string] => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]);
  const client = {
    getPath: (path: string) =>
      Promise.resolve(
        broken.includes(path) || texts[path] === undefined
          ? { type: 'unavailable', message: 'no answer' }
          : { type: 'text', text: JSON.stringify(texts[path]) },
      ),
    resource: ({ apiVersion, kind }: ObjectRef) =>
      Promise.resolve({ type: 'resource', resource: { ...resources[0], apiVersion, kind } }),
    list: ({ kind, namespace, labelSelector }: { kind: string; namespace?: string; labelSelector?: string }) => {
      if (kind === 'Secret') return Promise.resolve({ type: 'forbidden', message: 'not for you' });
      const items = [...objects.values()].filter(
        ({ kind: one, metadata }) =>
          one === kind &&
          (namespace === undefined || metadata.namespace === namespace) &&
          wanted(labelSelector).every(([key, value]) => metadata.labels?.[key] === value),
      );
      return Promise.resolve({ type: 'listed', items, resourceVersion: '1' });
    },
    get: (ref: ObjectRef) => {
      const object = objects.get(objectId(ref));
      return Promise.resolve(object === undefined ? { type: 'absent' } : { type: 'found', object });
    },
    replaceManagedFields: (ref: ObjectRef, { entries: managedFields }: { entries: JsonObject[] }) => {
      const object = objects.get(objectId(ref)) as KubeObject;
      return Promise.resolve({
        type: 'updated',
        object: put({ ...object, metadata: { ...object.metadata, managedFields } }),
      });
    },
    apply: (sent: KubeObject, { fieldManager }: { fieldManager: string }) => {
      const known = objects.get(objectId(refOf(sent)));
      const ours = sent.metadata.namespace === system;
      const next = ours
        ? { ...sent, metadata: { ...sent.metadata, uid: 'uid-ours' } }
        : withdrawn(known ?? sent, fieldManager);
      return Promise.resolve({ type: known === undefined ? 'created' : 'configured', object: put(next) });
    },
    forget: () => undefined,
  };
  return { client: client as unknown as KubeClient, objects, writes };
}
