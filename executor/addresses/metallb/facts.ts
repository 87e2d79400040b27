/** Questions about addresses and Services that more than one planner asks. Pure. */
import { addressFinalizers } from '../../../constructs/api/addresses.ts';
import { holdsIP, readIPRange } from '../../../constructs/lib/ip.ts';
import { type JsonObject, objectOf } from '../../../constructs/lib/json.ts';
import type { LedgerRef } from '../api.ts';
import { isSurplus } from '../core/duplicate.ts';
import { holderOf } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey, type Workload } from '../objects.ts';
import type { Confirmation } from '../plan.ts';
import type { MetallbLedger } from './ledger.ts';
import { driverFinalizer } from './names.ts';
import { isServed } from './parameters.ts';
import { type ServiceView, serviceKey } from './views.ts';

/** The address goes, and nothing protects it any more. */
export const isLeaving = ({ deleting, finalizers }: AddressView): boolean =>
  deleting && !finalizers.includes(addressFinalizers.address);

/** It will not be there for long: nothing keeps it, or its claim is gone and it goes with that. */
export function goes(ledger: MetallbLedger, address: AddressView): boolean {
  const { deleting, reclaimPolicy, claimRef } = address;
  if (isLeaving(address)) return true;
  return (
    holderOf(ledger, address) === undefined && (deleting || (reclaimPolicy === 'Delete' && claimRef !== undefined))
  );
}

export const isOurs = ({ finalizers }: AddressView): boolean => finalizers.includes(driverFinalizer);

/** Addresses at an IP address that count: not those that go, nor those that another object has with more right. */
export const ownersOf = (ledger: MetallbLedger, ip: string): AddressView[] =>
  ledger.addressesAt(ip).filter((one) => !isLeaving(one) && !isSurplus(ledger, one));

/** The driver serves the class of the address. */
export const servesAddress = (ledger: MetallbLedger, { className }: AddressView): boolean =>
  isServed(ledger.class(className));

/** The Service has the address, whoever may. */
export const hasIP = ({ ingress }: ServiceView, { ip }: AddressView): boolean =>
  ip !== undefined && ingress.includes(ip.text);

export const isUser = ({ associatedTo }: AddressView, service: ServiceView): boolean =>
  associatedTo?.kind === 'Service' && claimKey(associatedTo) === serviceKey(service);

/** Words for a workload. */
export const userText = ({ kind, namespace, name }: Workload): string => `${kind} ${namespace}/${name}`;

/** Who uses the address: a Service, a workload of another kind, nobody, or one that is gone. */
export type User =
  | { readonly type: 'none' }
  | { readonly type: 'live'; readonly service: ServiceView | undefined }
  | { readonly type: 'dead'; readonly confirm: readonly Confirmation[] };

export function userOf(ledger: MetallbLedger, { associatedTo }: AddressView): User {
  if (associatedTo === undefined) return { type: 'none' };
  if (associatedTo.kind !== 'Service') return { type: 'live', service: undefined };
  const service = ledger.service(claimKey(associatedTo));
  if (service === undefined) return { type: 'dead', confirm: [gone(serviceRef(associatedTo))] };
  return service.deleting ? { type: 'dead', confirm: [] } : { type: 'live', service };
}

/** As a read names it. */
export const serviceRef = ({ namespace, name }: Pick<Workload, 'namespace' | 'name'>): LedgerRef => ({
  apiVersion: 'v1',
  kind: 'Service',
  namespace,
  name,
});

/** What has to be true before an object counts as gone. */
export const gone = (ref: LedgerRef): Confirmation => ({ type: 'identity', ref, uid: undefined });

/** Services that have the address and no right to it. */
export const offendersOf = (ledger: MetallbLedger, address: AddressView): ServiceView[] =>
  ledger
    .holding(address.ip?.text ?? '')
    .filter((one) => one.placeholder === undefined && !one.deleting && !one.releasing && !isUser(address, one));

/** Whether the pool of the class has the address; undefined: there is no pool yet, or it can not be read. */
export function isInPool(
  ledger: MetallbLedger,
  { className, ip }: Pick<AddressView, 'className' | 'ip'>,
): boolean | undefined {
  const pool = ledger.rendered('IPAddressPool', className);
  if (pool === undefined || ip === undefined) return undefined;
  const blocks = pool.list.map(readIPRange);
  if (blocks.some((one) => one !== undefined && holdsIP(one, ip))) return true;
  return blocks.includes(undefined) ? undefined : false;
}

/** Addresses that name the claim, and not one of its name before it. */
export const addressesWith = (ledger: MetallbLedger, claim: ClaimView): AddressView[] =>
  ledger.addressesOf(claimKey(claim)).filter(({ claimRef }) => claimRef?.uid === claim.uid);

/** The status of an address, changed. */
export const statusWith = ({ object }: AddressView, change: JsonObject): JsonObject => {
  const status = { ...objectOf(object.status), ...change };
  return Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined));
};
