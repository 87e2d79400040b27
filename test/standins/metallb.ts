import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { Reflector } from '../../executor/kube/reflector.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { AdminClient } from '../apiserver/client.ts';
import { MetallbModel, type MetallbServer } from '../pure/addresses-metallb-model.ts';

/** MetalLB's controller, as the model of it, against a real API server; and definitions of its two kinds that let everything in. */

const definition = (kind: string, plural: string): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.metallb.io` },
  spec: {
    group: 'metallb.io',
    scope: 'Namespaced',
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

export const metallbDefinitions: readonly JsonObject[] = [
  definition('IPAddressPool', 'ipaddresspools'),
  definition('L2Advertisement', 'l2advertisements'),
];

const keyOf = (kind: string, { namespace, name }: { readonly namespace?: string; readonly name?: string }): string =>
  `${kind} ${namespace ?? ''}/${name ?? ''}`;

export interface StandinOptions {
  readonly client: KubeClient;
  readonly admin: AdminClient;
  /** Where its pools are. */
  readonly namespace: string;
}

/** Gives addresses to Services until the signal aborts. */
export async function runMetallb({ client, admin, namespace }: StandinOptions, signal: AbortSignal): Promise<void> {
  const objects = new Map<string, KubeObject>();
  const log: { type: 'seen' | 'deleted'; object: KubeObject }[] = [];
  const writing = new Set<Promise<unknown>>();
  const server: MetallbServer = {
    log,
    get: (ref) => objects.get(keyOf(ref.kind, ref)),
    list: (kind) => [...objects.values()].filter((one) => kind === undefined || one.kind === kind),
    updateStatus({ metadata }, status) {
      const path = `/api/v1/namespaces/${metadata.namespace}/services/${metadata.name}/status`;
      const body = { status: { loadBalancer: { ingress: null, ...(status.loadBalancer as JsonObject) } } };
      const write = admin
        .request('PATCH', path, { body, type: 'application/merge-patch+json' })
        .finally(() => writing.delete(write));
      writing.add(write);
    },
  };
  const model = new MetallbModel(server, namespace);
  const take = (type: 'seen' | 'deleted', object: KubeObject): void => {
    const key = keyOf(object.kind, object.metadata);
    if (type === 'seen') objects.set(key, object);
    else objects.delete(key);
    log.push({ type, object });
    if (ready.size === 2) while (model.step());
  };
  const ready = new Set<string>();
  const watch = (selection: { apiVersion: string; kind: string; namespace?: string }): Promise<void> =>
    new Reflector({
      client,
      clock: systemClock,
      random: Math.random,
      selection,
      handler: (event) => {
        if (event.type === 'synced') {
          ready.add(selection.kind);
          if (ready.size === 2) model.restart();
          while (ready.size === 2 && model.step());
        } else take(event.type === 'deleted' ? 'deleted' : 'seen', event.object);
      },
    }).run(signal);
  await Promise.all([
    watch({ apiVersion: 'v1', kind: 'Service' }),
    watch({ apiVersion: 'metallb.io/v1beta1', kind: 'IPAddressPool', namespace }),
  ]);
  await Promise.all(writing);
}
