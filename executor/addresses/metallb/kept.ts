/** What is kept of a Service: planners look at little of it, and there is one for each address. */
import { addressAnnotations } from '../../../constructs/api/addresses.ts';
import { metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { objectOf, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../kube/types.ts';
import { ownParts, withoutManagers } from '../client-api.ts';

const prefixes = [`${metallbProvisioner}/`, 'metallb.io/', 'metallb.universe.tf/', addressAnnotations.claim];
const isOurs = (key: string): boolean => prefixes.some((prefix) => key.startsWith(prefix));

type Texts = Readonly<Record<string, string>> | null | undefined;
const ours = (texts: Texts): Record<string, string> =>
  Object.fromEntries(Object.entries(texts ?? {}).filter(([key]) => isOurs(key)));

/** The object without what nobody here reads. */
export function kept(object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, spec, status } = withoutManagers(object);
  if (apiVersion !== 'v1' || kind !== 'Service') return ownParts(object);
  const { type, loadBalancerClass, loadBalancerIP, ipFamilies } = objectOf(spec);
  const ingress = objectsOf(objectOf(objectOf(status).loadBalancer).ingress).map(({ ip = '' }) => ({ ip }));
  return {
    apiVersion,
    kind,
    metadata: { ...metadata, labels: ours(metadata.labels), annotations: ours(metadata.annotations) },
    spec: {
      ...(type === undefined ? {} : { type }),
      ...(loadBalancerClass === undefined ? {} : { loadBalancerClass }),
      ...(loadBalancerIP === undefined ? {} : { loadBalancerIP }),
      ...(ipFamilies === undefined ? {} : { ipFamilies }),
    },
    ...(ingress.length === 0 ? {} : { status: { loadBalancer: { ingress } } }),
  };
}
