/** What the address ledger keeps in a cluster: told by its kind, by the mark of the driver, or by who owns it. Pure. */
import { addressesGroup } from '../../constructs/api/addresses.ts';
import { metallbLabels } from '../../constructs/api/metallb.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { ObjectMeta } from '../kube/types.ts';

/** Placeholders, and what the driver has made of a class or an address: whoever wrote them first, they are the ledger's now. */
export function isRuntime({ labels, ownerReferences }: ObjectMeta): boolean {
  if (labels?.[metallbLabels.placeholder] !== undefined) return true;
  const owners = Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : [];
  return owners.some(({ apiVersion }) => groupOf(String(apiVersion)) === addressesGroup);
}
