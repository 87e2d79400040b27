/** Placeholders: Services without a workload, by which MetalLB keeps an address for the ledger. Pure. */
import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import { metallbLabels, poolName } from '../../../constructs/api/metallb.ts';
import type { IPFamily } from '../../../constructs/lib/ip.ts';
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { AddressView } from '../objects.ts';
import type { Confirmation, LedgerPatch, OwnerReference } from '../plan.ts';
import { serviceRef } from './facts.ts';
import type { MetallbLedger } from './ledger.ts';
import {
  addressLabel,
  holdName,
  type MetallbSettings,
  pins,
  placeholderAnnotations,
  placeholderLabels,
} from './names.ts';
import { missingOwner } from './plan-class.ts';
import { type Action, normal, type Told, warning } from './tell.ts';
import type { ServiceView } from './views.ts';

interface Wanted {
  readonly name: string;
  readonly family: IPFamily;
  readonly className: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly owners?: readonly OwnerReference[];
}

/** A Service that takes an address and announces nothing, since it has no endpoints. */
export function placeholder(settings: MetallbSettings, wanted: Wanted): KubeObject {
  const { name, family, className, labels, annotations, owners } = wanted;
  const { lbClass, placeholderNamespace } = settings;
  const spec: JsonObject = {
    type: 'LoadBalancer',
    ports: [{ name: 'placeholder', port: 65_535, protocol: 'TCP' }],
    allocateLoadBalancerNodePorts: false,
    ipFamilyPolicy: 'SingleStack',
    ipFamilies: [family],
    ...(lbClass === undefined ? {} : { loadBalancerClass: lbClass }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace: placeholderNamespace,
      labels: { [metallbLabels.placeholder]: 'true', ...labels },
      annotations: { [placeholderAnnotations.pool]: poolName(className), ...annotations },
      ...(owners === undefined ? {} : { ownerReferences: [...owners] }),
    },
    spec,
  };
}

/** Label and annotations by which a placeholder is that of an address. */
export function linkTo(name: string, ip: string): Required<Pick<LedgerPatch, 'labels' | 'annotations'>> {
  const label = addressLabel(name);
  return {
    labels: { [placeholderLabels.address]: label },
    annotations: { [pins.own]: ip, ...(label === name ? {} : { [placeholderAnnotations.address]: name }) },
  };
}

export const ownerOf = ({ name, uid }: AddressView): OwnerReference => ({
  apiVersion: addressesApiVersion,
  kind: 'IPAddress',
  name,
  uid,
});

export const drop = (target: ServiceView, confirm: Action['confirm'] = []): Action => ({
  type: 'delete',
  target,
  confirm,
});

const firstAskMs = 30_000;
const longestAskMs = 3_600_000;

export interface Hold {
  readonly actions: readonly Action[];
  /** The placeholder that stays; undefined while it is made. */
  readonly keeper: ServiceView | undefined;
  readonly againMs?: number;
}

/** Exactly one placeholder of the address, pinned to it. */
export function holdOf(ledger: MetallbLedger, address: AddressView, now: number): Hold {
  const ip = address.ip?.text ?? '';
  const present = ledger.placeholdersOf(address.name);
  const live = present.filter(({ deleting }) => !deleting);
  const keeper = live.find(({ ingress }) => ingress.includes(ip)) ?? live[0];
  // One that goes still has its name.
  if (keeper === undefined) return { actions: present.length > 0 ? [] : [create(ledger, address)], keeper };
  // The one that stays is looked at first: it may be gone, or without the address, and the watch late.
  const stands: Confirmation[] = [{ type: 'version', ref: serviceRef(keeper) }];
  const surplus = live.filter((one) => one !== keeper).map((one) => drop(one, stands));
  const mended = mend(address, keeper);
  if (mended.length > 0 || keeper.ingress.includes(ip) || ledger.holding(ip).length > 0)
    return { actions: [...surplus, ...mended], keeper };
  const ask = askAgain(keeper, now);
  return {
    actions: [...surplus, ...ask.actions],
    keeper,
    ...(ask.againMs === undefined ? {} : { againMs: ask.againMs }),
  };
}

function create(ledger: MetallbLedger, address: AddressView): Action {
  const { name, className, ip } = address;
  const family = ip?.family ?? 'IPv4';
  const object = placeholder(ledger.settings, {
    name: holdName(name),
    family,
    className,
    ...linkTo(name, ip?.text ?? ''),
    owners: [ownerOf(address)],
  } as Wanted);
  const events = [normal(address, 'Held', { placeholder: holdName(name) })];
  const refused = (message: string): Told => warning(address, 'PlaceholderRefused', { family, message });
  return { type: 'create', object, events, refused };
}

/** What of a placeholder is not as it is to be: pin, pool, owner. */
function mend(address: AddressView, keeper: ServiceView): Action[] {
  const { name, className, ip } = address;
  const owners = missingOwner(keeper, ownerOf(address));
  const pool = poolName(className);
  // One that has the address keeps it where it is: by another pool MetalLB would take it away.
  const isPlaced = keeper.pool === pool || keeper.ingress.includes(ip?.text ?? '');
  const right = keeper.pinned.length === 1 && keeper.pinned[0] === ip?.text && isPlaced;
  if (right && owners === undefined) return [];
  const link = linkTo(name, ip?.text ?? '');
  const patch: LedgerPatch = {
    ...(right
      ? {}
      : {
          ...link,
          annotations: { ...link.annotations, ...(isPlaced ? {} : { [placeholderAnnotations.pool]: pool }) },
        }),
    ...(owners === undefined ? {} : { ownerReferences: owners }),
  };
  return [{ type: 'patch', target: keeper, patch }];
}

/**
 * Nobody has the address, and the placeholder does not get it: MetalLB looks again at who waits when a Service goes, and not
 * when one moves to another address. A change of the placeholder makes it look; the times between become longer.
 */
function askAgain(
  keeper: ServiceView,
  now: number,
): { readonly actions: readonly Action[]; readonly againMs?: number } {
  const [at = '', times = '0'] = (keeper.object.metadata.annotations?.[placeholderAnnotations.asked] ?? '').split(' ');
  const asked = Number(times) || 0;
  const since = Date.parse(at === '' ? keeper.createdAt : at);
  const left = (Number.isNaN(since) ? 0 : since) + Math.min(longestAskMs, firstAskMs * 2 ** Math.min(asked, 12)) - now;
  if (left > 0) return { actions: [], againMs: left };
  const note = `${new Date(now).toISOString()} ${asked + 1}`;
  const patch = { annotations: { [placeholderAnnotations.asked]: note } };
  return { actions: [{ type: 'patch', target: keeper, patch }], againMs: firstAskMs };
}
