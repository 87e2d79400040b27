/** What the driver does about a claim: it lets MetalLB choose an address, and records it. Pure. */
import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import { metallbProvisioner, poolName } from '../../../constructs/api/metallb.ts';
import { type IPAddress, type IPFamily, readIP } from '../../../constructs/lib/ip.ts';
import { objectOf } from '../../../constructs/lib/json.ts';
import type { LedgerRef } from '../api.ts';
import { requested } from '../core/families.ts';
import { isStocked } from '../core/line.ts';
import { type AddressView, type ClaimView, type ClassView, claimKey, keyParts } from '../objects.ts';
import { gone, isInPool, isLeaving, isOurs, ownersOf, servesAddress, userOf } from './facts.ts';
import { drop, linkTo, ownerOf, placeholder } from './holds.ts';
import type { MetallbLedger } from './ledger.ts';
import { allocationName, driverFinalizer, newAddressName, nthOf, placeholderAnnotations } from './names.ts';
import { isServed } from './parameters.ts';
import { type Action, normal, type Plan, warning } from './tell.ts';
import type { ServiceView } from './views.ts';

/** So many placeholders of a class and family may wait for MetalLB to choose: each of them takes whatever becomes free. */
export const choosingAtOnce = 4;
/** A claim that waits is looked at again, should a change have been missed. */
const safetyMs = 120_000;
/** And so soon when its placeholder has an address that the pool does not hold. */
const poolAgainMs = 10_000;

/**
 * One pass over a claim, given by `<namespace>/<name>`.
 * @param now milliseconds since 1970.
 */
export function planClaim(ledger: MetallbLedger, key: string, now: number): Plan {
  const claim = ledger.claim(key);
  const found = claim === undefined ? undefined : servingClass(ledger, claim);
  const missing = claim === undefined || found === undefined ? [] : missingFamilies(ledger, claim);
  const steps =
    claim === undefined || found === undefined
      ? []
      : missing.map((family) => provide({ ledger, claim, found, family, now }, chosenFor(ledger, claim, family)));
  const used = steps.flatMap(({ uses }) => (uses === undefined ? [] : [uses]));
  return {
    actions: [...steps.flatMap(({ actions }) => actions), ...orphans(ledger, key, used)],
    warnings: [],
    ...(missing.length === 0 ? {} : { againMs: Math.min(safetyMs, ...steps.map((one) => one.againMs ?? safetyMs)) }),
  };
}

/** The class that the claim is to be served from; undefined: it is not for this driver, or not now. */
export function servingClass(ledger: MetallbLedger, claim: ClaimView): ClassView | undefined {
  const { stamp, addressName, className, foundClass, phase, replaceLost, deleting } = claim;
  // A claim that names an address waits for that one; whether there is one to take is the core's to say.
  if (deleting || stamp !== metallbProvisioner || addressName !== '') return undefined;
  if (phase === 'Bound' || (phase === 'Lost' && !replaceLost)) return undefined;
  // Between the edit of a class name and the core's look at it, nobody knows which class it is to be.
  if (className !== '' && foundClass !== '' && className !== foundClass) return undefined;
  const found = ledger.class(foundClass === '' ? className : foundClass);
  return isServed(found) && !found.deleting ? found : undefined;
}

/** An address that is there for the claim, or will be once its claim has looked at it; one that is lost counts. */
function covers(claim: ClaimView, address: AddressView): boolean {
  const { claimRef, bound, phase } = address;
  if (isLeaving(address) || (claimRef?.uid !== '' && claimRef?.uid !== claim.uid)) return false;
  if (bound?.status === 'False' && bound.reason === 'Released') return false;
  // What the claim refused counts while it is ours: it goes, and only then another one is asked for.
  if (bound?.status === 'False' && bound.reason === 'PreBindingRefused') return isOurs(address);
  return phase !== 'Lost' || !claim.replaceLost;
}

