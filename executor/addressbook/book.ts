/** The ledger as people look at it: all that there is at one moment. Nothing here reads a cluster. */
import type { IPBlock } from '../../constructs/lib/ip.ts';
import { isObject, objectOf } from '../../constructs/lib/json.ts';
import { type AddressView, type ClaimView, type ClassView, readLedgerObject } from '../addresses/objects.ts';
import type { KubeObject } from '../kube/types.ts';
import { readRange } from './ranges.ts';

export interface Book {
  readonly classes: readonly ClassView[];
  readonly addresses: readonly AddressView[];
  readonly claims: readonly ClaimView[];
}

/** What objects of the ledger say; those of other kinds are passed over. */
export function bookOf(objects: Iterable<KubeObject>): Book {
  const [classes, addresses, claims]: [ClassView[], AddressView[], ClaimView[]] = [[], [], []];
  for (const object of objects) {
    const view = readLedgerObject(object);
    if (view?.kind === 'IPAddressClass') classes.push(view);
    else if (view?.kind === 'IPAddress') addresses.push(view);
    else if (view?.kind === 'IPAddressClaim') claims.push(view);
  }
  return { classes, addresses, claims };
}

/** What uses an address. */
export interface Workload {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** The workload that a driver has recorded. */
export function workloadOf({ object }: AddressView): Workload | undefined {
  const found = objectOf(object.status).associatedTo;
  if (!isObject(found)) return undefined;
  return { kind: String(found.kind), namespace: String(found.namespace), name: String(found.name) };
}

export interface ClassRanges {
  readonly blocks: readonly IPBlock[];
  /** What stands among the ranges and can not be read. */
  readonly unread: readonly string[];
}

/** The ranges of a class, as far as its parameters have them in `addresses`; drivers may keep them elsewhere. */
export function rangesOf({ object }: ClassView): ClassRanges {
  const { addresses } = objectOf(objectOf(object.spec).parameters);
  const all = Array.isArray(addresses) ? addresses : [];
  const [blocks, unread]: [IPBlock[], string[]] = [[], []];
  for (const one of all) {
    const block = typeof one === 'string' ? readRange(one) : undefined;
    if (block === undefined) unread.push(typeof one === 'string' ? one : JSON.stringify(one));
    else blocks.push(block);
  }
  return { blocks, unread };
}
