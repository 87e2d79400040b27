import { addressesApiVersion } from '../../constructs/api/addresses.ts';
import { applyDefaults } from '../../constructs/api/defaults.ts';
import { findDocumentSchema } from '../../constructs/api/schemas.ts';
import { validateDocument } from '../../constructs/api/validate.ts';
import { deepEqual, isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { LedgerRead, LedgerRef, LedgerWrite } from '../../executor/addresses/api.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { LedgerPatch } from '../../executor/addresses/plan.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';

/**
 * The API server as far as the ledger goes, in memory: versions, finalizers, deletion, generation, the status subresource,
 * defaults and validation of the definitions, and a log of events that watchers read at their own pace.
 */

export interface ModelEvent {
  readonly type: 'seen' | 'deleted';
  readonly object: KubeObject;
}

export type ModelOutcome =
  | { readonly type: 'written'; readonly object: KubeObject }
  | { readonly type: 'removed' | 'stale' | 'gone' | 'exists' }
  | { readonly type: 'refused'; readonly message: string };

const keyOf = ({ kind, namespace, name }: LedgerRef): string => `${kind} ${namespace ?? ''}/${name}`;
const refOf = (object: KubeObject): LedgerRef => ({
  kind: object.kind,
  ...(object.metadata.namespace === undefined ? {} : { namespace: object.metadata.namespace }),
  name: object.metadata.name ?? '',
});

export class ModelServer {
  readonly log: ModelEvent[] = [];
  readonly #objects = new Map<string, KubeObject>();
  readonly #now: () => number;
  /** Whether objects are held to the rules of their definitions; the rules cost more than the rest. */
  readonly #strict: boolean;
  #version = 0;
  #uids = 0;

  constructor(now: () => number, strict = true) {
    this.#now = now;
    this.#strict = strict;
  }

  get(ref: LedgerRef): KubeObject | undefined {
    return this.#objects.get(keyOf(ref));
  }

  list(kind?: string): KubeObject[] {
    return [...this.#objects.values()].filter((object) => kind === undefined || object.kind === kind);
  }

  create(object: KubeObject): ModelOutcome {
    const { status: _, ...body } = object;
    const invalid = this.#invalid(body as KubeObject, undefined);
    if (invalid !== undefined) return invalid;
    if (this.get(refOf(object)) !== undefined) return { type: 'exists' };
    const made = this.#withDefaults(body as KubeObject);
    this.#uids += 1;
    return this.#store({
      ...made,
      metadata: { ...made.metadata, uid: `u-${this.#uids}`, generation: 1, creationTimestamp: this.#time() },
    });
  }

  /** An object as an older definition let it in, status included. */
  plant(object: KubeObject): KubeObject {
    this.#uids += 1;
    const metadata = { uid: `u-${this.#uids}`, generation: 1, creationTimestamp: this.#time(), ...object.metadata };
    const stored = this.#store({ ...object, metadata });
    if (stored.type !== 'written') throw new Error('not planted');
    return stored.object;
  }

  /** Replaces everything but status, in the version that the object carries. */
  update(object: KubeObject): ModelOutcome {
    const live = this.get(refOf(object));
    const stale = this.#precondition(live, object);
    if (live === undefined || stale !== undefined) return stale ?? { type: 'gone' };
    if (live.metadata.deletionTimestamp !== undefined) {
      const added = (object.metadata.finalizers ?? []).filter(
        (one) => live.metadata.finalizers?.includes(one) !== true,
      );
      if (added.length > 0)
        return { type: 'refused', message: 'no finalizers can be added to an object that is deleted' };
    }
    const { status: _, ...body } = object;
    const next = this.#withDefaults({
      ...body,
      ...(live.status === undefined ? {} : { status: live.status }),
    } as KubeObject);
    const invalid = this.#invalid(next, live);
    if (invalid !== undefined) return invalid;
    const changed = !deepEqual(live.spec, next.spec);
    return this.#replace(live, {
      ...next,
      metadata: { ...next.metadata, ...(changed ? { generation: (live.metadata.generation ?? 0) + 1 } : {}) },
    });
  }

  /** Replaces the status, and nothing else. */
  updateStatus(object: KubeObject, status: JsonObject): ModelOutcome {
    const live = this.get(refOf(object));
    const stale = this.#precondition(live, object);
    if (live === undefined || stale !== undefined) return stale ?? { type: 'gone' };
    if (live.kind === 'IPAddressClass') return { type: 'refused', message: 'the kind has no status' };
    const next = { ...live, status };
    const invalid = this.#invalid(next, live);
    return invalid ?? this.#replace(live, next);
  }

  remove(object: KubeObject): ModelOutcome {
    const live = this.get(refOf(object));
    const stale = this.#precondition(live, object);
    if (live === undefined || stale !== undefined) return stale ?? { type: 'gone' };
    if ((live.metadata.finalizers ?? []).length === 0) this.#gone(live);
    else if (live.metadata.deletionTimestamp === undefined)
      this.#store({
        ...live,
        metadata: {
          ...live.metadata,
          deletionTimestamp: this.#time(),
          generation: (live.metadata.generation ?? 0) + 1,
        },
      });
    return { type: 'removed' };
  }

  #time(): string {
    return new Date(Math.floor(this.#now() / 1000) * 1000).toISOString().replace('.000Z', 'Z');
  }

  #precondition(live: KubeObject | undefined, object: KubeObject): ModelOutcome | undefined {
    if (live === undefined) return { type: 'gone' };
    const { uid, resourceVersion } = object.metadata;
    return live.metadata.uid === uid && live.metadata.resourceVersion === resourceVersion
      ? undefined
      : { type: 'stale' };
  }

  #withDefaults(object: KubeObject): KubeObject {
    const schema = findDocumentSchema(object.apiVersion, object.kind)?.schema;
    return schema === undefined ? object : (applyDefaults(schema, object) as KubeObject);
  }

  #invalid(object: KubeObject, old: KubeObject | undefined): ModelOutcome | undefined {
    if (!this.#strict || object.apiVersion !== addressesApiVersion) return undefined;
    const read = validateDocument(object, old === undefined ? {} : { old });
    if (read.ok) return undefined;
    // What did not change may stay as it is stored.
    const before = old === undefined ? undefined : validateDocument(old);
    const known =
      before === undefined || before.ok ? [] : before.problems.map(({ path, message }) => `${path} ${message}`);
    const fresh = read.problems.filter(({ path, message }) => !known.includes(`${path} ${message}`));
    return fresh.length === 0
      ? undefined
      : { type: 'refused', message: fresh.map(({ message }) => message).join('; ') };
  }

  #replace(live: KubeObject, next: KubeObject): ModelOutcome {
    if (deepEqual(live, next)) return { type: 'written', object: live };
    if (next.metadata.deletionTimestamp === undefined || (next.metadata.finalizers ?? []).length > 0)
      return this.#store(next);
    this.#gone(next);
    return { type: 'written', object: next };
  }

  #store(object: KubeObject): ModelOutcome {
    this.#version += 1;
    const metadata: ObjectMeta = { ...object.metadata, resourceVersion: String(this.#version) };
    if (metadata.finalizers?.length === 0) delete metadata.finalizers;
    const stored = { ...object, metadata };
    this.#objects.set(keyOf(refOf(stored)), stored);
    this.log.push({ type: 'seen', object: stored });
    return { type: 'written', object: stored };
  }

  #gone(object: KubeObject): void {
    this.#version += 1;
    this.#objects.delete(keyOf(refOf(object)));
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) };
    this.log.push({ type: 'deleted', object: { ...object, metadata } });
  }
}

