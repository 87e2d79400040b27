/** Which passes of the driver a change calls for. Pure; every answer comes from an index. */
import { poolName } from '../../../constructs/api/metallb.ts';
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import { isOffered, isStocked } from '../core/line.ts';
import type { LedgerChange } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import type { MetallbLedger } from './ledger.ts';
import { isServed } from './parameters.ts';
import { choosingAtOnce, chosenFor, missingFamilies, servingClass } from './plan-claim.ts';
import { type AnyView, type RenderedView, type ServiceView, serviceKey } from './views.ts';

/** What a pass is about: a kind, and the name of the object (`<namespace>/<name>` of a claim or Service). */
export type DriverKey =
  | `IPAddressClass ${string}`
  | `IPAddress ${string}`
  | `IPAddressClaim ${string}`
  | `Service ${string}`;

const families: readonly IPFamily[] = ['IPv4', 'IPv6'];

const ofAddress = ({ name }: { readonly name: string }): DriverKey => `IPAddress ${name}`;
const ofClaim = (key: string): DriverKey => `IPAddressClaim ${key}`;
const ofService = (service: ServiceView): DriverKey => `Service ${serviceKey(service)}`;

/** Of an update both sides count: what an object pointed at before wakes as well. */
export function passesFor(ledger: MetallbLedger, change: LedgerChange<AnyView>): DriverKey[] {
  const passes = new Set<DriverKey>(onceOnly(ledger, change));
  for (const view of [change.before, change.after]) {
    if (view === undefined) continue;
    for (const pass of passesOf(ledger, view)) passes.add(pass);
  }
  return [...passes];
}

function passesOf(ledger: MetallbLedger, view: AnyView): DriverKey[] {
  switch (view.kind) {
    case 'IPAddressClass':
      return [`IPAddressClass ${view.name}`, ...families.flatMap((family) => waiting(ledger, view.name, family))];
    case 'IPAddress':
      return forAddress(ledger, view);
    case 'IPAddressClaim':
      return forClaim(ledger, view);
    case 'Service':
      return view.placeholder === undefined ? forService(ledger, view) : forPlaceholder(ledger, view);
    default:
      return forRendered(view);
  }
}

/** What concerns many, and only when it really changed. */
function onceOnly(ledger: MetallbLedger, { before, after }: LedgerChange<AnyView>): DriverKey[] {
  const view = after ?? before;
  if (before?.kind === 'Service') return letGo(ledger, before, after);
  if (before?.kind === 'IPAddress') {
    const left = isOffered(before) && !(after?.kind === 'IPAddress' && isOffered(after));
    // It was to be had: who waited for it may have to ask MetalLB now.
    return left && before.ip !== undefined ? waiting(ledger, before.className, before.ip.family) : [];
  }
  if (view?.kind === 'IPAddressClass') {
    const served = [before, after].map((one) => one?.kind === 'IPAddressClass' && isServed(one));
    return served[0] === served[1] ? [] : ofMembers(ledger, view.name);
  }
  if (view?.kind === 'IPAddressPool') {
    const lists = [before, after].map((one) => (one?.kind === 'IPAddressPool' ? one.list.join(' ') : ''));
    return lists[0] === lists[1] ? [] : ofMembers(ledger, view.className);
  }
  return [];
}

/** A placeholder has no more what was not recorded: for it alone a network may have stayed in the pool. */
function letGo(ledger: MetallbLedger, before: ServiceView, after: AnyView | undefined): DriverKey[] {
  if (!ledger.isUnrecorded(before) || (after?.kind === 'Service' && after.ingress.length > 0)) return [];
  const className = classOf(ledger, before);
  return className === undefined ? [] : [`IPAddressClass ${className}`];
}

/** Addresses of a class, and the Services that use them. */
const ofMembers = (ledger: MetallbLedger, className: string): DriverKey[] =>
  ledger.addressesOfClass(className).flatMap((one) => forAddress(ledger, one));

