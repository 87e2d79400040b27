/** The domain of the address ledger, as the Release worker sees it. The role itself works beside it, from objects alone. */
import { classifyManifests } from '../../../constructs/api/plan.ts';
import { bindsNothing } from '../../apply/bind.ts';
import type { Domain, WriteGuard } from '../../release/domain.ts';
import { admitLedger, type LedgerSnapshot } from './admit.ts';
import { takeLedger } from './snapshot.ts';

/** What is written are rights and policies: the Lease of the executor is all that they need. */
const openGuard: WriteGuard = { check: () => undefined, release: () => Promise.resolve() };

export const addressesDomain: Domain<LedgerSnapshot | undefined> = {
  name: 'addresses',
  // What is accepted stays enforced, whatever comes into the ledger.
  prepare: ({ purpose }, { client, signal }) =>
    purpose === 'accept' ? takeLedger(client, signal) : Promise.resolve({ snapshot: undefined, problems: [] }),
  admit: ({ objects, previous }, snapshot) =>
    snapshot === undefined ? [] : admitLedger(objects, previous?.objects, snapshot),
  classify: ({ previous, content }, actions) => ({
    verdict: 'allowed',
    changeClass: classifyManifests(previous?.content, content, actions),
  }),
  bind: () => bindsNothing,
  gate: () => undefined,
  beforeFirstWrite: () => Promise.resolve([]),
  guard: () => Promise.resolve({ granted: true, guard: openGuard }),
};
