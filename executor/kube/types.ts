/** Names and shapes that everything on the Kubernetes edge shares. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import { describeObject } from '../../constructs/lib/names.ts';

/** A kind as one API version serves it. */
export interface KindRef {
  readonly apiVersion: string;
  readonly kind: string;
}

/** One object of a cluster. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef extends KindRef {
  readonly namespace?: string;
  readonly name: string;
}

/** One owner in `metadata.managedFields`. */
export interface ManagedFieldsEntry extends JsonObject {
  manager?: string;
  operation?: 'Apply' | 'Update';
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: JsonObject;
  subresource?: string;
}

export interface ObjectMeta extends JsonObject {
  name?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string | null;
  labels?: { [key: string]: string };
  annotations?: { [key: string]: string };
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** Fields of metadata that belong to the server. Sent with an apply they are refused, or mean a precondition. */
export const serverFields = [
  'managedFields',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'generation',
  'selfLink',
  'uid',
] as const;

/** An object as the API server speaks it: plain JSON, nothing converted, nothing dropped. */
export interface KubeObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec?: JsonObject;
  status?: JsonObject;
}

/** The identity of an object. An absent name reads as the empty string, which no live object has. */
export function refOf(object: KubeObject): ObjectRef {
  const { name, namespace } = object.metadata;
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    ...(namespace === undefined || namespace === '' ? {} : { namespace }),
    name: name ?? '',
  };
}

/** An object that names nothing but itself: what an apply that gives everything up sends. */
export const bareObject = ({ apiVersion, kind, name, namespace }: ObjectRef): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
});

/** How people read an identity: `Deployment.apps kube-system/ovn-central`. */
export function describeRef(ref: ObjectRef): string {
  return describeObject(ref);
}

/** A `metadata.resourceVersion`, opaque; the empty string when the server sent none. */
export function resourceVersionOf(object: KubeObject): string {
  return object.metadata.resourceVersion ?? '';
}

/** A `metadata.uid`; the empty string when the server sent none. */
export function uidOf(object: KubeObject): string {
  return object.metadata.uid ?? '';
}
