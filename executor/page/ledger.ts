import { addressesRelease } from '../../constructs/api/addresses.ts';
import { BookWatch, type BookWatchOptions } from '../addressbook/watch.ts';
import type { Board } from './board.ts';

export interface ShownLedger extends Omit<BookWatchOptions, 'wanted' | 'onProblem'> {
  readonly log: (level: 'warn', message: string) => void;
}

/** Lets a board know of the address ledger during a term. Whoever delivers the ledger lets it be looked at as well. */
export async function showLedger(board: Board, { log, ...options }: ShownLedger, signal: AbortSignal): Promise<void> {
  const book = new BookWatch({
    ...options,
    wanted: () => board.hasRelease(addressesRelease),
    onProblem: (message) => log('warn', `the address ledger is not shown: ${message}`),
  });
  board.watch({ addresses: () => book.summary() });
  await book.run(signal);
}
