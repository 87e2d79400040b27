import { addressesApiVersion } from '../../constructs/api/addresses.ts';
import type { LedgerKind } from '../addresses/objects.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { type Book, bookOf } from './book.ts';

export type BookRead =
  | { readonly type: 'read'; readonly book: Book }
  /** The cluster has no ledger: it does not serve the kinds. */
  | { readonly type: 'absent' }
  | { readonly type: 'failed'; readonly message: string };

const kinds: readonly LedgerKind[] = ['IPAddressClass', 'IPAddress', 'IPAddressClaim'];

/** Everything in the ledger, uncached. */
export async function readBook(client: KubeClient, signal: AbortSignal): Promise<BookRead> {
  const objects: KubeObject[] = [];
  for (const kind of kinds) {
    const listed = await client.list({ apiVersion: addressesApiVersion, kind }, { signal });
    if (listed.type === 'kindAbsent') return { type: 'absent' };
    if (listed.type !== 'listed') return { type: 'failed', message: listed.message };
    for (const item of listed.items) objects.push(item);
  }
  return { type: 'read', book: bookOf(objects) };
}
