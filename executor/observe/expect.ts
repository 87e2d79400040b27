/**
 * Whom a round has to ask: the pods of the installation's own workloads, followed from UID to UID of their controllers and
 * never by label alone; and what the API server says of them, their nodes and their rollout. Pure.
 */
import { probeContainers } from '../../constructs/api/constants.ts';
import { cut } from '../../constructs/lib/cut.ts';
import { type JsonValue, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';
import type { ProbeService } from './network.ts';
import type {
  CentralTarget,
  ChassisTarget,
  ContainerFacts,
  NodeFacts,
  Outcome,
  PodFacts,
  Rollout,
  StorageIdentity,
} from './round.ts';

/** What the executor has of the cluster, out of its watches: one moment of it. */
export interface ClusterLook {
  readonly deployments: readonly KubeObject[];
  readonly statefulSets: readonly KubeObject[];
  readonly daemonSets: readonly KubeObject[];
  readonly replicaSets: readonly KubeObject[];
  readonly pods: readonly KubeObject[];
  readonly nodes: readonly KubeObject[];
  readonly claims: readonly KubeObject[];
  readonly services: readonly KubeObject[];
}

/** A central node of the accepted payload. */
export type PayloadNode = CentralTarget['node'];

/** Names that the charts give the workloads; they are part of what other objects refer to. */
const workloadNames = { central: ['ovn-central'], dataPlane: ['ovs-ovn', 'ovs-ovn-dpdk'] } as const;
/** Where a container of OVN central has its databases. */
const databaseFolders: readonly string[] = ['/etc/ovn', '/var/lib/ovn-member'];

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
const count = (value: JsonValue | undefined, absent = 0): number => (typeof value === 'number' ? value : absent);

const uidOf = (object: KubeObject): string => object.metadata.uid ?? '';
const nameOf = (object: KubeObject): string => object.metadata.name ?? '';

/** UID of the controller that an object belongs to. */
const controllerOf = (object: KubeObject): string | undefined => {
  const owner = objectsOf(object.metadata.ownerReferences).find(({ controller }) => controller === true);
  return owner === undefined ? undefined : text(owner.uid);
};

const ownedBy = (objects: readonly KubeObject[], owners: ReadonlySet<string>): KubeObject[] =>
  objects.filter((object) => {
    const owner = controllerOf(object);
    return owner !== undefined && owners.has(owner);
  });

const uids = (objects: readonly KubeObject[]): Set<string> => new Set(objects.map(uidOf));

const isEnding = ({ metadata }: KubeObject): boolean => typeof metadata.deletionTimestamp === 'string';

/** Pods of workloads that have not ended. */
function livingPodsOf(look: ClusterLook, workloads: readonly KubeObject[]): KubeObject[] {
  const owners = uids(workloads);
  const sets = uids(ownedBy(look.replicaSets, owners));
  return ownedBy(look.pods, new Set([...owners, ...sets])).filter(
    ({ status }) => !['Failed', 'Succeeded'].includes(text(status?.phase)),
  );
}

/** Pods of workloads that count: one that ends, or has ended, answers for nobody. */
const podsOf = (look: ClusterLook, workloads: readonly KubeObject[]): KubeObject[] =>
  livingPodsOf(look, workloads).filter((pod) => !isEnding(pod));

/** Image that the daemons of a pod run, by what its kubelet tells; the sidecar has another. */
function imageOf(pod: KubeObject): string | undefined {
  const daemons = objectsOf(pod.status?.containerStatuses).filter(({ name }) => name !== probeContainers.central);
  const images = new Set(daemons.map(({ imageID }) => text(imageID)));
  const [image] = images;
  return images.size === 1 && image !== '' ? image : undefined;
}

function podFactsOf(pod: KubeObject): PodFacts {
  const containers = objectsOf(pod.status?.containerStatuses).map(
    (one): ContainerFacts => ({
      name: text(one.name),
      id: text(one.containerID),
      restarts: count(one.restartCount),
    }),
  );
  return {
    namespace: pod.metadata.namespace ?? '',
    name: nameOf(pod),
    uid: uidOf(pod),
    node: text(pod.spec?.nodeName),
    addresses: objectsOf(pod.status?.podIPs).map(({ ip }) => text(ip)),
    containers: containers.sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

export function nodeFactsOf(node: KubeObject): NodeFacts {
  const ready = text(objectsOf(node.status?.conditions).find(({ type }) => type === 'Ready')?.status);
  return {
    name: nameOf(node),
    uid: uidOf(node),
    addresses: objectsOf(node.status?.addresses)
      .filter(({ type }) => type === 'InternalIP')
      .map(({ address }) => text(address)),
    ready: ready === 'True' || ready === 'False' ? ready : 'Unknown',
    unschedulable: node.spec?.unschedulable === true,
  };
}

function rolloutOf(workload: KubeObject): Rollout {
  const status = objectOf(workload.status);
  const perNode = workload.kind === 'DaemonSet';
  return {
    kind: workload.kind,
    namespace: workload.metadata.namespace ?? '',
    name: nameOf(workload),
    uid: uidOf(workload),
    generation: count(workload.metadata.generation, 1),
    observedGeneration: count(status.observedGeneration),
    desired: perNode ? count(status.desiredNumberScheduled) : count(objectOf(workload.spec).replicas, 1),
    updated: count(perNode ? status.updatedNumberScheduled : status.updatedReplicas),
    ready: count(perNode ? status.numberReady : status.readyReplicas),
  };
}

const named = (objects: readonly KubeObject[], names: readonly string[], installationUID: string): KubeObject[] =>
  objects
    .filter((object) => names.includes(nameOf(object)) && controllerOf(object) === installationUID)
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));

const nodesByName = (look: ClusterLook): Map<string, NodeFacts> =>
  new Map(look.nodes.map((node) => [nameOf(node), nodeFactsOf(node)]));

export interface ExpectedCentral {
  readonly workload: Rollout | undefined;
  readonly targets: readonly CentralTarget[];
  readonly strays: readonly PodFacts[];
  /** Pods without a node; what the scheduler says of those that it finds none for. */
  readonly pending: readonly { readonly unschedulable: string | undefined }[];
}

/** The members of OVN central: one on each node of the accepted payload, in its order. */
export function expectCentral(
  look: ClusterLook,
  installationUID: string,
  wanted: readonly PayloadNode[],
): ExpectedCentral {
  const workloads = named([...look.deployments, ...look.statefulSets], workloadNames.central, installationUID);
  const living = livingPodsOf(look, workloads);
  const pods = living.filter((pod) => !isEnding(pod));
  const ending = new Set(living.filter(isEnding).map(({ spec }) => text(spec?.nodeName)));
  const nodes = nodesByName(look);
  const places = new Set(wanted.map(({ name }) => name));
  const targets = wanted.map((node): CentralTarget => {
    const pod = newest(pods.filter(({ spec }) => text(spec?.nodeName) === node.name));
    return {
      node,
      live: nodes.get(node.name),
      pod: pod === undefined ? undefined : podFactsOf(pod),
      storage: pod === undefined ? undefined : storageOf(pod, look.claims),
      image: pod === undefined ? undefined : imageOf(pod),
      ending: ending.has(node.name),
    };
  });
  const strays = pods.map(podFactsOf).filter(({ node }) => node !== '' && !places.has(node));
  const [workload] = workloads;
  const pending = pods.filter(({ spec }) => text(spec?.nodeName) === '').map(pendingOf);
  return { workload: workload === undefined ? undefined : rolloutOf(workload), targets, strays, pending };
}

function pendingOf(pod: KubeObject): ExpectedCentral['pending'][number] {
  const scheduled = objectsOf(pod.status?.conditions).find(({ type }) => type === 'PodScheduled');
  return { unschedulable: scheduled?.reason === 'Unschedulable' ? text(scheduled.message) : undefined };
}

/** While a pod is replaced, the one that comes answers for the place. */
function newest(pods: readonly KubeObject[]): KubeObject | undefined {
  const age = (pod: KubeObject): string => `${text(pod.metadata.creationTimestamp ?? '')} ${uidOf(pod)}`;
  return pods.toSorted((a, b) => (age(a) < age(b) ? 1 : -1))[0];
}

/** Where the container that has a database folder mounts it from. */
function storageOf(pod: KubeObject, claims: readonly KubeObject[]): StorageIdentity | undefined {
  const mounts = objectsOf(pod.spec?.containers).flatMap((container) => objectsOf(container.volumeMounts));
  const mount = mounts.find(({ mountPath }) => databaseFolders.includes(text(mountPath).replace(/\/+$/, '')));
  const volume = objectsOf(pod.spec?.volumes).find(({ name }) => mount !== undefined && name === mount.name);
  const path = text(objectOf(volume?.hostPath).path);
  if (path !== '') return { type: 'hostPath', path };
  const name = text(objectOf(volume?.persistentVolumeClaim).claimName);
  const claim = claims.find((one) => nameOf(one) === name && one.metadata.namespace === pod.metadata.namespace);
  return claim === undefined ? undefined : { type: 'claim', name, uid: uidOf(claim) };
}

/** What the API server alone says of a place; undefined when there is somebody to ask. */
export function centralAbsence(
  { live, pod, ending }: CentralTarget,
  { workload, pending }: Pick<ExpectedCentral, 'workload' | 'pending'>,
): Outcome<'central'> | undefined {
  if (live === undefined) return { type: 'Broken', message: 'the node is gone' };
  if (pod !== undefined) return undefined;
  // The one that comes finds no place as long as the one that ends has it: that is no fault, and what ends may still work.
  if (ending === true) return { type: 'Unreachable', message: 'its pod ends, and answers for nobody any more' };
  const stuck = pending.find(({ unschedulable }) => unschedulable !== undefined);
  if (stuck?.unschedulable !== undefined)
    return {
      type: 'Broken',
      message: `no pod of it runs there, and the scheduler says: ${cut(stuck.unschedulable, 200)}`,
    };
  // While a rollout is under way a pod that is not there yet is work, and not a fault.
  const settled =
    pending.length === 0 &&
    workload !== undefined &&
    workload.observedGeneration >= workload.generation &&
    workload.updated >= workload.desired;
  return settled
    ? { type: 'Broken', message: 'no pod of it runs there' }
    : { type: 'Unreachable', message: 'its pod is not there yet' };
}

export interface ExpectedChassis {
  readonly workloads: readonly Rollout[];
  readonly targets: readonly ChassisTarget[];
}

/** The nodes that carry Open vSwitch: one target per node, by name. */
export function expectChassis(look: ClusterLook, installationUID: string): ExpectedChassis {
  const workloads = named(look.daemonSets, workloadNames.dataPlane, installationUID);
  const dpdk = uids(workloads.filter((workload) => nameOf(workload) === 'ovs-ovn-dpdk'));
  const nodes = nodesByName(look);
  const byNode = Map.groupBy(podsOf(look, workloads), ({ spec }) => text(spec?.nodeName));
  const targets = [...byNode].flatMap(([node, pods]): ChassisTarget[] => {
    const pod = newest(pods);
    if (node === '' || pod === undefined) return [];
    const image = objectsOf(pod.metadata.ownerReferences).some(({ uid }) => dpdk.has(text(uid)))
      ? undefined
      : imageOf(pod);
    return [{ node, live: nodes.get(node), pod: podFactsOf(pod), image }];
  });
  return {
    workloads: workloads.map(rolloutOf),
    targets: targets.sort((a, b) => (a.node < b.node ? -1 : 1)),
  };
}

/** Names of the objects of the network probe, and the port that its servers and its Service have. */
export interface NetworkNames {
  readonly clients: string;
  readonly servers: string;
  readonly service: string;
  readonly echoPort: number;
}

export interface ExpectedNetwork {
  readonly clients: Rollout | undefined;
  readonly servers: Rollout | undefined;
  readonly clientPods: readonly PodFacts[];
  readonly serverPods: readonly PodFacts[];
  /** `config` changes with whatever of the Service decides where its packets go. */
  readonly service: (ProbeService & { readonly config: string }) | undefined;
  /** The nodes that the pods are on. */
  readonly nodes: readonly Pick<NodeFacts, 'name' | 'uid'>[];
}

/** The pods that send packets and those that answer, and the Service before them. */
export function expectNetwork(look: ClusterLook, installationUID: string, names: NetworkNames): ExpectedNetwork {
  const podsIn = (name: string): { rollout: Rollout | undefined; pods: PodFacts[] } => {
    const workloads = named(look.daemonSets, [name], installationUID);
    const byNode = Map.groupBy(podsOf(look, workloads), ({ spec }) => text(spec?.nodeName));
    const pods = [...byNode].flatMap(([node, all]) => {
      const pod = newest(all);
      return node === '' || pod === undefined ? [] : [podFactsOf(pod)];
    });
    const [workload] = workloads;
    return {
      rollout: workload === undefined ? undefined : rolloutOf(workload),
      // In the order of the ring, which every client's checks are taken from.
      pods: pods.sort((a, b) => (a.node < b.node ? -1 : 1)),
    };
  };
  const [clients, servers] = [podsIn(names.clients), podsIn(names.servers)];
  const service = look.services.find((one) => nameOf(one) === names.service && controllerOf(one) === installationUID);
  const addresses = Array.isArray(service?.spec?.clusterIPs) ? service.spec.clusterIPs.map(text) : [];
  const places = new Set([...clients.pods, ...servers.pods].map(({ node }) => node));
  return {
    clients: clients.rollout,
    servers: servers.rollout,
    clientPods: clients.pods,
    serverPods: servers.pods,
    service:
      service === undefined
        ? undefined
        : {
            namespace: service.metadata.namespace ?? '',
            name: nameOf(service),
            addresses: addresses.filter((one) => one !== '' && one !== 'None'),
            config: JSON.stringify([uidOf(service), service.spec ?? {}]),
          },
    nodes: look.nodes
      .filter((node) => places.has(nameOf(node)))
      .map((node) => ({ name: nameOf(node), uid: uidOf(node) })),
  };
}
