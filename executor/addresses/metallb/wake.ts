/** Which passes of the driver a change calls for. Pure; every answer comes from an index. */
import { poolName } from '../../../constructs/api/metallb.ts';
import type { LedgerChange } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import type { MetallbLedger } from './ledger.ts';
import { isServed } from './parameters.ts';
import { choosingAtOnce, servingClass } from './plan-claim.ts';
import { type AnyView, type RenderedView, type ServiceView, serviceKey } from './views.ts';

/** What a pass is about: a kind, and the name of the object (`<namespace>/<name>` of a claim or Service). */
export type DriverKey =
  | `IPAddressClass ${string}`
  | `IPAddress ${string}`
  | `IPAddressClaim ${string}`
  | `Service ${string}`;

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
      return [`IPAddressClass ${view.name}`, ...waiting(ledger, view.name)];
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

/** Addresses of a class, and the Services that use them. */
const ofMembers = (ledger: MetallbLedger, className: string): DriverKey[] =>
  ledger.addressesOfClass(className).flatMap((one) => forAddress(ledger, one));

/** Claims that could ask MetalLB for an address of a class now: as many as may do so at once. */
function waiting(ledger: MetallbLedger, className: string): DriverKey[] {
  const room = choosingAtOnce - ledger.choosing(className);
  const found: DriverKey[] = [];
  for (const claim of ledger.waitingForClass(className)) {
    if (found.length >= room) break;
    if (isNext(ledger, claim)) found.push(ofClaim(claimKey(claim)));
  }
  return found;
}

const isNext = (ledger: MetallbLedger, claim: ClaimView): boolean =>
  servingClass(ledger, claim) !== undefined &&
  !ledger.placeholdersFor(claimKey(claim)).some(({ placeholder }) => placeholder?.address === undefined);

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

/** Addresses that the Service has, or asks for, and those that the ledger gives to it. */
const touched = (ledger: MetallbLedger, { ingress, pinned }: ServiceView): DriverKey[] =>
  [...ingress, ...pinned].flatMap((ip) => ledger.addressesAt(ip).map(ofAddress));

const forService = (ledger: MetallbLedger, service: ServiceView): DriverKey[] => [
  ofService(service),
  ...ledger.usedBy(serviceKey(service)).map(ofAddress),
  ...touched(ledger, service),
];

function forPlaceholder(ledger: MetallbLedger, service: ServiceView): DriverKey[] {
  const { address, claim } = service.placeholder ?? {};
  const className = classOf(ledger, service);
  return [
    ...(address === undefined ? [] : [`IPAddress ${address}` as const]),
    ...(claim === undefined ? [] : [ofClaim(claim)]),
    ...touched(ledger, service),
    ...(className === undefined ? [] : waiting(ledger, className)),
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
