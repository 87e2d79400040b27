/**
 * The objects of the ledger as planners see them. Reading never fails: what other controllers or people stored is taken for
 * what it says, and what it does not say is absent.
 */
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import type { ReclaimPolicy } from '../../constructs/api/kinds/ipaddress-fields.ts';
import type { AddressPhase, ClaimFamily, ClaimPhase } from '../../constructs/api/ledger-words.ts';
import { addressPhases, claimFamilies, claimPhases } from '../../constructs/api/ledger-words.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { type IPAddress, readIP } from '../../constructs/lib/ip.ts';
import { isObject, type JsonObject, type JsonValue, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';

export interface LedgerCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** An object as planners see it. */
export interface View {
  readonly kind: string;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly object: KubeObject;
  readonly name: string;
  /** `<namespace>/<name>`, or the name of what has no namespace: made once, since every index has it. */
  readonly key: string;
  readonly uid: string;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
}

export interface ClassView extends View {
  readonly kind: 'IPAddressClass';
  readonly provisioner: string;
  readonly isDefault: boolean;
  /** Milliseconds; undefined: addresses are never given back by themselves. */
  readonly releaseDelayMs: number | undefined;
}

export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  /** Empty while no claim has taken the address. */
  readonly uid: string;
}

/** What may use an address. */
export interface Workload {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface AddressView extends View {
  readonly kind: 'IPAddress';
  readonly className: string;
  /** As it is stored. */
  readonly text: string;
  /** Undefined: the text is no address. */
  readonly ip: IPAddress | undefined;
  readonly reclaimPolicy: ReclaimPolicy;
  readonly claimRef: ClaimRef | undefined;
  readonly phase: AddressPhase | undefined;
  /** The workload that uses the address. */
  readonly associatedTo: Workload | undefined;
  readonly held: boolean;
  readonly conditions: readonly LedgerCondition[];
  readonly bound: LedgerCondition | undefined;
  readonly createdAt: string;
}

export interface ClaimView extends View {
  readonly kind: 'IPAddressClaim';
  readonly namespace: string;
  readonly generation: number;
  /** Empty: the default class. */
  readonly className: string;
  readonly family: ClaimFamily;
  /** Empty: any address. */
  readonly addressName: string;
  readonly stamp: string;
  readonly replaceLost: boolean;
  readonly phase: ClaimPhase | undefined;
  /** The class that was found; empty before that. */
  readonly foundClass: string;
  readonly addresses: readonly { readonly name: string; readonly address: string }[];
  readonly conditions: readonly LedgerCondition[];
  readonly createdAt: string;
}

export type LedgerView = ClassView | AddressView | ClaimView;
export type LedgerKind = LedgerView['kind'];
export const ledgerKinds: readonly LedgerKind[] = ['IPAddressClass', 'IPAddress', 'IPAddressClaim'];

/** Whether a view is one of the ledger itself, and not one of a driver. */
export const isLedgerView = (view: View): view is LedgerView => ledgerKinds.some((kind) => kind === view.kind);

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
const oneOf = <T extends string>(words: readonly T[], value: JsonValue | undefined): T | undefined =>
  words.find((word) => word === value);

const annotation = (object: KubeObject, key: string): string => object.metadata.annotations?.[key] ?? '';

/** What every view has. */
export function viewOf(object: KubeObject): Omit<View, 'kind' | 'namespace'> {
  const { name = '', namespace, uid = '', deletionTimestamp, finalizers = [] } = object.metadata;
  const key = namespace === undefined ? name : `${namespace}/${name}`;
  return { object, name, key, uid, deleting: typeof deletionTimestamp === 'string', finalizers };
}

const isText = (one: JsonObject, key: string): boolean => typeof one[key] === 'string';

/** Written by controllers: what is as it should be is not copied. */
const isWhole = (one: JsonObject): boolean =>
  ['type', 'status', 'reason', 'message', 'lastTransitionTime'].every((key) => isText(one, key)) &&
  (one.observedGeneration === undefined || typeof one.observedGeneration === 'number');

const conditionsOf = (status: JsonObject): LedgerCondition[] =>
  objectsOf(status.conditions).map((one) => (isWhole(one) ? (one as unknown as LedgerCondition) : readCondition(one)));

function readCondition(one: JsonObject): LedgerCondition {
  return {
    type: text(one.type),
    status: text(one.status),
    reason: text(one.reason),
    message: text(one.message),
    lastTransitionTime: text(one.lastTransitionTime),
    ...(typeof one.observedGeneration === 'number' ? { observedGeneration: one.observedGeneration } : {}),
  };
}

/** A delay that can not be read is none: an address that stays Released too long is better than one given away too soon. */
function delayOf(value: JsonValue | undefined): number | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  try {
    return parseDuration(value);
  } catch {
    return undefined;
  }
}

