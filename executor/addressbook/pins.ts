/** Services of type LoadBalancer as MetalLB reads them: what they are pinned to, and what they have. Pure. */
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbAnnotations, metallbLabels } from '../../constructs/api/metallb.ts';
import { type IPAddress, readIP } from '../../constructs/lib/ip.ts';
import { objectOf, objectsOf } from '../../constructs/lib/json.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';

/** MetalLB reads the older name where the newer one is absent; one that is there and empty hides it, and pins to nothing. */
const pinAnnotations: readonly string[] = [metallbAnnotations.addresses, 'metallb.universe.tf/loadBalancerIPs'];
const sharingAnnotations: readonly string[] = ['metallb.io/allow-shared-ip', 'metallb.universe.tf/allow-shared-ip'];
export const fieldPin = 'spec.loadBalancerIP';

/** What a Service asks MetalLB for. */
export type Pin =
  | { readonly type: 'none' }
  /** `where` is an annotation, or the field. */
  | { readonly type: 'one'; readonly where: string; readonly ip: IPAddress }
  | { readonly type: 'several'; readonly where: string; readonly ips: readonly IPAddress[] }
  /** MetalLB refuses it, or it is no address. `why` follows "the Service". */
  | { readonly type: 'unusable'; readonly where: string; readonly value: string; readonly why: string };

export interface BalancedService {
  readonly object: KubeObject;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly isLoadBalancer: boolean;
  readonly deleting: boolean;
  /** It holds an address for the driver, or says so: anybody may put the label on. */
  readonly placeholder: boolean;
  readonly pin: Pin;
  /** Addresses that it has. */
  readonly has: readonly IPAddress[];
  /** The claim that it names, in its namespace. */
  readonly claim: string | undefined;
  /** It may share its address. */
  readonly shares: boolean;
}

const wordsOf = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');

function pinOf(annotations: Readonly<Record<string, string>>, field: string): Pin {
  const first = pinAnnotations.find((one) => annotations[one] !== undefined);
  const key = first === undefined || annotations[first] === '' ? undefined : first;
  if (key === undefined && field === '') return { type: 'none' };
  const where = key ?? fieldPin;
  const value = key === undefined ? field : (annotations[key] ?? '');
  if (key !== undefined && field !== '')
    return { type: 'unusable', where, value, why: `is pinned by ${key} and by ${fieldPin}, which MetalLB refuses` };
  const ips = wordsOf(value).map(readIP);
  const read = ips.filter((ip) => ip !== undefined);
  const [ip, ...more] = read;
  if (ip === undefined || read.length < ips.length)
    return { type: 'unusable', where, value, why: `is pinned to what is no address` };
  return more.length === 0 ? { type: 'one', where, ip } : { type: 'several', where, ips: read };
}

export function readService(object: KubeObject): BalancedService {
  const { namespace = '', name = '', annotations = {}, labels = {}, deletionTimestamp } = object.metadata;
  const spec = objectOf(object.spec);
  const ingress = objectsOf(objectOf(objectOf(object.status).loadBalancer).ingress);
  const claim = annotations[addressAnnotations.claim] ?? '';
  return {
    object,
    namespace,
    name,
    uid: uidOf(object),
    isLoadBalancer: spec.type === 'LoadBalancer',
    deleting: typeof deletionTimestamp === 'string',
    placeholder: labels[metallbLabels.placeholder] === 'true',
    pin: pinOf(annotations, typeof spec.loadBalancerIP === 'string' ? spec.loadBalancerIP : ''),
    has: ingress.flatMap(({ ip }) => (typeof ip === 'string' ? (readIP(ip) ?? []) : [])),
    claim: claim === '' ? undefined : claim,
    shares: sharingAnnotations.some((key) => (annotations[key] ?? '') !== ''),
  };
}

export const serviceName = ({ namespace, name }: Pick<BalancedService, 'namespace' | 'name'>): string =>
  `Service ${namespace}/${name}`;

/** Whether a Service has an address now. */
export const hasAddress = ({ has }: BalancedService, ip: IPAddress): boolean =>
  has.some(({ text }) => text === ip.text);
