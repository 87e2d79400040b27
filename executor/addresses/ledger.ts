/**
 * What is known of the ledger: objects from the watch and from our own writes, whichever is newer, with the indexes that
 * planners ask. Nothing here reads a cluster.
 */
import type { KubeObject } from '../kube/types.ts';
import type { LedgerRef } from './api.ts';
import {
  type AddressView,
  type ClaimView,
  type ClassView,
  claimKey,
  isLedgerView,
  type LedgerView,
  readLedgerObject,
  type View,
} from './objects.ts';
import { ViewIndex } from './view-index.ts';

/** So many objects that are gone are remembered, the latest: what is late is late by seconds. */
const remembered = 10_000;

/** What planners may ask. */
export interface Ledger {
  class(name: string): ClassView | undefined;
  classes(): Iterable<ClassView>;
  address(name: string): AddressView | undefined;
  claim(key: string): ClaimView | undefined;
  /** Addresses whose claimRef names a claim, by name. */
  addressesOf(claim: string): AddressView[];
  /** Addresses without claimRef of a class, by name; they may be many, and are made as they are asked for. */
  freeOf(className: string): Iterable<AddressView>;
  addressesOfClass(className: string): AddressView[];
  /** Addresses that mean the same IP address, in whatever form. */
  addressesAt(ip: string): AddressView[];
  /** Claims that are not Bound and name a class, or got it, the oldest first; the empty name: those without one yet. */
  waitingForClass(className: string): Iterable<ClaimView>;
  /** Claims that are not Bound and name an address, the oldest first. */
  waitingForAddress(name: string): Iterable<ClaimView>;
  /** Another pass is about to take the address. */
  isReserved(address: AddressView): boolean;
}

/** The claim that the address names; undefined when it is gone, or another one has its name. */
export function holderOf(ledger: Ledger, { claimRef }: AddressView): ClaimView | undefined {
  if (claimRef === undefined) return undefined;
  const claim = ledger.claim(claimKey(claimRef));
  return claim === undefined || (claimRef.uid !== '' && claimRef.uid !== claim.uid) ? undefined : claim;
}

/** An object before and after; either may be absent. */
export interface LedgerChange<Any extends View = LedgerView> {
  readonly before: Any | undefined;
  readonly after: Any | undefined;
  /** No change: a pass of this process was about to take the object, and left it. */
  readonly returned?: true;
}

