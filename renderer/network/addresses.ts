/**
 * The ordered addresses of OVN central. The first one bootstraps the databases, so the order is identity: while nothing
 * is retained it is the order of node names, afterwards it is the retained one and is never sorted or invented.
 */
import { selectsCentral } from '../../constructs/api/central.ts';
import type { Inventory, InventoryNode, InventoryTopology } from '../../constructs/api/inventory.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

export interface CentralNode {
  readonly name: string;
  readonly uid: string;
  readonly addresses: readonly string[];
}

export interface CentralPlacement {
  /** In the order that the databases were, or will be, built in. */
  readonly nodes: readonly CentralNode[];
  /** The address of each node that central listens on, in the same order. */
  readonly addresses: readonly string[];
}

export type PlacementOutcome =
  | { readonly ok: true; readonly placement: CentralPlacement }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** True when the node carries every label of the selector. */
export function matchesSelector(
  node: Pick<InventoryNode, 'labels'>,
  selector: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(selector).every(
    ([key, value]) => Object.hasOwn(node.labels, key) && node.labels[key] === value,
  );
}

const selectorText = (selector: Readonly<Record<string, string>>): string =>
  Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

function retainedOrder(retained: InventoryTopology, nodes: readonly InventoryNode[], object: string): PlacementOutcome {
  const problems: Problem[] = [];
  const taken = new Set<string>();
  const ordered: CentralNode[] = [];
  for (const address of retained.centralAddresses) {
    const node = nodes.find((candidate) => candidate.internalIPs.includes(address));
    if (node === undefined)
      problems.push({
        reason: 'CentralAddressMissing',
        message: `the retained central address ${address} belongs to no node that the central selector matches`,
        object,
        path: 'spec.central.nodeSelector',
        value: address,
        remedy: 'bring the node back, or replace the member first; then run keelson inventory',
      });
    else {
      taken.add(node.name);
      ordered.push({ name: node.name, uid: node.uid, addresses: [...node.internalIPs] });
    }
  }
  for (const node of nodes.filter((candidate) => !taken.has(candidate.name)))
    problems.push({
      reason: 'CentralNodeUnexpected',
      message: `node ${node.name} matches the central selector and is not part of the retained topology; a central pod there would not start`,
      object,
      path: 'spec.central.nodeSelector',
      value: node.name,
      remedy: 'take the label off the node; members are added by spec.central.memberRequests, never by labels',
    });
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, placement: { nodes: ordered, addresses: [...retained.centralAddresses] } };
}

/**
 * Where central runs and listens. Exactly `replicas` nodes must match the selector: one node more and a pod may land where
 * no database address points to, one less and a member is missing.
 */
export function placeCentral(options: {
  readonly inventory: Inventory;
  readonly installation: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly replicas: number;
  readonly object: string;
}): PlacementOutcome {
  const { inventory, selector, replicas, object } = options;
  const nodes = inventory.spec.nodes
    .filter((node) => selectsCentral(selector, node.labels))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const retained = inventory.spec.topology?.[options.installation];
  if (retained !== undefined) return retainedOrder(retained, nodes, object);
  if (nodes.length !== replicas)
    return {
      ok: false,
      problems: [
        {
          reason: 'CentralNodeCount',
          message: `${nodes.length} nodes match the central selector ${selectorText(selector)}, and spec.central.replicas asks for ${replicas}: the two must be equal`,
          object,
          path: 'spec.central.replicas',
          value: nodes.map((node) => node.name).join(','),
          remedy: 'label exactly as many nodes as replicas, run keelson inventory, and render again',
        },
      ],
    };
  const placed = nodes.map((node) => ({ name: node.name, uid: node.uid, addresses: [...node.internalIPs] }));
  const addresses = placed.map((node) => node.addresses[0] ?? '');
  if (new Set(addresses).size !== addresses.length)
    return {
      ok: false,
      problems: [
        {
          reason: 'CentralAddressTwice',
          message: 'two central nodes report one InternalIP',
          object,
          path: 'spec.central.nodeSelector',
          value: addresses.join(','),
          remedy: 'correct the addresses of the nodes, then run keelson inventory',
        },
      ],
    };
  return { ok: true, placement: { nodes: placed, addresses } };
}
