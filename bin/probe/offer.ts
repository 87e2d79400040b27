import { makeOffer } from '../../probes/server/offer.ts';
import type { OfferOrder } from '../../probes/server/offer-process.ts';

/** `keelson probe offer`: makes a key for the probe that started this, and prints it to that probe alone. */
export async function offer(input: AsyncIterable<string | Uint8Array>, now: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk));
  const { identity, addresses } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as OfferOrder;
  return JSON.stringify(await makeOffer(identity, addresses, now));
}
