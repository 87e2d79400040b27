/** What the driver does about an address: it is held unless a workload uses it, watched over, and torn down in the end. Pure. */
import type { AddressPhase } from '../../../constructs/api/ledger-words.ts';
import { deepEqual, type JsonObject, objectOf } from '../../../constructs/lib/json.ts';
import { conditionOf, type NewCondition, withConditions } from '../core/conditions.ts';
import { isSurplus, rivalOf } from '../core/duplicate.ts';
import { type AddressView, claimKey } from '../objects.ts';
import { type Confirmation, nothing } from '../plan.ts';
import { conflictTold } from './detect.ts';
import {
  goes,
  gone,
  hasIP,
  isInPool,
  isLeaving,
  isOurs,
  offendersOf,
  servesAddress,
  statusWith,
  type User,
  userOf,
  userText,
} from './facts.ts';
import { drop, type Hold, holdOf } from './holds.ts';
import type { MetallbLedger } from './ledger.ts';
import { allocationName, driverFinalizer } from './names.ts';
import { isAuthored, unpin } from './pins.ts';
import { type Action, normal, type Plan, type Told, warning } from './tell.ts';
import type { ServiceView } from './views.ts';

/**
 * One pass over an address, given by name.
 * @param now milliseconds since 1970.
 */
export function planAddress(ledger: MetallbLedger, name: string, now: number): Plan {
  const address = ledger.address(name);
  if (address === undefined) return { actions: leftovers(ledger, name), warnings: [] };
  if (isLeaving(address)) return tearDown(ledger, address);
  if (!servesAddress(ledger, address) || address.ip === undefined) return nothing;
  const present = ledger.placeholdersOf(name).filter(({ deleting }) => !deleting);
  // Another object has the address with more right, and holds it; were it gone, nobody would hold it.
  if (isSurplus(ledger, address))
    return { actions: present.map((one) => drop(one, rivalStands(ledger, address))), warnings: [] };
  if (wasNeverHad(ledger, address)) return { actions: [{ type: 'delete', target: address }], warnings: [] };
  const user = userOf(ledger, address);
  // What is being taken off its user has somebody who waits for it, or MetalLB gives it to whoever asks.
  const isFreed = user.type === 'live' && user.service?.releasing === true && !goes(ledger, address);
  if (user.type === 'live' && !isFreed)
    return {
      actions: [...statusStep(ledger, address, user, undefined, now), ...present.map((one) => drop(one))],
      warnings: [],
    };
  const hold = holdOf(ledger, address, now);
  const wait = heldAfterMs(hold, address, now);
  const againMs = Math.min(hold.againMs ?? Number.POSITIVE_INFINITY, wait ?? Number.POSITIVE_INFINITY);
  return {
    actions: [...statusStep(ledger, address, user, hold, now), ...hold.actions],
    warnings: [],
    ...(againMs === Number.POSITIVE_INFINITY ? {} : { againMs }),
  };
}

function rivalStands(ledger: MetallbLedger, address: AddressView): Confirmation[] {
  const rival = rivalOf(ledger, address);
  return rival === undefined
    ? []
    : [{ type: 'identity', ref: { kind: 'IPAddress', name: rival.name }, uid: rival.uid }];
}

/** Placeholders of an address that is no more. One that was made for a claim may be about to be recorded: that is its claim's. */
const leftovers = (ledger: MetallbLedger, name: string): Action[] =>
  ledger
    .placeholdersOf(name)
    .filter(({ deleting, placeholder }) => !deleting && placeholder?.claim === undefined)
    .map((one) => drop(one, [gone({ kind: 'IPAddress', name })]));

/**
 * The driver made the address for a claim that did not take it, and never had it: a claim that had an address and lost it again
 * released it. Kept, it would be reserved for nobody.
 */
function wasNeverHad(ledger: MetallbLedger, address: AddressView): boolean {
  const { bound, claimRef, ip, deleting } = address;
  if (deleting || !isOurs(address) || bound?.status !== 'False' || bound.reason !== 'PreBindingRefused') return false;
  if (claimRef === undefined || claimRef.uid === '' || ip === undefined) return false;
  const first = allocationName(claimRef.uid, ip.family, 1);
  return ledger.placeholdersOf(address.name).some(({ name }) => name.startsWith(first));
}

/** What was held is given up, the driver's pin is taken off, and the last mark of the driver goes. */
function tearDown(ledger: MetallbLedger, address: AddressView): Plan {
  const { name, finalizers } = address;
  if (!isOurs(address) && !servesAddress(ledger, address)) return nothing;
  const user = userOf(ledger, address);
  const service = user.type === 'live' ? user.service : undefined;
  const holds = ledger.placeholdersOf(name).filter(({ deleting }) => !deleting);
  const release = service === undefined ? { actions: [], waits: false } : releaseStep(ledger, address, service);
  const last: Action[] = isOurs(address)
    ? [{ type: 'patch', target: address, patch: { finalizers: finalizers.filter((one) => one !== driverFinalizer) } }]
    : [];
  return {
    actions: [...holds.map((one) => drop(one)), ...release.actions, ...(release.waits ? [] : last)],
    warnings: release.waits ? [normal(address, 'Releasing', { user: userText(userOfText(service)) })] : [],
  };
}