/** Claims that could ask MetalLB for an address of a class and family now: as many as may do so at once. */
function waiting(ledger: MetallbLedger, className: string, family: IPFamily): DriverKey[] {
  const room = choosingAtOnce - ledger.choosing(className, family);
  if (room <= 0 || isStocked(ledger, className, family)) return [];
  const found: DriverKey[] = [];
  for (const claim of ledger.waitingForClass(className)) {
    if (isNext(ledger, claim, family)) found.push(ofClaim(claimKey(claim)));
    if (found.length >= room) break;
  }
  return found;
}

const isNext = (ledger: MetallbLedger, claim: ClaimView, family: IPFamily): boolean =>
  servingClass(ledger, claim) !== undefined &&
  missingFamilies(ledger, claim).includes(family) &&
  chosenFor(ledger, claim, family) === undefined;

function forAddress(ledger: MetallbLedger, address: AddressView): DriverKey[] {
  const { name, claimRef, className, ip, associatedTo } = address;
  const rivals = ip === undefined ? [] : ledger.addressesAt(ip.text);
  const holding = ip === undefined ? [] : ledger.holding(ip.text);
  return [
    ofAddress(address),
    ...(ledger.address(name) === undefined ? [`IPAddressClass ${className}` as const] : []),
    ...rivals.map(ofAddress),
    ...holding.flatMap((one) => claimsOrService(one)),
    ...ledger.placeholdersOf(name).flatMap((one) => claimsOrService(one)),
    ...(associatedTo?.kind === 'Service' ? [`Service ${claimKey(associatedTo)}` as const] : []),
    ...(claimRef === undefined
      ? []
      : [ofClaim(claimKey(claimRef)), ...ledger.naming(claimKey(claimRef)).map(ofService)]),
  ];
}

const claimsOrService = (service: ServiceView): DriverKey[] => {
  if (service.placeholder === undefined) return [ofService(service)];
  return service.placeholder.claim === undefined ? [] : [ofClaim(service.placeholder.claim)];
};

function forClaim(ledger: MetallbLedger, claim: ClaimView): DriverKey[] {
  const key = claimKey(claim);
  return [ofClaim(key), ...ledger.addressesOf(key).map(ofAddress), ...ledger.naming(key).map(ofService)];
}

/** Services that name the claim of an address: who asks for it may have been in their way. */
const waitingFor = (ledger: MetallbLedger, { claimRef }: AddressView): DriverKey[] =>
  claimRef === undefined ? [] : ledger.naming(claimKey(claimRef)).map(ofService);

/** Addresses that the Service has, or asks for, and those that the ledger gives to it. */
const touched = (ledger: MetallbLedger, { ingress, asks }: ServiceView): DriverKey[] =>
  [...ingress, ...asks].flatMap((ip) => ledger.addressesAt(ip).map(ofAddress));

const forService = (ledger: MetallbLedger, service: ServiceView): DriverKey[] => [
  ofService(service),
  ...ledger.usedBy(serviceKey(service)).map(ofAddress),
  ...touched(ledger, service),
  ...service.asks.flatMap((ip) => ledger.addressesAt(ip).flatMap((one) => waitingFor(ledger, one))),
];

function forPlaceholder(ledger: MetallbLedger, service: ServiceView): DriverKey[] {
  const { address, claim } = service.placeholder ?? {};
  const className = classOf(ledger, service);
  return [
    ...(address === undefined ? [] : [`IPAddress ${address}` as const]),
    ...(claim === undefined ? [] : [ofClaim(claim)]),
    ...touched(ledger, service),
    ...(className === undefined || address !== undefined
      ? []
      : families.flatMap((one) => waiting(ledger, className, one))),
  ];
}

/** The class whose pool a placeholder is of. */
const classOf = (ledger: MetallbLedger, { pool }: ServiceView): string | undefined => {
  const name = pool.slice(poolName('').length);
  return poolName(name) === pool && ledger.class(name) !== undefined ? name : undefined;
};

function forRendered({ className, name }: RenderedView): DriverKey[] {
  const named = name.slice(poolName('').length);
  return [`IPAddressClass ${className === '' ? named : className}`];
}
