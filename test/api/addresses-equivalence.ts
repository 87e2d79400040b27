import fc from 'fast-check';
import { deepEqual, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { LedgerApi, LedgerWrite } from '../../executor/addresses/api.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { LedgerPatch } from '../../executor/addresses/plan.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type ModelServer, modelApi } from '../pure/addresses-model.ts';
import type { LedgerPlace } from './addresses-bed.ts';

/** Steps that a model and a real server are taken through, and what each of them answers. */

export type Step =
  | {
      readonly type: 'create';
      readonly kind: LedgerKind;
      readonly name: string;
      readonly spec: JsonObject;
      readonly finalizers: readonly string[];
    }
  | {
      readonly type: 'edit';
      readonly kind: LedgerKind;
      readonly name: string;
      readonly spec: JsonObject;
      readonly late: boolean;
    }
  | {
      readonly type: 'patch';
      readonly kind: LedgerKind;
      readonly name: string;
      readonly patch: LedgerPatch;
      readonly late: boolean;
    }
  | {
      readonly type: 'status';
      readonly kind: 'IPAddress' | 'IPAddressClaim';
      readonly name: string;
      readonly status: JsonObject;
      readonly late: boolean;
    }
  | { readonly type: 'remove' | 'read'; readonly kind: LedgerKind; readonly name: string; readonly late: boolean };

const kind = fc.constantFrom<LedgerKind>('IPAddress', 'IPAddress', 'IPAddressClaim', 'IPAddressClass');
const name = fc.constantFrom('a', 'b');
const finalizers = fc.subarray(['own/one', 'own/two']);
const claimRef = fc.constantFrom<JsonObject>(
  { namespace: 'tenant', name: 'web' },
  { namespace: 'tenant', name: 'web', uid: 'x' },
  { namespace: 'tenant', name: 'web', uid: 'y' },
  { namespace: 'tenant', name: 'mail' },
);
const addressSpec = fc.record(
  {
    className: fc.constantFrom('public', 'private'),
    address: fc.constantFrom('203.0.113.7', '203.0.113.7', '010.0.0.1', '2001:db8::7', '2001:DB8::7'),
    source: fc.constantFrom<JsonObject>({ fromClass: {} }, { fromClass: {} }, { providerRef: { id: 'r' } }, {}),
    reclaimPolicy: fc.constantFrom('Retain', 'Delete'),
    claimRef,
  },
  { requiredKeys: ['className', 'address', 'source'] },
);
const claimSpec = fc.record(
  {
    className: fc.constantFrom('public', 'private'),
    family: fc.constantFrom('IPv4', 'Dual'),
    addressName: fc.constant('a'),
  },
  { requiredKeys: [] },
);
const classSpec = fc.record(
  {
    provisioner: fc.constantFrom('p', 'p', 'q'),
    releaseDelay: fc.constantFrom('1h', '0s', '-1h'),
    parameters: fc.constant({ deep: [1] }),
  },
  { requiredKeys: ['provisioner'] },
);
const specOf = (of: LedgerKind): fc.Arbitrary<JsonObject> =>
  (of === 'IPAddress' ? addressSpec : of === 'IPAddressClaim' ? claimSpec : classSpec) as fc.Arbitrary<JsonObject>;

const late = fc.boolean().map((bit) => bit);
const conditions: JsonValue = [
  { type: 'Bound', status: 'False', reason: 'Available', message: 'x', lastTransitionTime: '2026-01-01T00:00:00Z' },
];

export const step: fc.Arbitrary<Step> = kind.chain((of) =>
  fc.oneof(
    fc.record({ type: fc.constant('create' as const), kind: fc.constant(of), name, spec: specOf(of), finalizers }),
    fc.record({ type: fc.constant('edit' as const), kind: fc.constant(of), name, spec: specOf(of), late }),
    fc.record({
      type: fc.constant('patch' as const),
      kind: fc.constant(of),
      name,
      late,
      patch: fc.oneof(
        finalizers.map((list): LedgerPatch => ({ finalizers: list })),
        fc.constantFrom('1', '2').map((value): LedgerPatch => ({ annotations: { stamp: value } })),
        ...(of === 'IPAddress'
          ? [
              fc.constantFrom<LedgerPatch>(
                { claimRef: null },
                { claimRef: { uid: 'x' } },
                { claimRef: { namespace: 'tenant', name: 'web', uid: 'x' } },
              ),
            ]
          : []),
      ),
    }),
    fc.record({
      type: fc.constant('status' as const),
      kind: fc.constant(of === 'IPAddressClaim' ? of : ('IPAddress' as const)),
      name,
      late,
      status: fc.constantFrom<JsonObject>({ phase: 'Pending' }, { phase: 'Bound', conditions }, { phase: 'Odd' }, {}),
    }),
    fc.record({ type: fc.constantFrom('remove' as const, 'read' as const), kind: fc.constant(of), name, late }),
  ),
);

/** What came of a step. `object` is without what two servers never share. */
export interface Answer {
  readonly type: string;
  readonly object?: JsonObject;
}

/** The object without names, times and versions that the server makes up. */
function plain(object: KubeObject): JsonObject {
  const { name, finalizers = [], annotations = {}, generation = 0, deletionTimestamp } = object.metadata;
  return {
    name: name ?? '',
    finalizers: [...finalizers],
    annotations,
    generation,
    deleting: deletionTimestamp !== undefined,
    spec: object.spec ?? null,
    status: object.status ?? null,
  };
}

