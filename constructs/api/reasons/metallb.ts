import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of the driver for MetalLB: Events, and condition `Held` of addresses. */
export const metallbReasons: readonly Reason[] = [
  ...reasonsOf('Held', 'info', 'wait', [
    ['Reserved', 'placeholder {placeholder} holds the address', 'Nothing.'],
    ['InUse', '{user} uses the address', 'Nothing.'],
  ]),
  ...reasonsOf('Held', 'warning', 'wait', [
    [
      'HoldPending',
      'MetalLB has not given the address to placeholder {placeholder}',
      'See whether MetalLB runs, and who else uses the address; its Events about the placeholder tell why.',
    ],
    [
      'OutsidePool',
      '{address} is not in the pool of class {class}',
      'Put its network back into the parameters of the class, or delete the IPAddress.',
    ],
  ]),
  ...reasonsOf('Event', 'info', 'wait', [
    ['Reserving', 'placeholder {placeholder} asks MetalLB for an address of {family}', 'Nothing.'],
    ['Held', 'placeholder {placeholder} asks MetalLB for the address, to hold it', 'Nothing.'],
    ['Provisioned', 'MetalLB gave {address}; it is recorded as {name}', 'Nothing.'],
    ['Associated', 'the Service takes {addresses} of claim {claim}', 'Nothing.'],
    ['ClaimNotBound', 'claim {claim} is {phase}', 'Wait for the claim; look at its Events when it lasts.'],
    ['Disassociated', 'the Service has no right to {addresses} any more', 'Nothing.'],
    ['AssociationCleared', '{user} is gone: the address is held again', 'Nothing.'],
    ['ConflictResolved', 'nobody uses the address without authority any more', 'Nothing.'],
    ['ReservationRestored', 'the pool of class {class} holds the address again', 'Nothing.'],
    ['Releasing', 'MetalLB takes the address off {user}', 'Wait; it lasts as long as MetalLB does not run.'],
  ]),
  ...reasonsOf('Event', 'warning', 'wait', [
    [
      'LedgerMismatch',
      'MetalLB gave {address}, which is that of IPAddress {name}: another one is asked for',
      'Look at the IPAddress if it lasts: MetalLB may give its address to others.',
    ],
    [
      'InvalidClassParameters',
      'spec.parameters of the class can not be used: {why}',
      'Set spec.parameters.addresses to a list of networks such as 203.0.113.0/28.',
    ],
    [
      'ClassRangeInUse',
      'the pool keeps {networks}: addresses of the ledger are in there',
      'Delete these IPAddress objects first, or put the networks back into the class.',
    ],
    [
      'PoolRefused',
      'the pool or its advertisement was refused: {message}',
      'Change the networks of the class, or the pool that they overlap with.',
    ],
    [
      'PlaceholderRefused',
      'the API server takes no placeholder for {family}: {message}',
      'Do what the message says. A family that the cluster has no Services of can not be claimed: ask for the other one, or give the cluster that family. It is tried again every ten minutes.',
    ],
    [
      'ReservationLost',
      '{address} is not in the pool of class {class} any more',
      'Put its network back into the parameters of the class, or delete the IPAddress.',
    ],
    ['ClaimNotFound', 'claim {claim} does not exist', 'Make the claim, or take the annotation off the Service.'],
    [
      'AssociationRejected',
      '{address} of claim {claim} is used by {user}',
      'Take the annotation off one of the two; a claim serves one Service at a time.',
    ],
    [
      'AddressContested',
      '{user} waits for {address} of claim {claim} by a pin, spec.loadBalancerIP or a pool of its own, and would get it in the moment in which nobody has it',
      'Take that off that Service; the address changes hands then.',
    ],
    [
      'ServiceUnfit',
      'the Service can not take the addresses of claim {claim}: {why}',
      'Change the Service, or take the annotation off.',
    ],
    [
      'PinDiffers',
      'the Service is pinned to {pin} by hand, claim {claim} has {addresses}',
      'Take the pin off, or name the claim that has its addresses.',
    ],
    [
      'AddressConflict',
      '{address} belongs to {owner}, and the Service uses it',
      'Annotate the Service with the claim, or take the address off it.',
    ],
    ['Conflict', '{user} uses the address without authority', 'Take the address off that Service.'],
    [
      'AddressNotInLedger',
      '{address} is of class {class}, and nobody has recorded it',
      'Take the address off the Service, or bring it under the ledger.',
    ],
  ]),
];
