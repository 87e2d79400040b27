/** What the driver does about a Service: it gets the addresses of its claim, and those only. Pure. */
import { metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { type AddressView, type ClaimView, claimKey, keyParts } from '../objects.ts';
import { type Confirmation, nothing } from '../plan.ts';
import { conflictIn, detect } from './detect.ts';
import { addressesWith, goes, gone, hasIP, isUser, servesAddress, statusWith, userOf, userText } from './facts.ts';
import { unfitness } from './fitness.ts';
import { drop } from './holds.ts';
import type { MetallbLedger } from './ledger.ts';
import { endRelease, isAuthored, pin, pinOf, sameAddresses, unpin } from './pins.ts';
import { rivalFor, shownBy } from './rivals.ts';
import { type Action, normal, type Plan, type Told, warning } from './tell.ts';
import { type ServiceView, serviceKey } from './views.ts';

/** One pass over a Service, given by `<namespace>/<name>`. */
export function planService(ledger: MetallbLedger, key: string): Plan {
  const service = ledger.service(key);
  // One that goes uses nothing any more: that is seen to by the passes of its addresses.
  if (service === undefined || service.placeholder !== undefined || service.deleting) return nothing;
  const wish = wishOf(ledger, service);
  const found = detect(ledger, service, wish.takes);
  const actions = wish.takes.length > 0 ? take(ledger, service, wish) : withdraw(ledger, service, wish);
  const over = service.releasing && service.ingress.length === 0 && wish.takes.length === 0;
  return {
    actions: [...actions, ...(over ? [endRelease(service)] : []), ...found.actions],
    warnings: [...wish.notes, ...found.warnings],
    ...(wish.againMs === undefined ? {} : { againMs: wish.againMs }),
  };
}

/** What its annotation comes to. */
interface Wish {
  /** Addresses that it is to get, all of its claim; none: it gets nothing new. */
  readonly takes: readonly AddressView[];
  /** Whether it keeps an address that it has. */
  readonly keeps: (address: AddressView) => boolean;
  readonly notes: readonly Told[];
  /** What has to be true before anything is taken from it. */
  readonly confirm: readonly Confirmation[];
  readonly againMs?: number;
}

const nobody = (): boolean => false;
const refuse = (...notes: Told[]): Wish => ({ takes: [], keeps: nobody, notes, confirm: [] });

function wishOf(ledger: MetallbLedger, service: ServiceView): Wish {
  const { claim: key } = service;
  if (key === undefined) return refuse();
  const claim = ledger.claim(key);
  if (claim === undefined) {
    const confirm = [gone({ kind: 'IPAddressClaim', ...keyParts(key) })];
    return { ...refuse(warning(service, 'ClaimNotFound', { claim: key })), confirm };
  }
  const addresses = addressesWith(ledger, claim);
  if (!isServedHere(ledger, claim, addresses)) return refuse();
  const keeps = (one: AddressView): boolean => addresses.includes(one);
  if (claim.deleting) return { takes: [], keeps, notes: [], confirm: [] };
  if (claim.phase !== 'Bound') return { takes: [], keeps, notes: [notBound(service, claim)], confirm: [] };
  const wanted = shownBy(claim, addresses);
  // What the claim shows and the ledger does not yet: it is a moment away.
  if (wanted === undefined) return { takes: [], keeps, notes: [], confirm: [] };
  return objection(ledger, service, claim, wanted) ?? { takes: wanted, keeps, notes: [], confirm: [] };
}

const notBound = (service: ServiceView, claim: ClaimView): Told =>
  normal(service, 'ClaimNotBound', { claim: claimKey(claim), phase: claim.phase ?? 'Pending' });

/** Classes say it, as long as they are there; anybody may write the stamp of a claim. */
function isServedHere(ledger: MetallbLedger, claim: ClaimView, addresses: readonly AddressView[]): boolean {
  const known = addresses.filter(({ className }) => ledger.class(className) !== undefined);
  if (known.length > 0) return known.every((one) => servesAddress(ledger, one));
  return claim.stamp === metallbProvisioner;
}

/** Why the Service does not get what its claim has. What it had, goes as well. */
function objection(
  ledger: MetallbLedger,
  service: ServiceView,
  claim: ClaimView,
  wanted: readonly AddressView[],
): Wish | undefined {
  const key = claimKey(claim);
  for (const address of wanted) {
    const { associatedTo, text } = address;
    if (associatedTo === undefined || isUser(address, service) || userOf(ledger, address).type !== 'live') continue;
    return refuse(warning(service, 'AssociationRejected', { address: text, claim: key, user: userText(associatedTo) }));
  }
  const rival = rivalFor(ledger, service, wanted);
  if (rival !== undefined) {
    const { user, address, againMs } = rival;
    const note = warning(service, 'AddressContested', { user, address, claim: key });
    return { ...refuse(note), ...(againMs === undefined ? {} : { againMs }) };
  }
  const why = unfitness(ledger, service, wanted);
  if (why !== undefined) return refuse(warning(service, 'ServiceUnfit', { claim: key, why }));
  const addresses = pinOf(wanted);
  if (service.pin === undefined || service.marked || sameAddresses(service.pinned, addresses)) return undefined;
  const values = { pin: service.pin, claim: key, addresses: addresses.join(' and ') };
  return refuse(warning(service, 'PinDiffers', values));
}

const associate = (ledger: MetallbLedger, service: ServiceView, address: AddressView): Action => {
  const { namespace, name } = service;
  const user = userOf(ledger, address);
  return {
    type: 'status',
    target: address,
    status: statusWith(address, { associatedTo: { kind: 'Service', namespace, name } }),
    confirm: user.type === 'dead' ? user.confirm : [],
  };
};

/**
 * First the ledger says whose the addresses are, so that nobody holds them again; then MetalLB gets them back; then the Service
 * asks for them. Between the last two nobody has them: a gap of one request.
 */
function take(ledger: MetallbLedger, service: ServiceView, { takes }: Wish): Action[] {
  const wanted = pinOf(takes);
  const events = [normal(service, 'Associated', { addresses: wanted.join(' and '), claim: service.claim ?? '' })];
  const isPinned = sameAddresses(service.pinned, wanted) && !service.releasing;
  const fresh = takes.filter((one) => !isUser(one, service));
  const others = ledger.usedBy(serviceKey(service)).filter((one) => !takes.includes(one));
  return [
    ...fresh.map(
      (one, n): Action => ({
        ...associate(ledger, service, one),
        // A pin by hand that says the same stays as it is, and whose it is.
        ...(isPinned && n === fresh.length - 1 ? { events } : {}),
      }),
    ),
    ...takes
      .flatMap(({ name }) => ledger.placeholdersOf(name))
      .filter(({ deleting }) => !deleting)
      .map((one) => drop(one)),
    ...(isPinned ? [] : [pin(service, wanted, events)]),
    // What it had before is held again once it has let go: MetalLB asks nobody else when a Service moves.
    ...others.filter((one) => !hasIP(service, one)).flatMap(disassociate(ledger, service)),
  ];
}

/**
 * One that goes keeps it to the end: its teardown asks who used it. What the Service keeps is in conflict by the same write:
 * between two of them the core would find it used by nobody, and give it away.
 */
const disassociate =
  (ledger: MetallbLedger, service: ServiceView) =>
  (address: AddressView): Action[] => {
    if (goes(ledger, address)) return [];
    const change = hasIP(service, address) ? conflictIn(service, address) : undefined;
    return [
      {
        type: 'status',
        target: address,
        status: statusWith(address, { associatedTo: undefined, ...change?.status }),
        ...(change === undefined ? {} : { events: change.events }),
      },
    ];
  };

function withdraw(ledger: MetallbLedger, service: ServiceView, { keeps, confirm }: Wish): Action[] {
  const used = ledger.usedBy(serviceKey(service));
  const lost = used.filter((one) => !keeps(one));
  if (lost.length === 0) return [];
  const force = isForced(ledger, lost);
  // What it keeps is in the same pin.
  const pinned = used.length === lost.length && isAuthored(service, lost) ? [unpin(service, force)] : [];
  // Taken off by force it is used until MetalLB has done that: nobody else is given it before.
  const isSent = service.releasing || (force && pinned.length > 0);
  const cleared = lost.filter((one) => !isSent || !hasIP(service, one)).flatMap(disassociate(ledger, service));
  const addresses = pinOf(lost).join(' and ');
  const told = pinned.length > 0 || service.releasing ? [] : [normal(service, 'Disassociated', { addresses })];
  return [...pinned, ...cleared].map((action, n) =>
    n === 0 ? { ...action, confirm, events: [...(action.events ?? []), ...told] } : action,
  );
}

/** An address that goes is taken off the Service; one that stays only if that is wished for. */
const isForced = (ledger: MetallbLedger, lost: readonly AddressView[]): boolean =>
  ledger.settings.forcedRelease === 'always' ||
  (ledger.settings.forcedRelease === 'deleted' && lost.some((one) => goes(ledger, one)));
