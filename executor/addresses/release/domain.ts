/** The domain of the address ledger, as the Release worker sees it. The role itself works beside it, from objects alone. */
import type { Domain } from '../../release/domain.ts';
import { freeChanges } from '../../release/free-changes.ts';
import { admitLedger, type LedgerSnapshot } from './admit.ts';
import { takeLedger } from './snapshot.ts';

export const addressesDomain: Domain<LedgerSnapshot | undefined> = {
  name: 'addresses',
  // What is accepted stays enforced, whatever comes into the ledger.
  prepare: ({ purpose }, { client, signal }) =>
    purpose === 'accept' ? takeLedger(client, signal) : Promise.resolve({ snapshot: undefined, problems: [] }),
  admit: ({ objects, previous }, snapshot) =>
    snapshot === undefined ? [] : admitLedger(objects, previous?.objects, snapshot),
  ...freeChanges,
};
