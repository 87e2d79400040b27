/** What the core does about a claim. Pure: the ledger in, writes in their order out. */
import { addressAnnotations, addressFinalizers } from '../../../constructs/api/addresses.ts';
import type { ClaimPhase } from '../../../constructs/api/ledger-words.ts';
import { reasonMessage } from '../../../constructs/api/reasons.ts';
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import { deepEqual, isObject, type JsonObject } from '../../../constructs/lib/json.ts';
import type { Ledger } from '../ledger.ts';
import { type AddressView, type ClaimView, claimKey } from '../objects.ts';
import {
  type Confirmation,
  type LedgerAction,
  type LedgerEvent,
  type LedgerPatch,
  type LedgerPlan,
  nothing,
} from '../plan.ts';
import { type Acceptance, acceptance } from './accept.ts';
import { conditionOf, type NewCondition, withConditions } from './conditions.ts';
import { missingFamilies } from './families.ts';
import { finaliseClaim } from './finalise-claim.ts';
import { mayMatch } from './line.ts';
import { findMatches, type Matches } from './match.ts';
import { releasedStatus } from './release.ts';
import { type Resolution, resolveClass } from './resolve.ts';

/**
 * One pass over a claim, given by `<namespace>/<name>`.
 * @param now milliseconds since 1970.
 */
export function planClaim(ledger: Ledger, key: string, now: number): LedgerPlan {
  const claim = ledger.claim(key);
  if (claim === undefined) return nothing;
  if (claim.deleting) return finaliseClaim(ledger, claim, now);
  const taken = acceptance(ledger, claim);
  const missing = missingFamilies(claim, taken.accepted);
  const resolution = missing.length === 0 ? undefined : resolveClass(ledger, claim);
  const matches = matchesFor(ledger, claim, missing, resolution);
  const replaced = [...taken.replaced, ...lostOf(taken.accepted, matches)];
  const own = {
    claim,
    taken,
    matches,
    replaced,
    resolution,
    missing: missing.filter((one) => !matches.families.includes(one)),
  };
  return {
    actions: [
      ...claimPatch(ledger, own),
      // Before another one takes its place: a driver may bring it back at any moment.
      ...replaced.map((address) => letGo(address, now)),
      ...taken.accepted.flatMap((address) => take(claim, address)),
      ...matches.found.map((address) => match(claim, address)),
      ...statusAction(own, now),
    ],
    warnings: warningsOf(own),
  };
}

interface Outcome {
  readonly claim: ClaimView;
  readonly taken: Acceptance;
  readonly matches: Matches;
  readonly replaced: readonly AddressView[];
  /** Undefined: nothing was missing, and no class was looked for. */
  readonly resolution: Resolution | undefined;
  /** Families that are still missing after the matches. */
  readonly missing: readonly IPFamily[];
}

function matchesFor(
  ledger: Ledger,
  claim: ClaimView,
  missing: readonly IPFamily[],
  resolution: Resolution | undefined,
): Matches {
  if (resolution?.ok !== true || !mayMatch(claim)) return { found: [], families: [], unusable: undefined };
  return findMatches(ledger, claim, missing, resolution.class.name);
}

/** Lost addresses whose family a match has filled. */
const lostOf = (accepted: readonly AddressView[], { families }: Matches): AddressView[] =>
  accepted.filter(({ ip, phase }) => phase === 'Lost' && ip !== undefined && families.includes(ip.family));

/** The finalizer, and the stamp that tells the driver: that of the class that was found, or of the address that it has. */
function claimPatch(ledger: Ledger, { claim, taken, resolution }: Outcome): LedgerAction[] {
  const held = resolution === undefined ? taken.accepted[0]?.className : undefined;
  const found = held === undefined ? undefined : ledger.class(held);
  const provisioner = resolution?.ok === true ? resolution.class.provisioner : found?.provisioner;
  const patch: LedgerPatch = {
    ...(claim.finalizers.includes(addressFinalizers.claim)
      ? {}
      : { finalizers: [...claim.finalizers, addressFinalizers.claim] }),
    ...(provisioner === undefined || provisioner === claim.stamp
      ? {}
      : { annotations: { [addressAnnotations.provisioner]: provisioner } }),
  };
  return Object.keys(patch).length === 0 ? [] : [{ type: 'patch', target: claim, patch }];
}

/** Fills in the UID of the claim: from then on no other claim of this name gets the address. */
const take = (claim: ClaimView, address: AddressView): LedgerAction[] =>
  address.claimRef?.uid === '' ? [{ type: 'patch', target: address, patch: { claimRef: { uid: claim.uid } } }] : [];

const match = (claim: ClaimView, address: AddressView): LedgerAction => ({
  type: 'patch',
  target: address,
  patch: { claimRef: { namespace: claim.namespace, name: claim.name, uid: claim.uid } },
  events: [normal(claim, 'Matched', { address: address.name })],
  reserves: true,
});

