import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import type { ApiServer } from '../apiserver/server.ts';
import { until } from './kubeBed.ts';

export const pinKey = 'metallb.io/loadBalancerIPs';
export const poolKey = 'metallb.io/address-pool';

interface ServiceInput {
  readonly annotations?: Readonly<Record<string, string>>;
  /** Merged into a spec with one port and one family, IPv4. */
  readonly spec?: JsonObject;
}

/** Services of type LoadBalancer in one namespace, and what MetalLB made of them. */
export interface Services {
  readonly namespace: string;
  create(name: string, input?: ServiceInput): Promise<void>;
  /** Sets annotations; null takes one away. */
  annotate(name: string, annotations: Readonly<Record<string, string | null>>): Promise<void>;
  patch(name: string, body: JsonObject): Promise<void>;
  remove(name: string): Promise<void>;
  get(name: string): Promise<{ readonly annotations: Readonly<Record<string, string>>; readonly ips: string[] }>;
  list(): Promise<KubeObject[]>;
  /** Waits until a Service has exactly these addresses, in this order. */
  has(name: string, ...ips: readonly string[]): Promise<void>;
  /** Waits for an Event of a Service and returns its message. */
  event(name: string, reason: string): Promise<string>;
}

export async function services({ admin }: ApiServer): Promise<Services> {
  const namespace = await freshNamespace(admin, 'tenant');
  const collection = `/api/v1/namespaces/${namespace}/services`;
  const patch = async (name: string, body: JsonObject): Promise<void> => {
    await admin.expect('PATCH', `${collection}/${name}`, { body, type: 'application/merge-patch+json' });
  };
  const get: Services['get'] = async (name) => {
    const { body } = await admin.expect('GET', `${collection}/${name}`);
    const ingress = (body.status.loadBalancer?.ingress ?? []) as { ip: string }[];
    return { annotations: body.metadata.annotations ?? {}, ips: ingress.map(({ ip }) => ip) };
  };
  return {
    namespace,
    patch,
    get,
    async create(name, { annotations = {}, spec = {} } = {}) {
      const whole = {
        type: 'LoadBalancer',
        ports: [{ name: 'placeholder', port: 65_535, protocol: 'TCP' }],
        allocateLoadBalancerNodePorts: false,
        ipFamilyPolicy: 'SingleStack',
        ipFamilies: ['IPv4'],
        ...spec,
      };
      const body = { apiVersion: 'v1', kind: 'Service', metadata: { name, annotations }, spec: whole };
      await admin.expect('POST', collection, { body });
    },
    annotate: (name, annotations) => patch(name, { metadata: { annotations } }),
    async remove(name) {
      await admin.expect('DELETE', `${collection}/${name}`);
    },
    async list() {
      const { body } = await admin.expect('GET', collection);
      return (body.items as KubeObject[]).map((one) => ({ ...one, apiVersion: 'v1', kind: 'Service' }));
    },
    async has(name, ...ips) {
      let last: string[] = [];
      await until(`${name} to have ${ips.join(', ') || 'no address'}`, async () => {
        last = (await get(name)).ips;
        return last.join() === ips.join();
      }).catch((error: Error) => {
        throw new Error(`${error.message}; it has ${last.join(', ') || 'none'}`);
      });
    },
    async event(name, reason) {
      let message = '';
      await until(`Event ${reason} of ${name}`, async () => {
        const query = { fieldSelector: `involvedObject.name=${name},reason=${reason}` };
        const { body } = await admin.expect('GET', `/api/v1/namespaces/${namespace}/events`, { query });
        const last = (body.items as { message: string }[]).at(-1);
        message = last?.message ?? '';
        return last !== undefined;
      });
      return message;
    },
  };
}
