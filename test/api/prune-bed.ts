/** Releases of ConfigMaps that shrink, and what gets in the way of that. */
import type { ReleaseSpecInput } from '../../constructs/api/release.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { is, type SliceBed, type StatusView } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, type Manifest, testKey } from './slice-payload.ts';

export const roomy = { prune: { enabled: true, maxPercent: 100, maxCount: 100 } };

export const map = (
  bed: SliceBed,
  name: string,
  more: Partial<Manifest> & { metadata?: JsonObject } = {},
): Manifest => {
  const object = configMap(bed.names.namespace, name);
  const { metadata, ...rest } = more;
  return { object: { ...object, metadata: { ...(object.metadata as JsonObject), ...metadata } }, ...rest };
};

export const build = (bed: SliceBed, manifests: readonly Manifest[]): Promise<BuiltPayload> =>
  buildPayload({ release: bed.names.release, key: testKey, phases: [{ name: 'one', manifests }] });

export async function deliver(
  bed: SliceBed,
  manifests: readonly Manifest[],
  spec: Partial<ReleaseSpecInput> = roomy,
): Promise<BuiltPayload> {
  const built = await build(bed, manifests);
  await bed.deliver(built);
  await bed.applyRelease(built, spec);
  return built;
}

export const isThrough = (digest: string) => (s: StatusView) => s.raw.actual === digest && is(s, 'Ready', 'True');

export async function inPlace(
  bed: SliceBed,
  manifests: readonly Manifest[],
  spec?: Partial<ReleaseSpecInput>,
): Promise<void> {
  const { digest } = await deliver(bed, manifests, spec);
  await bed.untilStatus('it is in place', isThrough(digest));
}

export const pathOf = (bed: SliceBed, name: string): string =>
  `/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`;
export const idOf = (bed: SliceBed, name: string): string => `/ConfigMap/${bed.names.namespace}/${name}`;

export const merge = (bed: SliceBed, path: string, body: unknown): Promise<{ body: { metadata: { uid: string } } }> =>
  bed.server.admin.expect('PATCH', path, {
    body,
    type: 'application/merge-patch+json',
    query: { fieldManager: 'kubectl' },
  });

export const failureOf = (s: StatusView, reason: string): { object?: string; message: string } | undefined =>
  s.raw.failures?.find((failure: { reason: string }) => failure.reason === reason);

export const told = (
  bed: SliceBed,
  reason: string,
  probe: (message: string) => boolean = () => true,
): Promise<StatusView> =>
  bed.untilStatus(`${reason} to be told`, (s) => {
    const failure = failureOf(s, reason);
    return failure !== undefined && probe(failure.message);
  });

/** A policy that refuses deletions of one object; in force once a dry run is refused. */
export async function denying(bed: SliceBed, name: string): Promise<() => Promise<void>> {
  const { admin } = bed.server;
  const { namespace, release } = bed.names;
  const group = '/apis/admissionregistration.k8s.io/v1';
  await admin.expect('POST', `${group}/validatingadmissionpolicies`, {
    body: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: release },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: [''],
              apiVersions: ['v1'],
              operations: ['DELETE'],
              resources: ['configmaps'],
              resourceNames: [name],
            },
          ],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        },
        validations: [{ expression: 'false', message: 'it is still in use' }],
      },
    },
  });
  await admin.expect('POST', `${group}/validatingadmissionpolicybindings`, {
    body: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: release },
      spec: { policyName: release, validationActions: ['Deny'] },
    },
  });
  await waitFor({
    what: 'the policy to be in force',
    limitMs: 20_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async () => {
      const tried = await admin.request('DELETE', pathOf(bed, name), { query: { dryRun: 'All' } });
      return tried.status === 422 || tried.status === 403 ? true : undefined;
    },
  });
  return async () => {
    await admin.expect('DELETE', `${group}/validatingadmissionpolicybindings/${release}`);
    await admin.expect('DELETE', `${group}/validatingadmissionpolicies/${release}`);
  };
}

export const webhook = (bed: SliceBed, operations: string[]): JsonObject => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: bed.names.release },
  webhooks: [
    {
      name: 'guard.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      timeoutSeconds: 1,
      clientConfig: { service: { namespace: bed.names.namespace, name: 'guard', path: '/check' } },
      namespaceSelector: {
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [bed.names.namespace] }],
      },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations, resources: ['configmaps'], scope: '*' }],
    },
  ],
});

export const webhookPath = (bed: SliceBed): string =>
  `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${bed.names.release}`;
