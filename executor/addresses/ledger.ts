/**
 * What is known of the ledger: objects from the watch and from our own writes, whichever is newer, with the indexes that
 * planners ask. Nothing here reads a cluster.
 */
import type { KubeObject } from '../kube/types.ts';
import {
  type AddressView,
  type ClaimView,
  type ClassView,
  claimKey,
  type LedgerKind,
  type LedgerView,
  readLedgerObject,
} from './objects.ts';

/** What planners may ask. */
export interface Ledger {
  class(name: string): ClassView | undefined;
  classes(): Iterable<ClassView>;
  address(name: string): AddressView | undefined;
  claim(key: string): ClaimView | undefined;
  /** Addresses whose claimRef names a claim, by name. */
  addressesOf(claim: string): AddressView[];
  /** Addresses without claimRef of a class, by name. */
  freeOf(className: string): AddressView[];
  addressesOfClass(className: string): AddressView[];
  /** Addresses that mean the same IP address, in whatever form. */
  addressesAt(ip: string): AddressView[];
  /** Claims that are not Bound. */
  unbound(): Iterable<ClaimView>;
}

/** An object before and after; either may be absent. */
export interface LedgerChange {
  readonly before: LedgerView | undefined;
  readonly after: LedgerView | undefined;
}

class Index {
  readonly #members = new Map<string, Map<string, AddressView>>();

  add(key: string, address: AddressView): void {
    const members = this.#members.get(key);
    if (members === undefined) this.#members.set(key, new Map([[address.name, address]]));
    else members.set(address.name, address);
  }

  remove(key: string, name: string): void {
    const members = this.#members.get(key);
    members?.delete(name);
    if (members?.size === 0) this.#members.delete(key);
  }

  get(key: string): AddressView[] {
    return [...(this.#members.get(key)?.values() ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** Whether a version is older than another one. What is no number can not be told, and is taken for newer. */
function isOlder(version: string | undefined, than: string | undefined): boolean {
  if (version === undefined || than === undefined || !/^\d+$/.test(version) || !/^\d+$/.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}

const keyOf = (view: LedgerView): string =>
  `${view.kind} ${view.kind === 'IPAddressClaim' ? claimKey(view) : `/${view.name}`}`;

export class LedgerStore implements Ledger {
  readonly #objects = new Map<string, LedgerView>();
  readonly #classes = new Map<string, ClassView>();
  readonly #byClaim = new Index();
  readonly #free = new Index();
  readonly #byClass = new Index();
  readonly #byIP = new Index();
  readonly #unbound = new Map<string, ClaimView>();
  /** UIDs of objects that were seen to be gone while the watch had yet to tell. */
  readonly #gone = new Set<string>();

  class = (name: string): ClassView | undefined => this.#classes.get(name);
  classes = (): Iterable<ClassView> => this.#classes.values();
  address = (name: string): AddressView | undefined =>
    this.#objects.get(`IPAddress /${name}`) as AddressView | undefined;
  claim = (key: string): ClaimView | undefined => this.#objects.get(`IPAddressClaim ${key}`) as ClaimView | undefined;
  addressesOf = (claim: string): AddressView[] => this.#byClaim.get(claim);
  freeOf = (className: string): AddressView[] => this.#free.get(className);
  addressesOfClass = (className: string): AddressView[] => this.#byClass.get(className);
  addressesAt = (ip: string): AddressView[] => this.#byIP.get(ip);
  unbound = (): Iterable<ClaimView> => this.#unbound.values();

  /** Every object of a kind. */
  *every(kind: LedgerKind): Iterable<LedgerView> {
    for (const view of this.#objects.values()) if (view.kind === kind) yield view;
  }

  /** Takes in an object that exists; undefined when what is known is as new, or newer. */
  put(object: KubeObject): LedgerChange | undefined {
    const after = readLedgerObject(object);
    if (after === undefined || this.#gone.has(after.uid)) return undefined;
    const key = keyOf(after);
    const before = this.#objects.get(key);
    if (before?.uid === after.uid) {
      const [known, told] = [before.object.metadata.resourceVersion, object.metadata.resourceVersion];
      if (known === told || isOlder(told, known)) return undefined;
    }
    if (before !== undefined) this.#unlink(before);
    this.#objects.set(key, after);
    this.#link(after);
    return { before, after };
  }

  /** Takes in that an object is gone: as the watch tells, which is the last word about it, or as a read or a write found. */
  drop(object: KubeObject, by: 'watch' | 'look'): LedgerChange | undefined {
    const gone = readLedgerObject(object);
    if (gone === undefined) return undefined;
    if (by === 'watch') this.#gone.delete(gone.uid);
    const key = keyOf(gone);
    const before = this.#objects.get(key);
    if (before === undefined || before.uid !== gone.uid) return undefined;
    if (by === 'look') this.#gone.add(gone.uid);
    this.#unlink(before);
    this.#objects.delete(key);
    return { before, after: undefined };
  }

  #link(view: LedgerView): void {
    if (view.kind === 'IPAddressClass') this.#classes.set(view.name, view);
    if (view.kind === 'IPAddressClaim' && view.phase !== 'Bound') this.#unbound.set(claimKey(view), view);
    if (view.kind === 'IPAddress') for (const [index, key] of this.#places(view)) index.add(key, view);
  }

  #unlink(view: LedgerView): void {
    if (view.kind === 'IPAddressClass') this.#classes.delete(view.name);
    if (view.kind === 'IPAddressClaim') this.#unbound.delete(claimKey(view));
    if (view.kind === 'IPAddress') for (const [index, key] of this.#places(view)) index.remove(key, view.name);
  }

  #places({ claimRef, className, ip }: AddressView): [Index, string][] {
    return [
      claimRef === undefined ? [this.#free, className] : [this.#byClaim, claimKey(claimRef)],
      [this.#byClass, className],
      ...(ip === undefined ? [] : [[this.#byIP, ip.text] satisfies [Index, string]]),
    ];
  }
}
