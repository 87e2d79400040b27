/** Objects of the driver as its planners see them. */
import { addressAnnotations } from '../../../constructs/api/addresses.ts';
import { metallbAnnotations, metallbLabels } from '../../../constructs/api/metallb.ts';
import { readIP } from '../../../constructs/lib/ip.ts';
import { type JsonValue, objectOf, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../kube/types.ts';
import { claimKey, type LedgerView, type View, viewOf } from '../objects.ts';
import {
  type MetallbSettings,
  metallbVersion,
  noPool,
  pins,
  placeholderAnnotations,
  placeholderLabels,
  pools,
  releasing,
} from './names.ts';

/** What makes a Service one of ours. */
export interface Placeholder {
  /** Name of the IPAddress that it is for; undefined before MetalLB has chosen. */
  readonly address: string | undefined;
  /** `<namespace>/<name>` of the claim that it was made for. */
  readonly claim: string | undefined;
}

export interface ServiceView extends View {
  readonly kind: 'Service';
  readonly namespace: string;
  readonly type: string;
  readonly lbClass: string;
  readonly families: readonly string[];
  readonly loadBalancerIP: string;
  /** Canonical texts of the addresses that MetalLB gave it. */
  readonly ingress: readonly string[];
  /** `<namespace>/<name>` of the claim that it names. */
  readonly claim: string | undefined;
  /** The pin as it is written; undefined: none. */
  readonly pin: string | undefined;
  /** Canonical texts of the addresses of the pin. */
  readonly pinned: readonly string[];
  /** What it asks MetalLB for: addresses, or while it has none whatever a pool has (`pool <name>`). */
  readonly asks: readonly string[];
  /** Says that its pin is the driver's. */
  readonly marked: boolean;
  readonly pool: string;
  /** Its addresses are being taken away from it. */
  readonly releasing: boolean;
  readonly createdAt: string;
  readonly placeholder: Placeholder | undefined;
}

/** A pool of a class, or its advertisement. */
export interface RenderedView extends View {
  readonly kind: 'IPAddressPool' | 'L2Advertisement';
  readonly namespace: string;
  /** The class that it is owned by; empty: none. */
  readonly className: string;
  /** Networks of a pool, pools of an advertisement. */
  readonly list: readonly string[];
}

export type DriverView = ServiceView | RenderedView;
export type AnyView = LedgerView | DriverView;

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
const textsOf = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

/** One for each family. */
const mostPinned = 2;

/**
 * The addresses that a pin asks for, as they are written canonically; what can not be read stays as it is. One that names more
 * than MetalLB gives asks for none: MetalLB refuses it, and it may be as long as an annotation is.
 */
function canonical(list: string): string[] {
  const words = list.split(',', mostPinned + 1).map((one) => one.trim());
  if (words.length > mostPinned) return [];
  return words.filter((one) => one !== '').map((one) => readIP(one)?.text ?? one);
}

const asksOf = ({ pinned, loadBalancerIP, pool, ingress }: Omit<ServiceView, 'asks'>): readonly string[] => {
  if (pinned.length > 0) return pinned;
  if (loadBalancerIP !== '') return canonical(loadBalancerIP);
  return pool !== '' && ingress.length === 0 ? [`pool ${pool}`] : [];
};

/** Label and namespace: the label alone is anybody's. */
function placeholderOf(object: KubeObject, settings: MetallbSettings): Placeholder | undefined {
  const { labels = {}, annotations = {}, namespace } = object.metadata;
  if (labels[metallbLabels.placeholder] !== 'true' || namespace !== settings.placeholderNamespace) return undefined;
  const name = annotations[placeholderAnnotations.claimName];
  return {
    address: annotations[placeholderAnnotations.address] ?? labels[placeholderLabels.address],
    claim:
      name === undefined
        ? undefined
        : claimKey({ namespace: annotations[placeholderAnnotations.claimNamespace] ?? '', name }),
  };
}

function readService(object: KubeObject, settings: MetallbSettings): ServiceView {
  const { annotations = {}, namespace = '' } = object.metadata;
  const [spec, balancer] = [objectOf(object.spec), objectOf(objectOf(object.status).loadBalancer)];
  const claim = annotations[addressAnnotations.claim];
  // An empty one hides the older name, and pins to nothing.
  const pin = (annotations[pins.own] ?? annotations[pins.old]) || undefined;
  const pool = annotations[pools.own] ?? annotations[pools.old] ?? '';
  const view: Omit<ServiceView, 'asks'> = {
    ...viewOf(object),
    kind: 'Service',
    namespace,
    type: text(spec.type),
    lbClass: text(spec.loadBalancerClass),
    families: textsOf(spec.ipFamilies),
    loadBalancerIP: text(spec.loadBalancerIP),
    ingress: objectsOf(balancer.ingress)
      .map((one) => text(one.ip))
      .filter((one) => one !== '')
      .map((one) => readIP(one)?.text ?? one),
    claim: claim === undefined || claim === '' ? undefined : claimKey({ namespace, name: claim }),
    pin,
    pinned: pin === undefined ? [] : canonical(pin),
    marked: annotations[metallbAnnotations.pinned] === 'true',
    pool,
    releasing: annotations[releasing] === 'true' && pool === noPool,
    createdAt: text(object.metadata.creationTimestamp ?? undefined),
    placeholder: placeholderOf(object, settings),
  };
  return { ...view, asks: asksOf(view) };
}

function readRendered(object: KubeObject, kind: RenderedView['kind']): RenderedView {
  const spec = objectOf(object.spec);
  const owner = objectsOf(object.metadata.ownerReferences).find((one) => one.kind === 'IPAddressClass');
  return {
    ...viewOf(object),
    kind,
    namespace: object.metadata.namespace ?? '',
    className: text(owner?.name),
    list: textsOf(kind === 'IPAddressPool' ? spec.addresses : spec.ipAddressPools),
  };
}

/** The view of an object that the driver looks at besides those of the ledger. */
export function readDriverObject(object: KubeObject, settings: MetallbSettings): DriverView | undefined {
  const { apiVersion, kind, metadata } = object;
  if (apiVersion === 'v1' && kind === 'Service') return readService(object, settings);
  if (apiVersion !== metallbVersion || metadata.namespace !== settings.metallbNamespace) return undefined;
  return kind === 'IPAddressPool' || kind === 'L2Advertisement' ? readRendered(object, kind) : undefined;
}

/** `<namespace>/<name>` of a Service. */
export const serviceKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;
