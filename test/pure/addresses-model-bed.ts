import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { LedgerRef } from '../../executor/addresses/api.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { ModelServer } from './addresses-model.ts';

/** The model of a server with a clock, and what people and drivers do to its objects. Every one of it throws where the server refuses. */
export abstract class ModelBed {
  now = Date.parse('2026-01-01T00:00:00Z');
  readonly server: ModelServer;

  constructor(strict: boolean) {
    this.server = new ModelServer(() => this.now, strict);
  }

  abstract ref(kind: string, name: string): LedgerRef;

  /** Works until nothing is left to do. */
  abstract settle(limit?: number): Promise<void>;

  /** Lets time pass, and works. */
  async wait(ms: number): Promise<void> {
    this.now += ms;
    await this.settle();
  }

  make(object: KubeObject): KubeObject {
    const outcome = this.server.create(object);
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
    return outcome.object;
  }

  find(kind: string, name: string): KubeObject | undefined {
    return this.server.get(this.ref(kind, name));
  }

  live(kind: string, name: string): KubeObject {
    const found = this.find(kind, name);
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found;
  }

  edit(kind: string, name: string, change: (object: KubeObject) => KubeObject): void {
    const outcome = this.server.update(change(structuredClone(this.live(kind, name))));
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
  }

  /** Members that are undefined go. */
  editSpec(kind: string, name: string, spec: JsonObject): void {
    this.edit(kind, name, (object) => ({
      ...object,
      spec: Object.fromEntries(Object.entries({ ...object.spec, ...spec }).filter(([, value]) => value !== undefined)),
    }));
  }

  annotate(kind: string, name: string, key: string, value: string | undefined): void {
    this.edit(kind, name, (object) => ({ ...object, metadata: withAnnotation(object.metadata, key, value) }));
  }

  /** What a driver writes into a status. */
  editStatus(kind: string, name: string, status: JsonObject): void {
    const object = this.live(kind, name);
    const outcome = this.server.updateStatus(object, { ...object.status, ...status });
    if (outcome.type !== 'written') throw new Error(JSON.stringify(outcome));
  }

  delete(kind: string, name: string): void {
    const outcome = this.server.remove(this.live(kind, name));
    if (outcome.type !== 'removed') throw new Error(JSON.stringify(outcome));
  }

  /** Takes every finalizer off, as people do. */
  strip(kind: string, name: string): void {
    this.edit(kind, name, (object) => ({ ...object, metadata: { ...object.metadata, finalizers: [] } }));
  }

  phase(kind: string, name: string): JsonValue | undefined {
    return this.live(kind, name).status?.phase;
  }

  conditionOf(kind: string, name: string, type: string): JsonObject | undefined {
    const { status } = this.live(kind, name);
    const list = Array.isArray(status?.conditions) ? status.conditions.filter(isObject) : [];
    return list.find((one) => one.type === type);
  }
}

function withAnnotation(metadata: ObjectMeta, key: string, value: string | undefined): ObjectMeta {
  const { [key]: _, ...others } = metadata.annotations ?? {};
  return { ...metadata, annotations: { ...others, ...(value === undefined ? {} : { [key]: value }) } };
}