/** What the engine asks, answered at once. */
export interface ModelApi {
  create(object: KubeObject): LedgerWrite;
  patch(target: KubeObject, patch: LedgerPatch): LedgerWrite;
  status(target: KubeObject, status: JsonObject): LedgerWrite;
  remove(target: KubeObject): LedgerWrite;
  read(ref: LedgerRef): LedgerRead;
  addresses(): readonly KubeObject[];
}

/** RFC 7396: null takes a member away, objects are merged, everything else is replaced. */
function merged(value: unknown, patch: JsonObject): JsonObject {
  const result: JsonObject = isObject(value) ? { ...value } : {};
  for (const [key, member] of Object.entries(patch)) {
    if (member === undefined) continue;
    if (member === null) delete result[key];
    else result[key] = isObject(member) ? merged(result[key], member) : member;
  }
  return result;
}

/** The object with a patch merged in. */
function patched(object: KubeObject, { claimRef, spec, ...metadata }: LedgerPatch): KubeObject {
  const ref = claimRef === undefined ? {} : { claimRef };
  const change = { metadata, ...(spec === undefined && claimRef === undefined ? {} : { spec: { ...spec, ...ref } }) };
  const next = merged(object, structuredClone(change) as unknown as JsonObject) as KubeObject;
  const { annotations, labels } = next.metadata;
  if (annotations !== undefined && Object.keys(annotations).length === 0) delete next.metadata.annotations;
  if (labels !== undefined && Object.keys(labels).length === 0) delete next.metadata.labels;
  return next;
}

export const modelApi = (server: ModelServer): ModelApi => ({
  create: (object) => server.create(object),
  patch(target, patch) {
    const live = server.get(refOf(target));
    if (live === undefined) return { type: 'gone' };
    // A patch is of the live object; the version that it carries is what guards it.
    const { uid, resourceVersion } = target.metadata;
    if (live.metadata.uid !== uid || live.metadata.resourceVersion !== resourceVersion) return { type: 'stale' };
    return server.update(patched(live, patch));
  },
  status: (target, status) => server.updateStatus(target, status),
  remove: (target) => server.remove(target),
  read(ref) {
    const object = server.get(ref);
    return object === undefined ? { type: 'absent' } : { type: 'found', object };
  },
  addresses: () => server.list('IPAddress'),
});

export const provisioner = 'metallb.drivers.local.sdn.cozystack.io';
export const teardown = `${provisioner}/teardown`;

export const ledgerObject = (
  kind: LedgerKind,
  name: string,
  spec: JsonObject,
  metadata: ObjectMeta = {},
): KubeObject => ({
  apiVersion: addressesApiVersion,
  kind,
  metadata: { name, ...(kind === 'IPAddressClaim' ? { namespace: 'tenant-a' } : {}), ...metadata },
  spec,
});