/** Families for which the claim has nothing, and nothing is under way. */
export const missingFamilies = (ledger: MetallbLedger, claim: ClaimView): IPFamily[] =>
  requested(claim).filter(
    (family) => !ledger.addressesOf(claimKey(claim)).some((one) => one.ip?.family === family && covers(claim, one)),
  );

/** Whether the placeholder was made for this claim, and not for one of its name before, and its address is not recorded. */
const isOpen = (ledger: MetallbLedger, claim: ClaimView, family: IPFamily, one: ServiceView): boolean =>
  !one.deleting &&
  one.name.startsWith(allocationName(claim.uid, family, 1)) &&
  (one.placeholder?.address === undefined || ledger.address(one.placeholder.address) === undefined);

/** The placeholder by which an address of the family is chosen. */
export function chosenFor(ledger: MetallbLedger, claim: ClaimView, family: IPFamily): ServiceView | undefined {
  const open = ledger.placeholdersFor(claimKey(claim)).filter((one) => isOpen(ledger, claim, family, one));
  return open.find(({ ingress }) => ingress.length > 0) ?? open[0];
}

interface Step {
  readonly actions: readonly Action[];
  /** The placeholder that is still needed. */
  readonly uses?: ServiceView;
  readonly againMs?: number;
}

/** A family that the claim needs, and where from. */
interface Need {
  readonly ledger: MetallbLedger;
  readonly claim: ClaimView;
  readonly found: ClassView;
  readonly family: IPFamily;
  readonly now: number;
}

function provide(need: Need, chosen: ServiceView | undefined): Step {
  const { ledger, claim, found, family } = need;
  if (chosen === undefined) {
    // The core is about to give it one of those; asked for now, another one would come too late.
    if (isStocked(ledger, found.name, family)) return { actions: [] };
    const isFull = ledger.choosing(found.name, family) >= choosingAtOnce;
    return { actions: isFull ? [] : [reserve(need)] };
  }
  // Of another class, or pinned to an address that MetalLB took away again: it can not come to anything.
  const isPinned = chosen.pinned.length > 0;
  if (chosen.pool !== poolName(found.name) || (isPinned && chosen.ingress.length === 0)) return { actions: [] };
  const ip = chosen.ingress.map(readIP).find((one) => one?.family === family);
  if (ip === undefined) return { actions: [], uses: chosen };
  const present = ledger.addressesAt(ip.text);
  const owner = ownersOf(ledger, ip.text)[0];
  if (owner !== undefined) return mismatch(need, owner, ip, chosen);
  // One that goes has its name until it is gone.
  if (present.length > 0) return { actions: [], uses: chosen };
  // The range has left the pool meanwhile: MetalLB is about to take it away again, and recorded it would be lost at once.
  if (isInPool(ledger, { className: found.name, ip }) !== true)
    return { actions: [], uses: chosen, againMs: poolAgainMs };
  return { actions: record(ledger, claim, found, ip, chosen), uses: chosen };
}

function reserve({ ledger, claim, found, family }: Need, after = 0): Action {
  const { placeholderNamespace } = ledger.settings;
  const isTaken = (name: string): boolean => ledger.service(`${placeholderNamespace}/${name}`) !== undefined;
  let nth = after + 1;
  while (isTaken(allocationName(claim.uid, family, nth))) nth += 1;
  const name = allocationName(claim.uid, family, nth);
  const object = placeholder(ledger.settings, {
    name,
    family,
    className: found.name,
    annotations: {
      [placeholderAnnotations.claimNamespace]: claim.namespace,
      [placeholderAnnotations.claimName]: claim.name,
    },
  });
  return {
    type: 'create',
    object,
    events: [normal(claim, 'Reserving', { placeholder: name, family })],
    refused: (message) => warning(claim, 'PlaceholderRefused', { family, message }),
  };
}

