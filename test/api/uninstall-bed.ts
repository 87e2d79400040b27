import * as assert from 'uvu/assert';
import { labels } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { ApiServer } from '../apiserver/server.ts';
import { runKeelson, type Said } from '../commandline.ts';
import type { SliceBed } from './slice-bed.ts';
import { configMap, deployment, type PhaseInput } from './slice-payload.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

/** The command as a person runs it, against this server. */
export function uninstaller(server: ApiServer) {
  function uninstall({ system, names }: SliceBed, ...flags: string[]): Promise<Said> {
    const env = { PATH: process.env.PATH ?? '', HOME: server.directory, KUBECONFIG: server.kubeconfig };
    const args = ['uninstall', names.release, '--no-git-check', ...flags, '-n', system];
    return runKeelson(args, { env, cwd: server.directory });
  }
  return {
    uninstall,
    async planOf(bed: SliceBed, ...flags: string[]): Promise<Loose> {
      const said = await uninstall(bed, ...flags, '-o', 'json');
      assert.is(said.code, 0, said.err);
      return JSON.parse(said.out);
    },
  };
}

const definition = (group: string, kind: string): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${kind.toLowerCase()}s.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

const webhook = (name: string): JsonObject => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name },
  webhooks: [
    {
      name: 'never.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Ignore',
      clientConfig: { url: 'https://127.0.0.1:1/' },
      rules: [
        { apiGroups: ['never.example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['nothings'] },
      ],
    },
  ],
});

/** Something of every kind that an uninstall treats in its own way. */
export function phasesOf({ names }: SliceBed, owner: JsonObject): PhaseInput[] {
  const { namespace, group, release } = names;
  const meta = (name: string, more: JsonObject = {}): JsonObject => ({ name, namespace, ...more });
  const objects = (list: readonly JsonObject[]) => list.map((object) => ({ object }));
  return [
    {
      name: 'definitions',
      manifests: objects([
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
        definition(group, 'Widget'),
        definition(group, 'Gadget'),
      ]),
    },
    {
      name: 'access',
      manifests: objects([
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta('app') },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: `${release}-reader` },
          rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
        },
      ]),
    },
    {
      name: 'workloads',
      manifests: [
        ...objects([
          { ...configMap(namespace, 'settings'), metadata: meta('settings', { ownerReferences: [owner] }) },
          {
            ...configMap(namespace, 'kept'),
            metadata: meta('kept', { annotations: { 'helm.sh/resource-policy': 'keep' } }),
          },
          deployment(namespace, 'server', 1),
          { apiVersion: `${group}/v1`, kind: 'Widget', metadata: meta('first'), spec: { size: 1 } },
          { apiVersion: `${group}/v1`, kind: 'Gadget', metadata: meta('first'), spec: { size: 1 } },
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: meta('data'),
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
          webhook(`${release}.example.com`),
        ]),
      ],
    },
  ];
}

/** It is as it was, and nothing on it says that it ever was ours. */
export function isLetGo(live: Loose, before: Loose, what: string): void {
  const { metadata, spec, data, rules } = live;
  assert.is(metadata.uid, before.metadata.uid, what);
  assert.is(metadata.deletionTimestamp, undefined, what);
  // The generation of a Deployment counts its annotations as well.
  if (live.kind !== 'Deployment')
    assert.is(metadata.generation, before.metadata.generation, `${what}: nothing of it was changed`);
  assert.equal([spec, data, rules], [before.spec, before.data, before.rules], what);
  assert.is(metadata.ownerReferences, undefined, what);
  const marks = [...Object.keys(metadata.labels ?? {}), ...Object.keys(metadata.annotations ?? {})];
  assert.equal(
    marks.filter((key) => key.startsWith('keelson.dev/') || key === labels.managedBy),
    [],
    what,
  );
  assert.not.ok(
    (metadata.managedFields ?? []).some((entry: Loose) => entry.manager === 'keelson'),
    what,
  );
}
