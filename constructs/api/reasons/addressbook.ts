import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of `keelson addresses`: why something is not shown, or not done. Nothing was written. */
export const addressbookReasons: readonly Reason[] = [
  ...reasonsOf('Input', 'error', 'terminal', [
    [
      'LedgerAbsent',
      'the cluster does not know the kinds of the address ledger',
      'Deliver an IPAddressClass from Git; its definitions come along.',
    ],
    ['LedgerUnread', 'the address ledger can not be read: {message}', 'Use an account that may list its kinds.'],
    ['ServiceNotAdoptable', '{service} can not be adopted: {why}', 'Adopt a Service that MetalLB gave its address.'],
    ['PinUnusable', '{service} is not pinned to one address that it has', 'Pin it to the address that it has.'],
    ['ClassUnusable', 'class {class} can not have the address: {why}', 'Name another class, or deliver one.'],
    ['AddressTaken', 'IPAddress {address} is not free: {why}', 'Free the address, or leave it where it is.'],
    ['ClaimTaken', 'claim {claim} is another one: {why}', 'Name another claim.'],
    [
      'StepRefused',
      '{step} was refused: {message}',
      'Do what the message asks for, and run the command again; it goes on where it was.',
    ],
    [
      'ControllerRuns',
      '{holder} holds a Lease of the address ledger: a controller runs',
      'Delete claims, addresses and classes in this order while it runs.',
    ],
    [
      'AuditUnwritable',
      'the record of what is done can not be written: {message}',
      'Name another file with --audit; nothing is written to the cluster without a record.',
    ],
    [
      'PlanNotApproved',
      'the plan is {digest}, not the one that was approved',
      'Look at the plan again, and approve it.',
    ],
  ]),
];
