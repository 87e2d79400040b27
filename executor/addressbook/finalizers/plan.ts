/**
 * The day the controllers of the ledger are gone for good: which finalizers nobody will take off any more, and what a driver
 * would have released and now is a person's. Pure.
 */
import { addressesGroup } from '../../../constructs/api/addresses.ts';
import { metallbAnnotations, metallbProvisioner, poolName } from '../../../constructs/api/metallb.ts';
import { type Digest, digestOf } from '../../../constructs/lib/digest.ts';
import { objectOf } from '../../../constructs/lib/json.ts';
import { type AddressView, claimKey, type LedgerKind, type LedgerView } from '../../addresses/objects.ts';
import { type Book, workloadOf } from '../book.ts';
import { type BalancedService, serviceName } from '../pins.ts';

export interface Stripping {
  readonly kind: LedgerKind;
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  readonly deleting: boolean;
  /** Finalizers of the core and of drivers. */
  readonly remove: readonly string[];
  /** Finalizers of others, which stay. */
  readonly keep: readonly string[];
}

/** What a driver would have released. */
export interface Leftover {
  readonly object: string;
  /** What it is, and what to do about it. */
  readonly what: string;
}

export interface StrippingPlan {
  readonly digest: Digest;
  /** Claims, then addresses, then classes: the order of a teardown. */
  readonly objects: readonly Stripping[];
  readonly leftovers: readonly Leftover[];
}

/** On a placeholder: the IPAddress that it holds. */
const addressLabel = `${metallbProvisioner}/ip-address`;

/**
 * Provisioners, by whose names drivers call their finalizers. Classes alone say them, and are there as long as an address of
 * theirs is: on a claim a tenant may have written whatever name.
 */
const provisionersOf = ({ classes }: Book): ReadonlySet<string> =>
  new Set(classes.map(({ provisioner }) => provisioner));

/** Whether a finalizer is of the core or of a driver. Those of others are theirs, on whatever day. */
function isOurs(finalizer: string, provisioners: ReadonlySet<string>): boolean {
  const owner = finalizer.split('/')[0] ?? '';
  return owner === addressesGroup || owner.endsWith(`.${addressesGroup}`) || (owner !== '' && provisioners.has(owner));
}

/** Finalizers of an object, divided into those of the ledger's controllers and those of others. */
function divided(finalizers: readonly string[], provisioners: ReadonlySet<string>): Pick<Stripping, 'remove' | 'keep'> {
  return {
    remove: finalizers.filter((one) => isOurs(one, provisioners)),
    keep: finalizers.filter((one) => !isOurs(one, provisioners)),
  };
}

function strippingOf(view: LedgerView, provisioners: ReadonlySet<string>): Stripping[] {
  const { kind, name, uid, deleting } = view;
  const parts = divided(view.finalizers, provisioners);
  if (parts.remove.length === 0) return [];
  return [
    { kind, ...(view.kind === 'IPAddressClaim' ? { namespace: view.namespace } : {}), name, uid, deleting, ...parts },
  ];
}

const pathOf = (view: LedgerView): string => (view.kind === 'IPAddressClaim' ? claimKey(view) : view.name);
const inOrder = <View extends LedgerView>(views: readonly View[]): View[] =>
  views.toSorted((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1));

/** What somebody outside of the cluster holds for an address. */
function reservationOf({ object, name, className }: AddressView): Leftover[] {
  const { id } = objectOf(objectOf(objectOf(object.spec).source).providerRef);
  return typeof id === 'string'
    ? [
        {
          object: `IPAddress ${name}`,
          what: `reservation ${id} at the provider of class ${className}: give it back there`,
        },
      ]
    : [];
}

function serviceLeftovers(service: BalancedService, { addresses }: Book): Leftover[] {
  const object = serviceName(service);
  const { labels = {}, annotations = {} } = service.object.metadata;
  if (service.placeholder) {
    const held = service.has.map(({ text }) => text).join(', ') || 'no address yet';
    const name = labels[addressLabel] ?? annotations[addressLabel];
    const of = name === undefined ? '' : ` for IPAddress ${name}`;
    return [{ object, what: `holds ${held}${of} in MetalLB: delete it, and others may get the address` }];
  }
  if (annotations[metallbAnnotations.pinned] !== 'true') return [];
  const uses = addresses.some((one) => {
    const workload = workloadOf(one);
    return workload?.namespace === service.namespace && workload.name === service.name;
  });
  const pin = annotations[metallbAnnotations.addresses] ?? '';
  return [
    {
      object,
      what: `is pinned to ${pin} by the driver${uses ? ', and uses it' : ''}: it keeps the address; take pin and mark off to let it go`,
    },
  ];
}

/** @param services every Service of type LoadBalancer. */
export function planStripping(book: Book, services: readonly BalancedService[]): StrippingPlan {
  const provisioners = provisionersOf(book);
  const views: LedgerView[] = [...inOrder(book.claims), ...inOrder(book.addresses), ...inOrder(book.classes)];
  const objects = views.flatMap((view) => strippingOf(view, provisioners));
  const leftovers = [
    ...services.flatMap((service) => serviceLeftovers(service, book)),
    ...inOrder(book.addresses).flatMap(reservationOf),
    ...inOrder(book.classes.filter(({ provisioner }) => provisioner === metallbProvisioner)).map(({ name }) => ({
      object: `IPAddressClass ${name}`,
      what: `its pool and advertisement ${poolName(name)} in MetalLB: they go with the class`,
    })),
  ];
  const digest = digestOf(objects.map(({ uid, remove }) => ({ uid, remove: [...remove] })));
  return { digest, objects, leftovers };
}