const letGo = (address: AddressView, now: number): LedgerAction => ({
  type: 'status',
  target: address,
  status: releasedStatus(address, now),
});

function normal(claim: ClaimView, why: string, values: Readonly<Record<string, string>>): LedgerEvent {
  return { about: claim, type: 'Normal', reason: why, note: reasonMessage(why, values) };
}

function nextPhase({ claim, missing }: Outcome): ClaimPhase {
  if (missing.length === 0) return 'Bound';
  return claim.phase === 'Bound' || claim.phase === 'Lost' ? 'Lost' : 'Pending';
}

const list = (words: readonly string[]): string => words.join(' and ');

function boundCondition(outcome: Outcome, phase: ClaimPhase, addresses: readonly AddressView[]): NewCondition {
  const { claim, missing, resolution } = outcome;
  const condition = (): NewCondition => {
    if (phase === 'Bound')
      return conditionOf('Bound', 'True', 'Bound', { what: list(addresses.map(({ text }) => text)) });
    if (phase === 'Lost') return conditionOf('Bound', 'False', 'AddressLost', { families: list(missing) });
    return conditionOf('Bound', 'False', 'WaitingForProvisioning', { what: waitsFor(claim, missing, resolution) });
  };
  return { ...condition(), observedGeneration: claim.generation };
}

function waitsFor(claim: ClaimView, missing: readonly IPFamily[], resolution: Resolution | undefined): string {
  if (resolution?.ok !== true) return `waiting for a class to provide ${list(missing)}`;
  if (claim.addressName !== '') return `waiting for IPAddress ${claim.addressName}`;
  return `waiting for provisioner ${resolution.class.provisioner} to provide ${list(missing)}`;
}

function classCondition({ claim, resolution }: Outcome): NewCondition[] {
  if (resolution === undefined) return [];
  const condition = resolution.ok
    ? conditionOf('ClassResolved', 'True', 'Resolved', { class: resolution.class.name })
    : conditionOf('ClassResolved', 'False', resolution.reason, resolution.values);
  return [{ ...condition, observedGeneration: claim.generation }];
}

function statusAction(outcome: Outcome, now: number): LedgerAction[] {
  const { claim, taken, matches, replaced, resolution } = outcome;
  const phase = nextPhase(outcome);
  const held = [...taken.accepted, ...matches.found]
    .filter((address) => !replaced.includes(address))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const before: JsonObject = isObject(claim.object.status) ? claim.object.status : {};
  const status: JsonObject = {
    ...before,
    phase,
    ...(resolution?.ok === true ? { className: resolution.class.name } : {}),
    ...(held.length === 0 && before.addresses === undefined
      ? {}
      : { addresses: held.map(({ name, text }) => ({ name, address: text })) }),
    conditions: withConditions(
      claim.conditions,
      [...classCondition(outcome), boundCondition(outcome, phase, held)],
      now,
    ),
  };
  if (deepEqual(before, status)) return [];
  return [
    {
      type: 'status',
      target: claim,
      status,
      ...(phase === 'Lost' && claim.phase !== 'Lost' ? { confirm: lostOnes(claim, held) } : {}),
      ...(phase === claim.phase ? {} : { events: [phaseEvent(outcome, phase, held)] }),
    },
  ];
}

/** What the claim had and the ledger does not show: a watch that is late is no loss. */
const lostOnes = (claim: ClaimView, held: readonly AddressView[]): Confirmation[] =>
  claim.addresses
    .filter(({ name }) => !held.some((address) => address.name === name))
    .map(({ name }) => ({ type: 'version', ref: { kind: 'IPAddress', name } }));

function phaseEvent(outcome: Outcome, phase: ClaimPhase, held: readonly AddressView[]): LedgerEvent {
  const { claim, missing } = outcome;
  if (phase === 'Lost')
    return {
      about: claim,
      type: 'Warning',
      reason: 'Lost',
      note: reasonMessage('Lost', { families: list(missing) }),
    };
  const { message } = boundCondition(outcome, phase, held);
  return { about: claim, type: 'Normal', reason: phase, note: message };
}

function warningsOf({ claim, taken, matches, resolution }: Outcome): LedgerEvent[] {
  const warn = (why: string, values: Readonly<Record<string, string>>): LedgerEvent => ({
    about: claim,
    type: 'Warning',
    reason: why,
    note: reasonMessage(why, values),
  });
  return [
    ...(resolution === undefined || resolution.ok ? [] : [warn(resolution.reason, resolution.values)]),
    ...(matches.unusable === undefined
      ? []
      : [warn('AddressNameUnusable', { address: claim.addressName, why: matches.unusable })]),
    ...taken.refused.map(({ address, why }) =>
      warn('PreBindingRefused', { address: address.name, claim: claimKey(claim), why }),
    ),
  ];
}
