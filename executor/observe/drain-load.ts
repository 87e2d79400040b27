/** What the API server has on a node that would be hurt by taking the node away: pods, their claims, volumes. Pure. */
import { isObject, type JsonValue, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';

export interface LoadPod {
  readonly namespace: string;
  readonly name: string;
  /** Belongs to the node: pods of DaemonSets, and those that the kubelet runs by itself. */
  readonly stays: boolean;
  /** Claims that it mounts, by name. */
  readonly claims: readonly string[];
}

export interface AttachedVolume {
  /** Name of the PersistentVolume; of a volume without one that of the attachment. */
  readonly volume: string;
  readonly driver: string;
}

export interface NodeLoad {
  /** Pods that have not ended. One that is being deleted is there until it is gone. */
  readonly pods: readonly LoadPod[];
  readonly attached: readonly AttachedVolume[];
}

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

const ended: readonly string[] = ['Succeeded', 'Failed'];
const mirror = 'kubernetes.io/config.mirror';

/** Claims of volumes: named ones, and those that were made for the pod. */
const claimsOf = (pod: KubeObject): string[] =>
  objectsOf(pod.spec?.volumes).flatMap((volume) => {
    if (isObject(volume.ephemeral)) return [`${pod.metadata.name}-${text(volume.name)}`];
    const name = text(objectOf(volume.persistentVolumeClaim).claimName);
    return name === '' ? [] : [name];
  });

function loadPod(pod: KubeObject): LoadPod[] {
  if (ended.includes(text(pod.status?.phase))) return [];
  const { namespace = '', name = '', annotations = {} } = pod.metadata;
  const controller = objectsOf(pod.metadata.ownerReferences).find((owner) => owner.controller === true);
  const stays = controller?.kind === 'DaemonSet' || Object.hasOwn(annotations, mirror);
  return [{ namespace, name, stays, claims: claimsOf(pod) }];
}

const byName = <T>(nameOf: (one: T) => string, all: readonly T[]): T[] =>
  all.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));

/** @param pods those that are bound to the node; @param attachments VolumeAttachments of all nodes */
export function nodeLoad(node: string, pods: readonly KubeObject[], attachments: readonly KubeObject[]): NodeLoad {
  // Whether it is attached already or still: both are undone before a node may go.
  const attached = attachments
    .filter(({ spec }) => text(spec?.nodeName) === node)
    .map(
      ({ spec, metadata }): AttachedVolume => ({
        volume: text(objectOf(spec?.source).persistentVolumeName) || (metadata.name ?? ''),
        driver: text(spec?.attacher),
      }),
    );
  return {
    pods: byName(({ namespace, name }) => `${namespace}/${name}`, pods.flatMap(loadPod)),
    attached: byName(({ volume }) => volume, attached),
  };
}

/** Of a pod what {@link nodeLoad} reads: whole ones of a full node would be kept for nothing. */
export const slimPod = ({ apiVersion, kind, metadata, spec, status }: KubeObject): KubeObject => ({
  apiVersion,
  kind,
  metadata: {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    annotations: Object.hasOwn(metadata.annotations ?? {}, mirror) ? { [mirror]: '' } : {},
    ...(Array.isArray(metadata.ownerReferences) ? { ownerReferences: metadata.ownerReferences } : {}),
  },
  spec: {
    volumes: objectsOf(spec?.volumes).filter((one) => isObject(one.ephemeral) || isObject(one.persistentVolumeClaim)),
  },
  status: { phase: text(status?.phase) },
});
