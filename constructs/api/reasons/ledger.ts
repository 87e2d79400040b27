import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of the release of the address ledger: in Git, and at acceptance. */
export const ledgerReleaseReasons: readonly Reason[] = [
  ...reasonsOf('Input', 'error', 'terminal', [
    [
      'AddressRangesOverlap',
      '{range} has addresses that {other} has too',
      'Give each address to one class, or to one pool of MetalLB.',
    ],
    [
      'AddressRangeMoved',
      '{range} is taken from class {class} and given to another one at once',
      'Take it from the one class first, let that be delivered and accepted, and give it to the other then.',
    ],
    [
      'PlaceholdersMoved',
      'the placeholders of the driver are in {namespace}, and it would look in another namespace',
      'Write the namespace that is published; another one takes an empty ledger and an uninstalled release.',
    ],
    [
      'RuntimeObject',
      '{object} is made and taken away by the driver',
      'Remove it from Git; what is special about it may be changed in the cluster.',
    ],
  ]),
  ...reasonsOf('Input', 'warning', 'wait', [
    [
      'AddressRangeShrinks',
      'class {class} gives up addresses of {range}',
      'Look at `kubectl get ipaddresses.local.sdn.cozystack.io`: it is accepted once the ledger holds none of them.',
    ],
    [
      'LedgerLeavesGit',
      'the role that keeps the ledger is taken away',
      'Set spec.addresses: {} in cluster.yaml until the ledger is empty and the release is uninstalled.',
    ],
  ]),
  ...reasonsOf('Accepted', 'error', 'wait', [
    [
      'AddressWithoutRange',
      '{address} would lie in no range of its class {class}',
      'Leave the range in Git until the address is deleted; what is in place stays enforced.',
    ],
    [
      'AddressRangeTaken',
      '{range} of class {class} has addresses that {other} in the cluster has too',
      'Change one of the two; MetalLB refuses the second of two such pools.',
    ],
  ]),
];
