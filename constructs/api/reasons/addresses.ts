import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of the address ledger: conditions and Events of classes, addresses and claims. */
export const addressReasons: readonly Reason[] = [
  ...reasonsOf('ClassResolved', 'info', 'wait', [['Resolved', 'class {class} serves the claim', 'Nothing.']]),
  ...reasonsOf('ClassResolved', 'warning', 'wait', [
    [
      'ClassNotFound',
      'class {class} does not exist, or is being deleted',
      'Create the class, or name another one in spec.className.',
    ],
    [
      'NoDefaultClass',
      'the claim names no class, and no class is the default',
      'Name a class in spec.className, or mark one as the default.',
    ],
    [
      'MultipleDefaultClasses',
      'the claim names no class, and several are marked as the default: {classes}',
      'Name a class in spec.className, or leave one default.',
    ],
  ]),
  ...reasonsOf('Bound', 'info', 'wait', [
    ['Bound', '{what}', 'Nothing.'],
    ['WaitingForProvisioning', '{what}', 'Wait for the driver of the class; look at its Events when it lasts.'],
    ['Available', 'nobody has the address', 'Nothing; a claim can take it.'],
    ['ClaimPending', 'claim {claim} has not taken the address yet', 'Wait; it takes a moment.'],
    [
      'Released',
      'the claim {claim} is gone',
      'Take spec.claimRef away to let others claim it, or delete the address to give it up.',
    ],
  ]),
  ...reasonsOf('Bound', 'warning', 'wait', [
    [
      'AddressLost',
      'the claim has lost its address of {families}; it is waited for, and not replaced',
      'Bring the address back, or annotate the claim to let it be replaced.',
    ],
    [
      'PreBindingRefused',
      'address {address} is not taken by claim {claim}: {why}',
      'Make class, family and name fit, or take spec.claimRef of the address away.',
    ],
    [
      'InvalidAddress',
      'spec.address {value} is no address',
      'Delete the IPAddress and make it again; the text of an address can not be changed.',
    ],
    [
      'DuplicateAddress',
      '{address} is the address of IPAddress {other} as well',
      'Delete the one of the two that nobody uses.',
    ],
  ]),
  ...reasonsOf('Event', 'info', 'wait', [
    ['Matched', 'took the available address {address}', 'Nothing.'],
    ['AddressDeleted', 'address {address} is deleted with its claim', 'Nothing.'],
    ['AddressReleased', 'address {address} is released, and stays reserved', 'Nothing.'],
    ['Reclaimed', 'claim {claim} is gone: the address is {what}', 'Nothing.'],
    ['Returned', 'the delay of class {class} is over: the address can be claimed again', 'Nothing.'],
  ]),
  ...reasonsOf('Event', 'warning', 'wait', [
    ['Lost', 'the claim has lost its address of {families}', 'Bring the address back; it is not replaced by itself.'],
    [
      'AddressNameUnusable',
      'address {address}, which the claim names, can not be taken: {why}',
      'Name another address, or none.',
    ],
    [
      'DeletionBlocked',
      'claim {claim} has the address; it is deleted once the claim is gone',
      'Delete the claim first.',
    ],
    [
      'ClassInUse',
      'the class can not go while it has addresses: {addresses}',
      'Delete these IPAddress objects; the class goes by itself then.',
    ],
  ]),
];
