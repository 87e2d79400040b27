/** The IPAddress of an adoption: the one that is there already, or the one to be made. */
import { addressName } from '../../../constructs/api/addresses.ts';
import type { IPAddress } from '../../../constructs/lib/ip.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import { type AddressView, claimKey } from '../../addresses/objects.ts';
import type { KubeObject } from '../../kube/types.ts';
import { type Book, workloadOf } from '../book.ts';
import type { BalancedService } from '../pins.ts';
import { ledgerObject } from './object.ts';

export interface Wanted {
  readonly ip: IPAddress;
  readonly className: string;
  readonly claim: { readonly namespace: string; readonly name: string };
  readonly service: BalancedService;
}

/** A step towards the ledger, with what is in the way of it. */
export interface Prepared {
  readonly write: 'create' | 'merge';
  readonly object: KubeObject;
  readonly done: boolean;
  readonly note: string;
  readonly problems: readonly Problem[];
}

const taken = (name: string, message: string, remedy: string): Problem => ({
  reason: 'AddressTaken',
  object: `IPAddress ${name}`,
  message,
  remedy,
});

/** Why an address that is recorded can not be the one of the claim; undefined when it can. */
function objection(book: Book, found: AddressView, { className, claim, service }: Wanted): Problem | undefined {
  const { name, claimRef, phase = 'Pending', deleting } = found;
  const workload = workloadOf(found);
  const holder = claimRef === undefined ? '' : claimKey(claimRef);
  if (deleting) return taken(name, 'it is being deleted', 'wait until it is gone, and run this again');
  if (found.className !== className)
    return taken(name, `it is of class ${found.className}`, `adopt it with --class ${found.className}`);
  if (workload !== undefined && (workload.namespace !== service.namespace || workload.name !== service.name))
    return taken(
      name,
      `${workload.kind} ${workload.namespace}/${workload.name} uses it`,
      'take the annotation off that workload first',
    );
  if (claimRef === undefined) {
    if (phase === 'Available' || phase === 'Conflict' || phase === 'Pending') return undefined;
    return taken(name, `it is ${phase}`, 'bring it back first; see `keelson addresses`');
  }
  if (holder !== claimKey(claim))
    return taken(name, `it belongs to claim ${holder}`, `name that claim with --claim, or free the address first`);
  const live = book.claims.find((one) => claimKey(one) === holder);
  if (claimRef.uid !== '' && claimRef.uid !== live?.uid)
    return taken(
      name,
      `it belonged to a claim ${holder} that is gone`,
      `take spec.claimRef away: kubectl patch ipaddresses.local.sdn.cozystack.io ${name} --type merge -p '{"spec":{"claimRef":null}}'`,
    );
  return undefined;
}

/** The address as it is to be, and what is in the way of it. */
export function addressFor(
  book: Book,
  wanted: Wanted,
): Prepared & { readonly name: string; readonly warnings: readonly string[] } {
  const { ip, className, claim } = wanted;
  const [found, ...more] = book.addresses.filter((one) => one.ip?.text === ip.text);
  const claimRef = { namespace: claim.namespace, name: claim.name };
  if (found === undefined) {
    const name = addressName(ip);
    const spec = { address: ip.text, className, reclaimPolicy: 'Retain', claimRef, source: { fromClass: {} } };
    const other = book.addresses.find((one) => one.name === name);
    const remedy = 'delete it if nobody needs it, and run this again';
    const problems = other === undefined ? [] : [taken(name, `its address is ${other.text}, not ${ip.text}`, remedy)];
    const note = `is made for claim ${claimKey(claim)}, and retained`;
    const object = ledgerObject('IPAddress', { name }, spec);
    return { name, write: 'create', object, done: false, note, problems, warnings: [] };
  }
  const { name, reclaimPolicy } = found;
  const problem = objection(book, found, wanted);
  const twice = more.map((one) =>
    taken(one.name, `${ip.text} is recorded as ${name} too`, 'delete the one of the two that nobody uses'),
  );
  const done = found.claimRef !== undefined;
  return {
    name,
    write: 'merge',
    object: ledgerObject('IPAddress', { name }, { claimRef }),
    done,
    note: done ? 'names the claim already' : `is recorded and free: it is given to claim ${claimKey(claim)}`,
    problems: [...(problem === undefined ? [] : [problem]), ...twice],
    warnings:
      reclaimPolicy === 'Delete' ? [`IPAddress ${name} is deleted with its claim: its reclaimPolicy is Delete`] : [],
  };
}
