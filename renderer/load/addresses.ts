import { isIP } from 'node:net';
import { Address4, Address6 } from 'ip-address';
import type { Inventory } from '../../constructs/api/inventory.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Path, problemAt, type SourceDocument } from './source.ts';

/** A plain address; forms that other readers take for another address, such as octets with leading zeros, are none. */
const isAddress = (text: string): boolean =>
  isIP(text) === 4 ? Address4.isValid(text) : isIP(text) === 6 && Address6.isValid(text);

/** A range whose address is its first. */
function isRange(text: string): boolean {
  const [address = '', prefix] = text.split('/');
  if (prefix === undefined || !isAddress(address)) return false;
  if (isIP(address) === 4) return Address4.isValid(text) && new Address4(text).startAddress().address === address;
  if (!Address6.isValid(text)) return false;
  return new Address6(text).startAddress().bigInt() === new Address6(address).bigInt();
}

type Say = (path: Path, message: string, value: string) => void;

function nodeProblems(nodes: Inventory['spec']['nodes'], say: Say): void {
  const seen = new Map<string, string>();
  for (const [n, node] of nodes.entries())
    for (const [i, address] of node.internalIPs.entries()) {
      const path = ['spec', 'nodes', n, 'internalIPs', i];
      const other = seen.get(address);
      if (!isAddress(address)) say(path, 'it is not an address', address);
      else if (other !== undefined && other !== node.name) say(path, `node ${other} has the same address`, address);
      seen.set(address, node.name);
    }
}

function topologyProblems(topology: Inventory['spec']['topology'], say: Say): void {
  for (const [name, { centralAddresses }] of Object.entries(topology ?? {}))
    for (const [i, address] of centralAddresses.entries()) {
      const path = ['spec', 'topology', name, 'centralAddresses', i];
      if (!isAddress(address)) say(path, 'it is not an address', address);
      else if (centralAddresses.indexOf(address) !== i) say(path, 'the address stands twice', address);
    }
}

/** Addresses and ranges of an inventory that are none, and nodes that could not be told apart. */
export function addressProblems(inventory: Inventory, document: SourceDocument): Problem[] {
  const problems: Problem[] = [];
  const say: Say = (path, message, value) => {
    problems.push(
      problemAt(document, path, {
        reason: 'InvalidValue',
        message,
        value,
        remedy: 'take the inventory again with `keelson inventory`; it is not written by hand',
      }),
    );
  };
  const { nodes, serviceCIDRs, topology } = inventory.spec;
  for (const [n, range] of serviceCIDRs.entries())
    if (!isRange(range)) say(['spec', 'serviceCIDRs', n], 'it is not the range of a network', range);
  nodeProblems(nodes, say);
  topologyProblems(topology, say);
  return problems;
}
