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
  ]),
];