const userOfText = (service: ServiceView | undefined) => ({
  kind: 'Service',
  namespace: service?.namespace ?? '',
  name: service?.name ?? '',
});

/** MetalLB leaves a Service what it has when only the pin goes: the address would be in use, and in no ledger. */
function releaseStep(
  ledger: MetallbLedger,
  address: AddressView,
  service: ServiceView,
): { readonly actions: readonly Action[]; readonly waits: boolean } {
  const has = hasIP(service, address);
  if (service.releasing) return { actions: [], waits: has };
  if (!isAuthored(service, [address])) return { actions: [], waits: false };
  const force = ledger.settings.forcedRelease !== 'never' && has && isOurs(address);
  return { actions: [unpin(service, force)], waits: force };
}

const patienceMs = 10_000;

/** How long until a placeholder that has just been made counts as one that waits. */
function heldAfterMs({ keeper }: Hold, address: AddressView, now: number): number | undefined {
  if (keeper === undefined || hasIP(keeper, address)) return undefined;
  const left = Date.parse(keeper.createdAt) + patienceMs - now;
  return left > 0 ? left : undefined;
}

interface Change {
  readonly phase?: AddressPhase;
  readonly events: readonly Told[];
}

/** Phase, association and condition `Held`, in one write. */
function statusStep(
  ledger: MetallbLedger,
  address: AddressView,
  user: User,
  hold: Hold | undefined,
  now: number,
): Action[] {
  const { phase, events } = phaseOf(ledger, address);
  const held = heldOf(ledger, address, user, hold, now);
  const next: JsonObject = statusWith(address, {
    ...(phase === undefined ? {} : { phase }),
    ...(user.type === 'dead' ? { associatedTo: undefined } : {}),
    ...(held === undefined ? {} : { conditions: withConditions(address.conditions, [held], now) }),
  });
  if (deepEqual(objectOf(address.object.status), next)) return [];
  const cleared = user.type === 'dead' && address.associatedTo !== undefined;
  return [
    {
      type: 'status',
      target: address,
      status: next,
      confirm: user.type === 'dead' ? user.confirm : [],
      events: [
        ...events,
        ...(cleared ? [normal(address, 'AssociationCleared', { user: userText(address.associatedTo) })] : []),
      ],
    },
  ];
}

/** Conflict and Lost begin and end here; everything else about phases is the core's. */
function phaseOf(ledger: MetallbLedger, address: AddressView): Change {
  const { phase, className } = address;
  const isThere = isInPool(ledger, address);
  if (phase === 'Conflict') {
    if (offendersOf(ledger, address).length > 0) return { events: [] };
    return handBack(ledger, address, normal(address, 'ConflictResolved'));
  }
  if (phase === 'Lost') {
    if (isThere !== true) return { events: [] };
    const restored = normal(address, 'ReservationRestored', { class: className });
    const [offender] = offendersOf(ledger, address);
    // Handed back, it could be given away before the pass of that Service.
    return offender === undefined
      ? handBack(ledger, address, restored)
      : { phase: 'Conflict', events: [restored, ...conflictTold(offender, address)] };
  }
  if (isThere !== false) return { events: [] };
  return { phase: 'Lost', events: [warning(address, 'ReservationLost', { address: address.text, class: className })] };
}

/** The phase that the core will find right. While it has not yet seen that a claim is gone, it is left alone. */
function handBack(ledger: MetallbLedger, { claimRef, bound }: AddressView, told: Told): Change {
  const events = [told];
  if (claimRef === undefined) return { phase: 'Available', events };
  if (bound?.status === 'False') return { phase: bound.reason === 'Released' ? 'Released' : 'Pending', events };
  const claim = ledger.claim(claimKey(claimRef));
  if (claim === undefined || (claimRef.uid !== '' && claimRef.uid !== claim.uid)) return { events: [] };
  return { phase: 'Bound', events };
}

/** Undefined: it is too early to tell. */
function heldOf(
  ledger: MetallbLedger,
  address: AddressView,
  user: User,
  hold: Hold | undefined,
  now: number,
): NewCondition | undefined {
  const { className, text, ip, associatedTo } = address;
  if (isInPool(ledger, address) === false)
    return conditionOf('Held', 'False', 'OutsidePool', { address: text, class: className });
  if (user.type === 'live' && associatedTo !== undefined)
    return conditionOf('Held', 'True', 'InUse', { user: userText(associatedTo) });
  const keeper = hold?.keeper;
  if (keeper === undefined || ip === undefined) return undefined;
  const values = { placeholder: keeper.name };
  if (keeper.ingress.includes(ip.text)) return conditionOf('Held', 'True', 'Reserved', values);
  if (Date.parse(keeper.createdAt) + patienceMs > now) return undefined;
  return conditionOf('Held', 'False', 'HoldPending', values);
}
