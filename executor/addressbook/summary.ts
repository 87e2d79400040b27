/** The ledger in numbers, and what in it somebody has to look at. Pure. */
import { type AddressPhase, addressPhases, type ClaimPhase, claimPhases } from '../../constructs/api/ledger-words.ts';
import { type AddressView, type ClaimView, claimKey } from '../addresses/objects.ts';
import { type Book, workloadOf } from './book.ts';
import { type ClassUsage, usageByClass } from './usage.ts';

export interface ClassSummary extends ClassUsage {
  readonly name: string;
  /** Empty: there are addresses of the class, and no class. */
  readonly provisioner: string;
  readonly addresses: Readonly<Record<AddressPhase, number>>;
  readonly claims: Readonly<Record<ClaimPhase, number>>;
}

/** An address that a workload uses without authority, or that is gone; a claim that lost one. */
export interface LedgerTrouble {
  readonly phase: 'Conflict' | 'Lost';
  readonly object: string;
  /** Whom it concerns, and how. */
  readonly what: string;
}

export interface LedgerSummary {
  /** By name. */
  readonly classes: readonly ClassSummary[];
  readonly troubles: readonly LedgerTrouble[];
}

const tally = <Phase extends string>(phases: readonly Phase[], found: Iterable<Phase>): Record<Phase, number> => {
  const counts = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<Phase, number>;
  for (const phase of found) counts[phase] += 1;
  return counts;
};

const classOf = ({ className, foundClass }: ClaimView): string => className || foundClass;

function addressTrouble(address: AddressView): LedgerTrouble[] {
  const { phase, name, claimRef, text, bound } = address;
  if (phase !== 'Conflict' && phase !== 'Lost') return [];
  const workload = workloadOf(address);
  const parts = [
    text,
    claimRef === undefined ? 'nobody has it' : `claim ${claimKey(claimRef)}`,
    workload === undefined ? '' : `${workload.kind} ${workload.namespace}/${workload.name}`,
    bound?.status === 'False' ? bound.message : '',
  ];
  return [{ phase, object: `IPAddress ${name}`, what: parts.filter((part) => part !== '').join(', ') }];
}

function claimTrouble(claim: ClaimView): LedgerTrouble[] {
  if (claim.phase !== 'Lost') return [];
  const message = claim.conditions.find(({ type, status }) => type === 'Bound' && status === 'False')?.message;
  return [{ phase: 'Lost', object: `IPAddressClaim ${claimKey(claim)}`, what: message ?? 'it has lost an address' }];
}

/** @returns undefined where the ledger is empty. */
export function summaryOf(book: Book): LedgerSummary | undefined {
  const { classes, addresses, claims } = book;
  if (classes.length + addresses.length + claims.length === 0) return undefined;
  const usage = usageByClass(book);
  const known = new Map(classes.map(({ name, provisioner }) => [name, provisioner]));
  const byClass = Map.groupBy(addresses, ({ className }) => className);
  // Whatever a tenant writes is no class: such claims count with those that have none yet.
  const isClass = (name: string): boolean => known.has(name) || byClass.has(name);
  const claimed = Map.groupBy(claims, (claim) => (isClass(classOf(claim)) ? classOf(claim) : ''));
  const names = [...new Set([...known.keys(), ...byClass.keys(), ...claimed.keys()])].sort();
  return {
    classes: names.map((name) => ({
      name,
      provisioner: known.get(name) ?? '',
      addresses: tally(
        addressPhases,
        (byClass.get(name) ?? []).map(({ phase = 'Pending' }) => phase),
      ),
      claims: tally(
        claimPhases,
        (claimed.get(name) ?? []).map(({ phase = 'Pending' }) => phase),
      ),
      ...(usage.get(name) ?? { families: [], outside: 0 }),
    })),
    troubles: [...addresses.flatMap(addressTrouble), ...claims.flatMap(claimTrouble)].toSorted((a, b) =>
      a.object < b.object ? -1 : 1,
    ),
  };
}