export interface Side {
  take(step: Step): Promise<Answer>;
}

/** A server as one side: it remembers every version that it has shown, so that a late writer can be played. */
function side(
  api: LedgerApi,
  create: (
    kind: LedgerKind,
    object: { name: string; spec: JsonObject; finalizers: readonly string[] },
  ) => Promise<Answer & { raw?: KubeObject }>,
  edit: (object: KubeObject) => Promise<Answer & { raw?: KubeObject }>,
  namespace: string,
): Side {
  const versions = new Map<string, KubeObject[]>();
  const signal = new AbortController().signal;
  const remember = (object: KubeObject): void => {
    const key = `${object.kind} ${object.metadata.name}`;
    const known = versions.get(key) ?? [];
    if (known.at(-1)?.metadata.resourceVersion !== object.metadata.resourceVersion)
      versions.set(key, [...known, object]);
  };
  const answered = ({ raw, ...answer }: Answer & { raw?: KubeObject }): Answer => {
    if (raw !== undefined) remember(raw);
    return answer;
  };
  const send = async (target: KubeObject, step: Exclude<Step, { type: 'create' | 'read' }>): Promise<Answer> => {
    if (step.type === 'edit') return answered(await edit({ ...target, spec: step.spec }));
    const outcome = await sendThrough(api, target, step);
    if (outcome.type !== 'written') return { type: outcome.type };
    const { deletionTimestamp, finalizers = [] } = outcome.object.metadata;
    const gone = deletionTimestamp !== undefined && finalizers.length === 0;
    if (!gone) remember(outcome.object);
    return { type: 'written', object: gone ? { gone } : plain(outcome.object) };
  };
  return {
    async take(step) {
      if (step.type === 'create') return answered(await create(step.kind, step));
      const place = step.kind === 'IPAddressClaim' ? { namespace } : {};
      const now = await api.read({ kind: step.kind, ...place, name: step.name }, signal);
      if (now.type === 'found') remember(now.object);
      if (step.type === 'read')
        return now.type === 'found' ? { type: 'found', object: plain(now.object) } : { type: now.type };
      const known = versions.get(`${step.kind} ${step.name}`) ?? [];
      const latest = now.type === 'found' ? now.object : known.at(-1);
      const target = step.late ? known.at(-2) : latest;
      return target === undefined ? { type: 'never seen' } : send(target, step);
    },
  };
}

function sendThrough(
  api: LedgerApi,
  target: KubeObject,
  step: Exclude<Step, { type: 'create' | 'read' | 'edit' }>,
): Promise<LedgerWrite> {
  const signal = new AbortController().signal;
  if (step.type === 'patch') return api.patch(target, step.patch, signal);
  return step.type === 'status' ? api.status(target, step.status, signal) : api.remove(target, signal);
}

export function modelSide(server: ModelServer): Side {
  const api = modelApi(server);
  const asAnswer = (outcome: ReturnType<ModelServer['create']>): Answer & { raw?: KubeObject } =>
    outcome.type === 'written'
      ? { type: 'written', object: plain(outcome.object), raw: outcome.object }
      : { type: outcome.type };
  return side(
    {
      create: async (object) => api.create(object),
      patch: async (target, patch) => api.patch(target, patch),
      status: async (target, status) => api.status(target, status),
      remove: async (target) => api.remove(target),
      read: async (ref) => api.read(ref),
      addresses: async () => api.addresses(),
    },
    async (kind, { name, spec, finalizers }) =>
      asAnswer(
        server.create({
          apiVersion: 'local.sdn.cozystack.io/v1alpha1',
          kind,
          metadata: {
            name,
            ...(kind === 'IPAddressClaim' ? { namespace: 'tenant-a' } : {}),
            ...(finalizers.length === 0 ? {} : { finalizers: [...finalizers] }),
          },
          spec,
        }),
      ),
    async (object) => asAnswer(server.update(object)),
    'tenant-a',
  );
}

export function realSide(api: LedgerApi, place: LedgerPlace): Side {
  const { admin } = place.server;
  const asAnswer = (status: number, body: JsonObject): Answer & { raw?: KubeObject } => {
    if (status === 200 || status === 201)
      return { type: 'written', object: plain(body as KubeObject), raw: body as KubeObject };
    if (status === 409) return { type: body.reason === 'AlreadyExists' ? 'exists' : 'stale' };
    return { type: status === 404 ? 'gone' : status === 422 ? 'refused' : `HTTP ${status}` };
  };
  return side(
    api,
    async (kind, { name, spec, finalizers }) => {
      const path = place.path(kind, name);
      const reply = await admin.request('POST', path.slice(0, path.lastIndexOf('/')), {
        body: {
          apiVersion: 'local.sdn.cozystack.io/v1alpha1',
          kind,
          metadata: { name, ...(finalizers.length === 0 ? {} : { finalizers: [...finalizers] }) },
          spec,
        },
      });
      return asAnswer(reply.status, reply.body);
    },
    async (object) => {
      const reply = await admin.request('PUT', place.path(object.kind as LedgerKind, object.metadata.name ?? ''), {
        body: object,
      });
      return asAnswer(reply.status, reply.body);
    },
    place.namespace,
  );
}

export const sameAnswer = (a: Answer, b: Answer): boolean => deepEqual({ ...a } as JsonObject, { ...b } as JsonObject);

export const isWritten = ({ type, object }: Answer): boolean => type === 'written' && isObject(object);