/** Whether a version is older than another one. What is no number can not be told, and is taken for newer. */
function isOlder(version: string | undefined, than: string | undefined): boolean {
  if (version === undefined || than === undefined || !/^\d+$/.test(version) || !/^\d+$/.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}

const keyOf = ({ namespace, name }: Omit<LedgerRef, 'apiVersion'>): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

/** Orders claims by their age; those of one second by name. */
export const ageOf = ({ createdAt, key }: ClaimView): string => `${createdAt} ${key}`;

/** The ledger, with whatever other kinds a driver adds. */
export class ExtendedLedger<Other extends View> implements Ledger {
  /** By kind, and in it by key. */
  readonly #objects = new Map<string, Map<string, LedgerView | Other>>();
  readonly #classes = new Map<string, ClassView>();
  readonly #byClaim = new ViewIndex<AddressView>();
  readonly #free = new ViewIndex<AddressView>();
  readonly #byClass = new ViewIndex<AddressView>();
  readonly #byIP = new ViewIndex<AddressView>();
  readonly #waitingForClass = new ViewIndex<ClaimView>();
  readonly #waitingForAddress = new ViewIndex<ClaimView>();
  readonly #reserved = new Set<string>();
  /** Objects that are gone, by UID, with the version in which they were last seen. */
  readonly #gone = new Map<string, { readonly version: string | undefined; readonly by: 'watch' | 'look' }>();

  readonly #readOwn: (object: KubeObject) => LedgerView | undefined;

  /** @param read how the kinds of the ledger are read. */
  constructor(read: (object: KubeObject) => LedgerView | undefined = readLedgerObject) {
    this.#readOwn = read;
  }

  class = (name: string): ClassView | undefined => this.#classes.get(name);
  classes = (): Iterable<ClassView> => this.#classes.values();
  address = (name: string): AddressView | undefined =>
    this.#objects.get('IPAddress')?.get(name) as AddressView | undefined;
  claim = (key: string): ClaimView | undefined =>
    this.#objects.get('IPAddressClaim')?.get(key) as ClaimView | undefined;
  addressesOf = (claim: string): AddressView[] => [...this.#byClaim.get(claim)];
  freeOf = (className: string): Iterable<AddressView> => this.#free.get(className);
  addressesOfClass = (className: string): AddressView[] => [...this.#byClass.get(className)];
  addressesAt = (ip: string): AddressView[] => [...this.#byIP.get(ip)];
  waitingForClass = (className: string): Iterable<ClaimView> => this.#waitingForClass.get(className);
  isReserved = ({ uid }: AddressView): boolean => this.#reserved.has(uid);
  waitingForAddress = (name: string): Iterable<ClaimView> => this.#waitingForAddress.get(name);

  reserve(uids: readonly string[]): void {
    for (const uid of uids) this.#reserved.add(uid);
  }

  unreserve(uids: readonly string[]): void {
    for (const uid of uids) this.#reserved.delete(uid);
  }

  /** What is known of an object. */
  find(ref: LedgerRef): LedgerView | Other | undefined {
    return this.#objects.get(ref.kind)?.get(keyOf(ref));
  }

  /** Reads an object of another kind; undefined for one that nobody here asks about. */
  protected readOther(_object: KubeObject): Other | undefined {
    return undefined;
  }

  /** Puts an object into indexes of a driver; those of the ledger come by here as well. */
  protected linkOther(_view: View): void {}

  /** Takes an object out of indexes of a driver. */
  protected unlinkOther(_view: View): void {}

  #read(object: KubeObject): LedgerView | Other | undefined {
    return this.#readOwn(object) ?? this.readOther(object);
  }

  /** Every object of a kind. */
  every(kind: string): Iterable<LedgerView | Other> {
    return this.#objects.get(kind)?.values() ?? [];
  }

  /** Takes in an object that exists; undefined when what is known is as new, or newer. */
  put(object: KubeObject): LedgerChange<LedgerView | Other> | undefined {
    const after = this.#read(object);
    if (after === undefined || this.#isGone(after)) return undefined;
    const { key, kind } = after;
    const known = this.#objects.get(kind) ?? new Map<string, LedgerView | Other>();
    const before = known.get(key);
    if (before?.uid === after.uid) {
      const [had, told] = [before.object.metadata.resourceVersion, object.metadata.resourceVersion];
      if (had === told || isOlder(told, had)) return undefined;
    }
    if (before !== undefined) this.#unlink(before);
    known.set(key, after);
    this.#objects.set(kind, known);
    this.#link(after);
    return { before, after };
  }

  /** Takes in that an object is gone: as the watch tells, which is the last word about it, or as a read or a write found. */
  drop(object: KubeObject, by: 'watch' | 'look'): LedgerChange<LedgerView | Other> | undefined {
    const gone = this.#read(object);
    if (gone === undefined) return undefined;
    this.#remember(gone, by);
    const { key, kind } = gone;
    const before = this.#objects.get(kind)?.get(key);
    if (before === undefined || before.uid !== gone.uid) return undefined;
    this.#unlink(before);
    this.#objects.get(kind)?.delete(key);
    return { before, after: undefined };
  }

  #remember({ uid, object }: View, by: 'watch' | 'look'): void {
    this.#gone.delete(uid);
    this.#gone.set(uid, { version: object.metadata.resourceVersion, by });
    if (this.#gone.size > remembered) this.#gone.delete(this.#gone.keys().next().value ?? '');
  }

  /**
   * Whether what is told of an object is from before it went: the answer to a write of ours that comes after the watch told of
   * the deletion, or the watch after a read of ours. What comes back as it was had only been out of sight.
   */
  #isGone({ uid, object }: View): boolean {
    const gone = this.#gone.get(uid);
    if (gone === undefined) return false;
    const told = object.metadata.resourceVersion;
    return isOlder(told, gone.version) || (gone.by === 'look' && told === gone.version);
  }

  #link(view: LedgerView | Other): void {
    this.linkOther(view);
    if (!isLedgerView(view)) return;
    if (view.kind === 'IPAddressClass') this.#classes.set(view.name, view);
    if (view.kind === 'IPAddressClaim') for (const [index, key] of this.#waits(view)) index.add(key, ageOf(view), view);
    if (view.kind === 'IPAddress') for (const [index, key] of this.#places(view)) index.add(key, view.name, view);
  }

  #unlink(view: LedgerView | Other): void {
    this.unlinkOther(view);
    if (!isLedgerView(view)) return;
    if (view.kind === 'IPAddressClass') this.#classes.delete(view.name);
    if (view.kind === 'IPAddressClaim') for (const [index, key] of this.#waits(view)) index.remove(key, ageOf(view));
    if (view.kind === 'IPAddress') for (const [index, key] of this.#places(view)) index.remove(key, view.name);
  }

  #waits({ phase, className, foundClass, addressName }: ClaimView): [ViewIndex<ClaimView>, string][] {
    if (phase === 'Bound') return [];
    return [
      [this.#waitingForClass, className === '' ? foundClass : className],
      ...(addressName === '' ? [] : [[this.#waitingForAddress, addressName] satisfies [ViewIndex<ClaimView>, string]]),
    ];
  }

  #places({ claimRef, className, ip }: AddressView): [ViewIndex<AddressView>, string][] {
    return [
      claimRef === undefined ? [this.#free, className] : [this.#byClaim, claimKey(claimRef)],
      [this.#byClass, className],
      ...(ip === undefined ? [] : [[this.#byIP, ip.text] satisfies [ViewIndex<AddressView>, string]]),
    ];
  }
}

/** The ledger and nothing else. */
export class LedgerStore extends ExtendedLedger<never> {}
