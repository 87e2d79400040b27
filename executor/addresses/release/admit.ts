/** Whether a release of the ledger leaves every address in a range of its class, and gives none twice. Pure. */
import { addressRanges } from '../../../constructs/api/addresses.ts';
import { poolName } from '../../../constructs/api/metallb.ts';
import { blocksOverlap, byFamily, holdsIP, type IPBlock, readIPRange } from '../../../constructs/lib/ip.ts';
import { type JsonObject, objectOf } from '../../../constructs/lib/json.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import type { AddressView } from '../objects.ts';

/** Who gives addresses in the cluster. */
export interface Giver {
  readonly kind: 'IPAddressClass' | 'IPAddressPool';
  readonly name: string;
  readonly namespace?: string;
  readonly blocks: readonly IPBlock[];
}

/** What of the cluster decides. */
export interface LedgerSnapshot {
  readonly addresses: readonly AddressView[];
  /** Classes that MetalLB gives addresses for, and its pools. */
  readonly givers: readonly Giver[];
}

type Objects = ReadonlyMap<string, JsonObject> | undefined;

/** What a payload gives to each class; undefined for one that does not say. */
function rangesOf(objects: Objects): Map<string, IPBlock[]> | undefined {
  const record = [...(objects ?? [])].find(([id]) => id.startsWith('/ConfigMap/') && id.endsWith(`/${addressRanges}`));
  if (record === undefined) return undefined;
  return new Map(
    Object.entries(objectOf(record[1].data)).map(([name, lines]) => [
      name,
      String(lines)
        .split('\n')
        .flatMap((line) => readIPRange(line) ?? []),
    ]),
  );
}

const lies = ({ ip }: AddressView, blocks: readonly IPBlock[] | undefined): boolean =>
  ip !== undefined && (blocks ?? []).some((block) => byFamily(block).some((part) => holdsIP(part, ip)));

const holderOf = ({ claimRef, phase }: AddressView): string =>
  claimRef === undefined
    ? (phase ?? 'Pending')
    : `${phase ?? 'Pending'}, of claim ${claimRef.namespace}/${claimRef.name}`;

/** Whether an address was carved from a range: one that a provider reserves need not lie in any. */
const isCarved = ({ object }: AddressView): boolean => objectOf(objectOf(object.spec).source).fromClass !== undefined;

/**
 * Addresses that the change would take the range away from. One that lay in no range before is not of this change; of a class that
 * Git did not have before, every one is told.
 */
function stranded(
  addresses: readonly AddressView[],
  now: ReadonlyMap<string, readonly IPBlock[]>,
  before: ReadonlyMap<string, readonly IPBlock[]> | undefined,
): AddressView[] {
  return addresses.filter((address) => {
    const { className, ip } = address;
    if (ip === undefined || !isCarved(address) || lies(address, now.get(className))) return false;
    const had = before?.get(className);
    return had === undefined ? now.has(className) : lies(address, had);
  });
}

/** So many are named of each class; the rest is counted. */
const named = 5;

function strandedProblems(addresses: readonly AddressView[]): Problem[] {
  const byClass = Map.groupBy(addresses, ({ className }) => className);
  return [...byClass].map(([className, all]): Problem => {
    const told = all.slice(0, named).map((address) => `${address.name} (${address.text}, ${holderOf(address)})`);
    const more = all.length > named ? `, and ${all.length - named} more` : '';
    return {
      reason: 'AddressWithoutRange',
      message: `Git gives no range of it for ${told.join(', ')}${more}: MetalLB would let go of what is in use`,
      object: `IPAddressClass ${className}`,
      path: 'spec.parameters.addresses',
      remedy: 'leave the range in Git until these addresses are deleted; what is in place stays enforced',
    };
  });
}

const describe = ({ kind, namespace, name }: Giver): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;

function takenProblems(now: ReadonlyMap<string, readonly IPBlock[]>, givers: readonly Giver[]): Problem[] {
  // What classes give each other in Git is seen to at render; their pools in the cluster may still have what Git took from them.
  const others = givers
    .filter(({ kind, name }) => kind !== 'IPAddressClass' || !now.has(name))
    .flatMap((giver) => giver.blocks.flatMap(byFamily).map((part) => ({ giver, part })));
  const poolsOfGit = new Set([...now.keys()].map(poolName));
  return [...now].flatMap(([name, blocks]) =>
    blocks.flatMap((block): Problem[] => {
      const other = others.find(
        ({ giver, part }) =>
          (giver.kind !== 'IPAddressPool' || giver.name !== poolName(name)) &&
          byFamily(block).some((mine) => blocksOverlap(mine, part)),
      );
      if (other === undefined) return [];
      const isOfGit = other.giver.kind === 'IPAddressPool' && poolsOfGit.has(other.giver.name);
      return [
        {
          reason: 'AddressRangeTaken',
          message: `${describe(other.giver)}, which ${isOfGit ? 'is of another class' : 'is not of Git'}, has addresses of it too (${other.part.text}); MetalLB refuses two such pools`,
          object: `IPAddressClass ${name}`,
          path: 'spec.parameters.addresses',
          value: block.text,
          remedy: isOfGit
            ? 'wait until the range has left that pool: it stays there while an address of the ledger is in it'
            : 'take the addresses out of one of the two',
        },
      ];
    }),
  );
}

/** Every reason why a payload must not be enforced here; none for one that says nothing of ranges. */
export function admitLedger(objects: Objects, previous: Objects, snapshot: LedgerSnapshot): Problem[] {
  const now = rangesOf(objects);
  if (now === undefined) return [];
  return [
    ...strandedProblems(stranded(snapshot.addresses, now, rangesOf(previous))),
    ...takenProblems(now, snapshot.givers),
  ];
}
