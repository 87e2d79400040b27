import type { Problem } from '../../constructs/lib/problems.ts';
import type { Book } from '../../executor/addressbook/book.ts';
import { type BookRead, readBook } from '../../executor/addressbook/read.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { FailedWithProblems } from '../failure.ts';

/** Why there is nothing to look at. */
export const readProblem = (read: Exclude<BookRead, { type: 'read' }>): Problem =>
  read.type === 'absent'
    ? {
        reason: 'LedgerAbsent',
        message: 'the cluster does not know the kinds of the address ledger',
        remedy: 'deliver an IPAddressClass from Git: its definitions come along',
      }
    : { reason: 'LedgerUnread', message: read.message, remedy: 'use an account that may list what is named' };

/** The whole ledger. @throws FailedWithProblems when the cluster has none, or it can not be read. */
export async function requireBook(client: KubeClient, signal: AbortSignal): Promise<Book> {
  const read = await readBook(client, signal);
  if (read.type === 'read') return read.book;
  throw new FailedWithProblems([readProblem(read)]);
}
