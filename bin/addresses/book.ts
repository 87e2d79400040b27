import type { Book } from '../../executor/addressbook/book.ts';
import { readBook } from '../../executor/addressbook/read.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { FailedWithProblems } from '../failure.ts';

/** The whole ledger. @throws FailedWithProblems when the cluster has none, or it can not be read. */
export async function requireBook(client: KubeClient, signal: AbortSignal): Promise<Book> {
  const read = await readBook(client, signal);
  if (read.type === 'read') return read.book;
  throw new FailedWithProblems([
    read.type === 'absent'
      ? {
          reason: 'LedgerAbsent',
          message: 'the cluster does not know the kinds of the address ledger',
          remedy: 'deliver an IPAddressClass from Git: its definitions come along',
        }
      : { reason: 'LedgerUnread', message: read.message, remedy: 'use an account that may list them' },
  ]);
}
