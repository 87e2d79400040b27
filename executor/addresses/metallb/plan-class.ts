/** What the driver does about a class: a pool with its networks, and an advertisement of that pool. Pure. */
import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import { poolName } from '../../../constructs/api/metallb.ts';
import { holdsIP, type IPBlock, readIP, readIPRange } from '../../../constructs/lib/ip.ts';
import { deepEqual, type JsonObject, objectOf, objectsOf } from '../../../constructs/lib/json.ts';
import type { ClassView } from '../objects.ts';
import { nothing, type OwnerReference } from '../plan.ts';
import type { MetallbLedger } from './ledger.ts';
import { metallbVersion } from './names.ts';
import { isServed, isWithin, networksOf } from './parameters.ts';
import { type Action, type Plan, type Told, warning } from './tell.ts';
import type { AnyView, RenderedView } from './views.ts';

/** One pass over a class, given by name. */
export function planClass(ledger: MetallbLedger, name: string): Plan {
  const found = ledger.class(name);
  // What a class that goes has made, goes with it: it owns that.
  if (!isServed(found) || found.deleting) return nothing;
  const read = networksOf(found);
  if (!read.ok) return { actions: [], warnings: [warning(found, 'InvalidClassParameters', { why: read.why })] };
  const kept = stillUsed(ledger, found, read.networks);
  const wanted = read.networks.filter((one) => !kept.some((network) => isWithin(one, network)));
  const addresses = [...wanted, ...kept].map(({ text }) => text);
  const networks = kept.map(({ text }) => text).join(', ');
  return {
    actions: [
      ...rendered(ledger, found, 'IPAddressPool', { addresses, autoAssign: false }),
      ...rendered(ledger, found, 'L2Advertisement', { ipAddressPools: advertised(ledger, found) }),
    ],
    warnings: kept.length === 0 ? [] : [warning(found, 'ClassRangeInUse', { networks })],
  };
}

/**
 * Networks of the pool that the class has no more, and that addresses of the ledger are in, or those that a placeholder was just
 * given and that are not recorded yet: MetalLB would take such an address from whoever uses it, and give it away.
 */
function stillUsed(ledger: MetallbLedger, found: ClassView, wanted: readonly IPBlock[]): IPBlock[] {
  const list = ledger.rendered('IPAddressPool', found.name)?.list ?? [];
  const surplus = list
    .map(readIPRange)
    .filter((one) => one !== undefined)
    .filter((one) => !wanted.some(({ text }) => text === one.text));
  if (surplus.length === 0) return [];
  const used = [
    ...ledger.addressesOfClass(found.name).map(({ ip }) => ip),
    ...ledger.unrecordedOf(found.name).flatMap(({ ingress }) => ingress.map(readIP)),
  ];
  const left = used.flatMap((ip) => (ip === undefined || wanted.some((one) => holdsIP(one, ip)) ? [] : [ip]));
  return surplus.filter((one) => left.some((ip) => holdsIP(one, ip)));
}

/** The pools of the advertisement, ours among them; what an administrator added stays. */
function advertised(ledger: MetallbLedger, { name }: ClassView): string[] {
  const list = ledger.rendered('L2Advertisement', name)?.list ?? [];
  return list.includes(poolName(name)) ? [...list] : [...list, poolName(name)];
}

const ownerOf = ({ name, uid }: ClassView): OwnerReference => ({
  apiVersion: addressesApiVersion,
  kind: 'IPAddressClass',
  name,
  uid,
});

/** One object of the class with the fields that are ours; all others are an administrator's. */
function rendered(ledger: MetallbLedger, owner: ClassView, kind: RenderedView['kind'], spec: JsonObject): Action[] {
  const present = ledger.rendered(kind, owner.name);
  const refused = (message: string): Told => warning(owner, 'PoolRefused', { message });
  if (present === undefined) {
    const metadata = {
      name: poolName(owner.name),
      namespace: ledger.settings.metallbNamespace,
      ownerReferences: [ownerOf(owner)],
    };
    return [{ type: 'create', object: { apiVersion: metallbVersion, kind, metadata, spec }, refused }];
  }
  if (present.deleting) return [];
  const live = objectOf(present.object.spec);
  const same = Object.keys(spec).every((key) => deepEqual(live[key], spec[key]));
  const owners = missingOwner(present, ownerOf(owner));
  if (same && owners === undefined) return [];
  const patch = { ...(same ? {} : { spec }), ...(owners === undefined ? {} : { ownerReferences: owners }) };
  return [{ type: 'patch', target: present, patch, refused }];
}

/** All owners with the one that is missing; undefined: it is there. One of the same name with another UID is gone. */
export function missingOwner({ object }: AnyView, owner: OwnerReference): OwnerReference[] | undefined {
  const owners = objectsOf(object.metadata.ownerReferences) as OwnerReference[];
  if (owners.some(({ uid }) => uid === owner.uid)) return undefined;
  return [...owners.filter(({ kind, name }) => kind !== owner.kind || name !== owner.name), owner];
}
