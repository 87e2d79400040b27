/** What a class says about its addresses. */
import { metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { byFamily, type IPBlock, readIPRange } from '../../../constructs/lib/ip.ts';
import { isObject, objectOf } from '../../../constructs/lib/json.ts';
import type { ClassView } from '../objects.ts';

/** Networks as they are written, and what they hold; or why they can not be used. */
export type ClassNetworks =
  | { readonly ok: true; readonly networks: readonly IPBlock[] }
  | { readonly ok: false; readonly why: string };

export const isServed = (found: ClassView | undefined): found is ClassView => found?.provisioner === metallbProvisioner;

/**
 * Reads a network as other programs do, bits of hosts included: classes of clusters were written for a reader that takes them.
 * A single address, or a range, is none; nor is a network of IPv4 that is written as one of IPv6.
 */
function readNetwork(text: string): IPBlock | undefined {
  const block = text.includes('/') && text === text.trim() ? readIPRange(text) : undefined;
  return block !== undefined && byFamily(block)[0] === block ? block : undefined;
}

/** The networks of a class. All of them can be read, or none is used. */
export function networksOf({ object }: ClassView): ClassNetworks {
  const { parameters } = objectOf(object.spec);
  if (!isObject(parameters)) return { ok: false, why: 'they are no object with addresses' };
  const { addresses } = parameters;
  if (!Array.isArray(addresses) || addresses.length === 0)
    return { ok: false, why: 'addresses is no list of networks' };
  const networks = addresses.map((one) => (typeof one === 'string' ? readNetwork(one) : undefined));
  const wrong = addresses.filter((_, n) => networks[n] === undefined);
  if (wrong.length > 0)
    return { ok: false, why: `${wrong.map((one) => JSON.stringify(one)).join(', ')} is no network` };
  return { ok: true, networks: networks.filter((one) => one !== undefined) };
}

/** Whether one network is within another. */
export const isWithin = (inner: IPBlock, outer: IPBlock): boolean =>
  inner.family === outer.family && outer.first <= inner.first && inner.last <= outer.last;
