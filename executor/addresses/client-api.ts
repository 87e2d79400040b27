/** The ledger's requests through the client. */
import { addressAnnotations, type addressesApiVersion } from '../../constructs/api/addresses.ts';
import { managers } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { isDns1123Label, isDns1123Subdomain } from '../../constructs/lib/names.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Rejection, UpdateOutcome } from '../kube/outcome.ts';
import { mergePatch } from '../kube/status.ts';
import { type KubeObject, refOf, resourceVersionOf, uidOf } from '../kube/types.ts';
import type { SharedRef } from '../kube/verbs/merge.ts';
import type { LedgerApi, LedgerRef, LedgerWrite } from './api.ts';

const apiVersion = 'local.sdn.cozystack.io/v1alpha1' satisfies typeof addressesApiVersion;

/** @throws TypeError for a kind that is not one of those. */
function sharedRef(object: KubeObject): SharedRef {
  const ref = refOf(object);
  if (ref.apiVersion === apiVersion) return { ...ref, apiVersion };
  if (ref.apiVersion === 'metallb.io/v1beta1') return { ...ref, apiVersion: 'metallb.io/v1beta1' };
  if (ref.apiVersion === 'v1' && ref.kind === 'Service') return { ...ref, apiVersion: 'v1', kind: 'Service' };
  throw new TypeError(`${ref.kind} is not written here`);
}

const kindOf = ({ apiVersion, kind }: SharedRef): Pick<SharedRef, 'apiVersion' | 'kind'> => ({ apiVersion, kind });

/** No answer may mean that it happened; everything else that is no answer of the object says that nothing did. */
function rejected({ type, message }: Rejection): LedgerWrite {
  if (type === 'unavailable') return { type: 'failed', message };
  return { type: 'refused', message, ...(type === 'invalid' ? { invalid: true } : {}) };
}

function asWrite(outcome: UpdateOutcome, keep: Keep): LedgerWrite {
  switch (outcome.type) {
    case 'updated':
      return { type: 'written', object: keep(outcome.object) };
    case 'stale':
      return { type: 'stale' };
    case 'absent':
      return { type: 'gone' };
    default:
      return rejected(outcome);
  }
}

export type Keep = (object: KubeObject) => KubeObject;

/**
 * Whether an object can have the name. Annotations and stored references hold whatever somebody wrote: asked for a name with a
 * slash, or for two dots, a server answers about something else.
 */
const canBe = ({ namespace, name }: LedgerRef): boolean =>
  isDns1123Subdomain(name) && (namespace === undefined || isDns1123Label(namespace));

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Nobody here reads who wrote which field, or what, and it is the larger half of most objects. */
export function withoutManagers(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  if (metadata.annotations?.[lastApplied] === undefined) return { ...object, metadata };
  const { [lastApplied]: __, ...annotations } = metadata.annotations;
  return { ...object, metadata: { ...metadata, annotations } };
}

const read: readonly string[] = Object.values(addressAnnotations);
/** Longer than any text that an annotation of ours may have. */
const longestText = 1_024;

/**
 * What is kept of an object of the ledger: of its annotations those that are read, and no labels. Tenants write claims, and each
 * may carry a quarter of a megabyte.
 */
export function ownParts(object: KubeObject): KubeObject {
  const { metadata, ...rest } = withoutManagers(object);
  if (object.apiVersion !== apiVersion) return { ...rest, metadata };
  const { labels: _, annotations, ...others } = metadata;
  if (annotations === undefined) return { ...rest, metadata: others };
  const ours = Object.fromEntries(
    Object.entries(annotations).filter(([key, value]) => read.includes(key) && value.length <= longestText),
  );
  return { ...rest, metadata: { ...others, annotations: ours } };
}

/** What the core and drivers write goes out under one manager. */
const fieldManager = managers.addresses;

/** @param keep what is kept of an object. */
export function clientLedgerApi(client: KubeClient, keep: Keep = withoutManagers): LedgerApi {
  return {
    async create(object, signal) {
      const outcome = await client.create({ ...object, ...kindOf(sharedRef(object)) }, { fieldManager, signal });
      if (outcome.type === 'created') return { type: 'written', object: keep(outcome.object) };
      return outcome.type === 'exists' ? { type: 'exists' } : rejected(outcome);
    },
    async patch(target, { claimRef, spec: own, ...metadata }, signal) {
      const spec = claimRef === undefined ? own : ({ ...own, claimRef } as JsonObject);
      const patch = {
        ...metadata,
        uid: uidOf(target),
        resourceVersion: resourceVersionOf(target),
        ...(spec === undefined ? {} : { spec }),
      };
      return asWrite(await client.mergeShared(sharedRef(target), patch, { fieldManager, signal }), keep);
    },
    async status(target, status, signal) {
      const patch = mergePatch(target.status ?? {}, status) ?? {};
      const write = { resourceVersion: resourceVersionOf(target), status: patch };
      return asWrite(await client.mergeStatus(refOf(target), write, { fieldManager, signal }), keep);
    },
    async remove(target, signal) {
      const options = { uid: uidOf(target), resourceVersion: resourceVersionOf(target), signal };
      const outcome = await client.delete(refOf(target), { ...options, propagation: 'Background' });
      switch (outcome.type) {
        case 'deleted':
        case 'terminating':
          return { type: 'removed' };
        case 'absent':
          return { type: 'gone' };
        case 'preconditionFailed':
          return { type: 'stale' };
        default:
          return rejected(outcome);
      }
    },
    async read(ref: LedgerRef, signal) {
      if (!canBe(ref)) return { type: 'absent' };
      const outcome = await client.get({ apiVersion, ...ref }, { signal });
      if (outcome.type === 'found') return { type: 'found', object: keep(outcome.object) };
      if (outcome.type === 'absent') return outcome;
      return { type: 'failed', message: outcome.message };
    },
    async addresses(signal) {
      const outcome = await client.list({ apiVersion, kind: 'IPAddress' }, { signal, transform: keep });
      return outcome.type === 'listed' ? outcome.items : { type: 'failed', message: outcome.message };
    },
  };
}