/** First the placeholder keeps the address whatever happens to MetalLB; then the address is recorded. */
function record(
  ledger: MetallbLedger,
  claim: ClaimView,
  found: ClassView,
  ip: IPAddress,
  chosen: ServiceView,
): Action[] {
  const name = newAddressName(ip, (one) => ledger.address(one) !== undefined);
  const link = linkTo(name, ip.text);
  const isLinked = chosen.placeholder?.address === name && chosen.pinned[0] === ip.text;
  const { reclaimPolicy } = objectOf(found.object.spec);
  const claimRef = { namespace: claim.namespace, name: claim.name, uid: claim.uid };
  const object = {
    apiVersion: addressesApiVersion,
    kind: 'IPAddress',
    metadata: { name, finalizers: [driverFinalizer] },
    spec: {
      className: found.name,
      address: ip.text,
      reclaimPolicy: reclaimPolicy === 'Delete' ? 'Delete' : 'Retain',
      claimRef,
      source: { fromClass: {} },
    },
  };
  return [
    ...(isLinked ? [] : [{ type: 'patch', target: chosen, patch: link } satisfies Action]),
    {
      type: 'create',
      object,
      // For a claim that is gone it would be made for nobody.
      confirm: [{ type: 'identity', ref: claimRefOf(claimKey(claim)), uid: claim.uid }],
      events: [normal(claim, 'Provisioned', { address: ip.text, name })],
    },
  ];
}

/**
 * MetalLB gave an address that the ledger has already: it was free there for a moment. The placeholder stays and holds it for
 * its owner, and the claim gets another one. If a workload waits for the address, the placeholder makes way.
 */
function mismatch(need: Need, owner: AddressView, ip: IPAddress, chosen: ServiceView): Step {
  const { ledger, claim } = need;
  const events = [warning(claim, 'LedgerMismatch', { address: ip.text, name: owner.name })];
  if (servesAddress(ledger, owner) && userOf(ledger, owner).type === 'live') return makeWay(need, chosen, events);
  const link = linkTo(owner.name, ip.text);
  const annotations = {
    ...link.annotations,
    [placeholderAnnotations.claimNamespace]: null,
    [placeholderAnnotations.claimName]: null,
  };
  const patch = { labels: link.labels, annotations, ownerReferences: [ownerOf(owner)] };
  return { actions: [{ type: 'patch', target: chosen, patch, events }], uses: chosen };
}

/**
 * Another placeholder asks before this one goes, so that it is not given the same address. It may be all the same, and the
 * workload may not be able to take it: from the second time on that is tried after a while, each time a longer one.
 */
function makeWay(need: Need, chosen: ServiceView, events: Action['events'] & object): Step {
  const nth = nthOf(need.claim.uid, need.family, chosen.name);
  const left = Date.parse(chosen.createdAt) + waitMs(nth) - need.now;
  if (left > 0) return { actions: [], uses: chosen, againMs: left };
  return { actions: [reserve(need, nth), { ...drop(chosen), events }], uses: chosen };
}

const waitMs = (nth: number): number => (nth <= 1 ? 0 : Math.min(600_000, 1_000 * 2 ** Math.min(nth - 2, 10)));

const claimRefOf = (key: string): LedgerRef => ({ kind: 'IPAddressClaim', ...keyParts(key) });

/** Placeholders of the claim that nobody needs: those whose address is recorded hold it, whatever becomes of the claim. */
function orphans(ledger: MetallbLedger, key: string, used: readonly ServiceView[]): Action[] {
  const claimGone = ledger.claim(key) === undefined ? [gone(claimRefOf(key))] : [];
  return ledger
    .placeholdersFor(key)
    .filter((one) => !one.deleting && !used.includes(one))
    .flatMap((one) => {
      const address = one.placeholder?.address;
      if (address === undefined) return [drop(one, claimGone)];
      return ledger.address(address) === undefined
        ? [drop(one, [...claimGone, gone({ kind: 'IPAddress', name: address })])]
        : [];
    });
}
