import { annotations, labels } from '../../constructs/api/constants.ts';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import type { Gate } from '../../constructs/api/payload.ts';
import { type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import type { Item } from '../../executor/apply/items.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';

export const release = 'manifests-demo';
export const sha = (c: string): string => c.repeat(64).slice(0, 64);
export const digest = (c: string): string => `sha256:${sha(c)}`;

export interface ItemInput extends Partial<PayloadObject> {
  readonly phase?: string;
  readonly phaseIndex?: number;
  readonly body?: Partial<KubeObject>;
}

/** An item of a payload: a ConfigMap `demo/a` unless told otherwise. */
export function item(input: ItemInput = {}): Item {
  const { phase = 'one', phaseIndex = 0, body = {}, ...fields } = input;
  const entry: PayloadObject = {
    file: 'objects/0000.json',
    yaml: '10-one/a.yaml',
    sha256: sha('a'),
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'demo',
    name: 'a',
    keep: false,
    conflict: 'fail',
    recreate: false,
    createOnly: false,
    absent: false,
    ...fields,
  };
  const id = payloadObjectId(entry);
  const object: KubeObject = {
    apiVersion: entry.apiVersion,
    kind: entry.kind,
    ...body,
    metadata: {
      name: entry.name,
      ...(entry.namespace === undefined ? {} : { namespace: entry.namespace }),
      labels: { [labels.release]: release },
      annotations: { [annotations.id]: id },
      ...body.metadata,
    },
  };
  return { id, entry, phase, phaseIndex, object };
}

export const entry = (of: Item, more: Partial<LedgerEntry> = {}): LedgerEntry => ({
  id: of.id,
  uid: 'uid-1',
  state: 'applied',
  sha256: of.entry.sha256,
  phase: of.phase,
  payload: digest('1'),
  ...more,
});

export const ledgerOf = (...entries: LedgerEntry[]): Map<string, LedgerEntry> => new Map(entries.map((e) => [e.id, e]));

/** Metadata of a live object with our marks. */
export const liveMeta = (of: Pick<Item, 'id'>, more: Partial<ObjectMeta> = {}): ObjectMeta => ({
  uid: 'uid-1',
  labels: { [labels.release]: release },
  annotations: { [annotations.id]: of.id },
  ...more,
});

/** A gate of phase `one`. */
export const gate = (type: string, more: Partial<Gate> = {}): Gate => ({
  type,
  scope: 'one',
  softLimit: '10m',
  ...more,
});