function readClass(object: KubeObject): ClassView {
  const spec = objectOf(object.spec);
  return {
    ...viewOf(object),
    kind: 'IPAddressClass',
    provisioner: text(spec.provisioner),
    isDefault: annotation(object, addressAnnotations.defaultClass) === 'true',
    releaseDelayMs: delayOf(spec.releaseDelay),
  };
}

function readAddress(object: KubeObject): AddressView {
  const [spec, status] = [objectOf(object.spec), objectOf(object.status)];
  const ref = isObject(spec.claimRef) ? spec.claimRef : undefined;
  const user = isObject(status.associatedTo) ? status.associatedTo : undefined;
  const conditions = conditionsOf(status);
  return {
    ...viewOf(object),
    kind: 'IPAddress',
    className: text(spec.className),
    text: text(spec.address),
    ip: readIP(text(spec.address)),
    reclaimPolicy: spec.reclaimPolicy === 'Delete' ? 'Delete' : 'Retain',
    claimRef:
      ref === undefined ? undefined : { namespace: text(ref.namespace), name: text(ref.name), uid: text(ref.uid) },
    phase: oneOf(addressPhases, status.phase),
    associatedTo:
      user === undefined
        ? undefined
        : { kind: text(user.kind), namespace: text(user.namespace), name: text(user.name) },
    held: annotation(object, addressAnnotations.held) === 'true',
    conditions,
    bound: conditions.find(({ type }) => type === 'Bound'),
    createdAt: text(object.metadata.creationTimestamp ?? undefined),
  };
}

function readClaim(object: KubeObject): ClaimView {
  const [spec, status] = [objectOf(object.spec), objectOf(object.status)];
  return {
    ...viewOf(object),
    kind: 'IPAddressClaim',
    namespace: object.metadata.namespace ?? '',
    generation: object.metadata.generation ?? 0,
    className: text(spec.className),
    family: oneOf(claimFamilies, spec.family) ?? 'IPv4',
    addressName: text(spec.addressName),
    stamp: annotation(object, addressAnnotations.provisioner),
    replaceLost: annotation(object, addressAnnotations.replaceLost) === 'true',
    phase: oneOf(claimPhases, status.phase),
    foundClass: text(status.className),
    addresses: objectsOf(status.addresses).map((one) => ({ name: text(one.name), address: text(one.address) })),
    conditions: conditionsOf(status),
    createdAt: text(object.metadata.creationTimestamp ?? undefined),
  };
}

/** The view of an object of the ledger; undefined for any other kind. */
export function readLedgerObject(object: KubeObject): LedgerView | undefined {
  if (object.kind === 'IPAddressClass') return readClass(object);
  if (object.kind === 'IPAddress') return readAddress(object);
  return object.kind === 'IPAddressClaim' ? readClaim(object) : undefined;
}

/** `<namespace>/<name>` of a claim. */
export const claimKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;

/** Namespace and name of such a key; a name that somebody wrote may have slashes, and is no name then. */
export function keyParts(key: string): { readonly namespace: string; readonly name: string } {
  const at = key.indexOf('/');
  return { namespace: key.slice(0, Math.max(0, at)), name: key.slice(at + 1) };
}
