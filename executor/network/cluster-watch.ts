/** What rounds of observation need to know of the cluster, kept by watches: a round itself costs the API server nothing. */
import { networkProbe } from '../../constructs/api/constants.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { type JsonObject, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, type ReflectorEvent, type ReflectorTimings } from '../kube/reflector.ts';
import type { KindRef, KubeObject } from '../kube/types.ts';
import { type ClusterLook, nodeFactsOf } from '../observe/expect.ts';

export interface ClusterWatchOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Where the workloads of networks are. */
  readonly namespaces: readonly string[];
  readonly timings?: Partial<ReflectorTimings>;
  /** Told of everything about a node that may change where something runs, or whether it does. */
  readonly onNode: () => void;
  /** Told of everything that may change where packets to the Service of the network probe go. */
  readonly onService: () => void;
  readonly onProblem: (message: string) => void;
}

const kinds = {
  deployments: { apiVersion: 'apps/v1', kind: 'Deployment' },
  statefulSets: { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  daemonSets: { apiVersion: 'apps/v1', kind: 'DaemonSet' },
  replicaSets: { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
  pods: { apiVersion: 'v1', kind: 'Pod' },
  nodes: { apiVersion: 'v1', kind: 'Node' },
  claims: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  services: { apiVersion: 'v1', kind: 'Service' },
} as const satisfies Readonly<Record<keyof ClusterLook, KindRef>>;
/** Only news of them count: what a Service leads to, packets show. One watch for the probe's own, whatever their number. */
const endpoints = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  labelSelector: `kubernetes.io/service-name=${networkProbe.service}`,
} as const;
const keys = Object.keys(kinds) as (keyof ClusterLook)[];

/** Of what is kept by the thousand only what a round reads. */
export const slim: Partial<Record<keyof ClusterLook, (object: KubeObject) => KubeObject>> = {
  pods(pod) {
    const { namespace, name, uid, resourceVersion, creationTimestamp, deletionTimestamp, ownerReferences } =
      pod.metadata;
    const { nodeName, containers, volumes } = pod.spec ?? {};
    const { phase, podIPs, conditions, containerStatuses } = pod.status ?? {};
    const mounted = objectsOf(containers).map((container) => ({
      name: container.name,
      volumeMounts: container.volumeMounts,
    }));
    return bare({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: bare({ namespace, name, uid, resourceVersion, creationTimestamp, deletionTimestamp, ownerReferences }),
      spec: bare({ nodeName, containers: mounted, volumes }),
      status: bare({
        phase,
        podIPs,
        conditions: objectsOf(conditions).filter(({ type }) => type === 'PodScheduled'),
        containerStatuses: objectsOf(containerStatuses).map(({ name: container, containerID, imageID, restartCount }) =>
          bare({ name: container, containerID, imageID, restartCount }),
        ),
      }),
    }) as KubeObject;
  },
  nodes(node) {
    const { name, uid, resourceVersion, labels } = node.metadata;
    const { addresses, conditions } = node.status ?? {};
    return bare({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: bare({ name, uid, resourceVersion, labels }),
      spec: bare({ unschedulable: node.spec?.unschedulable }),
      status: bare({
        addresses,
        conditions: objectsOf(conditions)
          .filter(({ type }) => type === 'Ready')
          .map(({ type, status }) => ({ type, status })),
      }),
    }) as KubeObject;
  },
  replicaSets: ({ apiVersion, kind, metadata }) => {
    const { namespace, name, uid, resourceVersion, ownerReferences } = metadata;
    return {
      apiVersion,
      kind,
      metadata: bare({ namespace, name, uid, resourceVersion, ownerReferences }),
    } as KubeObject;
  },
};

/** Of an EndpointSlice where packets go; not when that was last written. */
function slimSlice({ apiVersion, kind, metadata, ports, endpoints: all }: KubeObject): KubeObject {
  const { namespace, name, uid, resourceVersion } = metadata;
  const places = objectsOf(all).map(({ addresses, conditions, targetRef }) =>
    bare({ addresses, conditions, targetRef }),
  );
  return bare({
    apiVersion,
    kind,
    metadata: bare({ namespace, name, uid, resourceVersion }),
    ports,
    endpoints: places,
  }) as KubeObject;
}

function bare<T extends JsonObject>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

/** Whether a change of a node is more than its heartbeat: creation, deletion, labels, addresses, readiness, schedulability. */
export function nodeMatters(event: ReflectorEvent): boolean {
  if (event.type === 'synced') return false;
  if (event.type !== 'modified') return true;
  const what = (node: KubeObject): string => JSON.stringify([nodeFactsOf(node), node.metadata.labels ?? {}]);
  return what(event.object) !== what(event.previous);
}

/** Whether a change of a Service or an EndpointSlice may send packets of the network probe elsewhere. */
export function serviceMatters(event: ReflectorEvent): boolean {
  if (event.type === 'synced') return false;
  const { object } = event;
  if (object.kind === 'Service' && object.metadata.name !== networkProbe.service) return false;
  const what = ({ spec, ports, endpoints: places }: KubeObject): string => JSON.stringify([spec, ports, places]);
  return event.type !== 'modified' || what(object) !== what(event.previous);
}

export class ClusterWatch {
  readonly #reflectors: readonly (readonly [key: keyof ClusterLook, Reflector])[];
  readonly #endpoints: readonly Reflector[];

  constructor(options: ClusterWatchOptions) {
    const { namespaces, timings, onNode, onService, onProblem, ...edge } = options;
    const common = {
      ...edge,
      onProblem: ({ message }: { readonly message: string }) => onProblem(message),
      ...(timings === undefined ? {} : { timings }),
    };
    const news = (event: ReflectorEvent): void => {
      if (serviceMatters(event)) onService();
    };
    this.#endpoints = namespaces.map(
      (namespace) =>
        new Reflector({ ...common, selection: { ...endpoints, namespace }, transform: slimSlice, handler: news }),
    );
    const reflectorOf = (key: keyof ClusterLook, place: { readonly namespace?: string }): Reflector => {
      const transform = slim[key];
      return new Reflector({
        ...common,
        selection: { ...kinds[key], ...place },
        handler: (event) => {
          if (key === 'nodes' && nodeMatters(event)) onNode();
          if (key === 'services') news(event);
        },
        ...(transform === undefined ? {} : { transform }),
      });
    };
    this.#reflectors = keys.flatMap((key) => {
      const places = key === 'nodes' ? [{}] : namespaces.map((namespace) => ({ namespace }));
      return places.map((place) => [key, reflectorOf(key, place)] as const);
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(
      [...this.#reflectors.map(([, one]) => one), ...this.#endpoints].map((reflector) => reflector.run(signal)),
    );
  }

  /** What is known now; undefined while one of the kinds was not listed yet, or is not heard of any more. */
  look(): ClusterLook | undefined {
    const parts: Partial<Record<keyof ClusterLook, readonly KubeObject[]>> = {};
    for (const [key, reflector] of this.#reflectors) {
      const { synced, connected } = reflector.health();
      if (!synced || !connected) return undefined;
      parts[key] = [...(parts[key] ?? []), ...reflector.objects.values()];
    }
    return parts as ClusterLook;
  }
}
