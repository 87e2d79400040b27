/** The objects of a payload as the engine works on them: in order, each with its place and its index entry. */

import { type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import type { Payload } from '../../constructs/api/payload-codec.ts';
import type { KubeObject, ObjectRef } from '../kube/types.ts';

/** One object of a payload. */
export interface Item {
  /** `group/Kind/namespace/name`. */
  readonly id: string;
  readonly entry: PayloadObject;
  readonly phase: string;
  /** Place of the phase in the payload, from 0. */
  readonly phaseIndex: number;
  /** As rendered; what only the cluster knows is not bound yet. For a tombstone its identity and nothing else. */
  readonly object: KubeObject;
}

/** Identity of an item for the Kubernetes edge. */
export function itemRef(item: Pick<Item, 'entry'>): ObjectRef {
  const { apiVersion, kind, namespace, name } = item.entry;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** Every object of a payload, in phase order and in the order of the index. */
export function itemsOf(payload: Payload): Item[] {
  return payload.index.content.phases.flatMap((phase, phaseIndex) =>
    phase.objects.map((entry): Item => {
      const id = payloadObjectId(entry);
      const object = payload.objects.get(id) as KubeObject | undefined;
      if (object === undefined)
        throw new TypeError(`payload ${payload.index.digest} lists ${id} and holds no such object`);
      return { id, entry, phase: phase.name, phaseIndex, object };
    }),
  );
}
