/** Admission in the way of a write: which webhook, why, and what stands behind it. Pure but for one look at endpoints. */
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';

/** A Service that a webhook is served by. */
export interface ServiceRef {
  readonly namespace: string;
  readonly name: string;
}

export interface WebhookTrouble {
  readonly webhook: string;
  readonly service?: ServiceRef;
  /** What the API server says of it. */
  readonly said: string;
}

/** A webhook that could not be called, as the words of the API server tell it; undefined when they tell something else. */
export function webhookTrouble(message: string): WebhookTrouble | undefined {
  const [, webhook, said = ''] = /failed calling webhook "([^"]+)": ?(.*)/s.exec(message) ?? [];
  if (webhook === undefined) return undefined;
  const [, name, namespace] = /https:\/\/([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]/.exec(said) ?? [];
  return {
    webhook,
    said,
    ...(name === undefined || namespace === undefined ? {} : { service: { namespace, name } }),
  };
}

/** Whether an answer to a dry run says that a webhook can not take part in one. */
export const isUndryable = (message: string): boolean => /does not support dry run/.test(message);

/** Whether admission denied a request: a webhook, or a policy of the cluster. */
export const isDenied = (message: string): boolean =>
  /admission webhook "[^"]+" denied the request|ValidatingAdmissionPolicy '[^']+' .*denied request/s.test(message);

const webhookKinds: readonly string[] = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'];

/** Services that must answer once this object is written: those behind webhooks that fail closed. */
export function neededServices(object: KubeObject): ServiceRef[] {
  if (!webhookKinds.includes(object.kind)) return [];
  const webhooks = (Array.isArray(object.webhooks) ? object.webhooks : []).filter(isObject);
  const services = webhooks.filter(({ failurePolicy }) => failurePolicy !== 'Ignore').flatMap(serviceOf);
  return [...new Map(services.map((service) => [`${service.namespace}/${service.name}`, service])).values()];
}

function serviceOf({ clientConfig }: JsonObject): ServiceRef[] {
  const service = isObject(clientConfig) && isObject(clientConfig.service) ? clientConfig.service : {};
  const { namespace, name } = service;
  return typeof namespace === 'string' && typeof name === 'string' ? [{ namespace, name }] : [];
}

/** Whether anything ready stands behind a Service: `unknown` where that may not, or can not be read. */
export async function servedBy(
  client: KubeClient,
  { namespace, name }: ServiceRef,
  signal: AbortSignal,
): Promise<
  { readonly type: 'ready' | 'none' } | { readonly type: 'unknown'; readonly message: string; readonly denied: boolean }
> {
  const slices = await client.list(
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      namespace,
      labelSelector: `kubernetes.io/service-name=${name}`,
    },
    { signal },
  );
  if (slices.type !== 'listed')
    return { type: 'unknown', message: slices.message, denied: slices.type === 'forbidden' };
  const endpoints = slices.items.flatMap(({ endpoints: all }) => (Array.isArray(all) ? all.filter(isObject) : []));
  const ready = endpoints.some(({ conditions }) => !isObject(conditions) || conditions.ready !== false);
  return { type: ready ? 'ready' : 'none' };
}

/** What blocks a write, in words that name webhook and Service. */
export async function explainWebhook(
  client: KubeClient,
  { webhook, service, said }: WebhookTrouble,
  signal: AbortSignal,
): Promise<string> {
  if (service === undefined) return `blocked by webhook ${webhook}: ${said}`;
  const served = await servedBy(client, service, signal);
  const state = served.type === 'none' ? 'has no ready endpoints' : 'does not answer';
  return `blocked by webhook ${webhook} (Service ${service.namespace}/${service.name} ${state})`;
}
