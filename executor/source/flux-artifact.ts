/** What a source object of Flux says about its artifact, and whether that can be used. Pure. */
import type { ReleaseSpec } from '../../constructs/api/release.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeObject, ObjectRef } from '../kube/types.ts';

export type FluxSourceRef = NonNullable<ReleaseSpec['source']['flux']>;

/** Digest algorithms of the contract that the runtime knows; `blake3` is not among them. */
const algorithms = ['sha256', 'sha384', 'sha512'] as const;
export type ArtifactAlgorithm = (typeof algorithms)[number];

export interface Artifact {
  readonly url: URL;
  /** Compared as a whole; tells whether there is anything new. */
  readonly revision: string;
  /** Revision of what the artifact was made from, where its maker says so. */
  readonly originRevision?: string;
  readonly algorithm: ArtifactAlgorithm;
  /** Over the compressed bytes. */
  readonly hex: string;
  /** As the source states it: an early bound, never the truth. */
  readonly size?: number;
}

export type SourceVerdict =
  | { readonly type: 'ready'; readonly artifact: Artifact }
  | { readonly type: 'wait' | 'refused'; readonly problem: Problem };

/** The object that a Release names. */
export const sourceObject = ({ kind, namespace, name }: FluxSourceRef): ObjectRef => ({
  apiVersion: 'source.toolkit.fluxcd.io/v1',
  kind,
  namespace,
  name,
});

/** Words for messages. */
export const describeSource = ({ kind, namespace, name }: FluxSourceRef): string => `${kind} ${namespace}/${name}`;

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

const revisionOf = (artifact: JsonObject): string => text(artifact.revision).slice(0, 512);

function readyCondition(status: JsonObject): JsonObject | undefined {
  const conditions = Array.isArray(status.conditions) ? status.conditions : [];
  return conditions.filter(isObject).find(({ type }) => type === 'Ready');
}

/** What of a source makes it worth another look: nothing else that changes in it does. */
export function sourceState(object: KubeObject): string {
  const status = isObject(object.status) ? object.status : {};
  const artifact = isObject(status.artifact) ? status.artifact : {};
  return JSON.stringify([
    object.metadata.uid,
    object.metadata.generation,
    status.observedGeneration,
    readyCondition(status)?.status,
    artifact.revision,
    artifact.digest,
    artifact.url,
  ]);
}

/**
 * Whether the source offers an artifact now. One that its controller has not looked at since it was changed, or could not
 * fetch anew, still shows its old artifact: that one is not taken, and what is accepted stays enforced.
 */
export function judgeSource(ref: FluxSourceRef, object: KubeObject | undefined): SourceVerdict {
  const what = describeSource(ref);
  const wait = (message: string): SourceVerdict => ({
    type: 'wait',
    problem: { reason: 'ArtifactNotReady', object: what, message },
  });
  if (object === undefined) return wait('the source does not exist');
  const status = isObject(object.status) ? object.status : {};
  const ready = readyCondition(status);
  // An ExternalArtifact has no generation but the one of its condition.
  const observed = status.observedGeneration ?? ready?.observedGeneration;
  if (observed !== undefined && observed !== object.metadata.generation)
    return wait('its controller has not looked at the present spec yet');
  if (ready?.status !== 'True')
    return wait(`it is not ready: ${text(ready?.message).slice(0, 300) || 'its controller says nothing'}`);
  if (!isObject(status.artifact)) return wait('it has no artifact yet');
  return readArtifact(what, status.artifact);
}

function readArtifact(what: string, artifact: JsonObject): SourceVerdict {
  const refused = (reason: string, message: string): SourceVerdict => ({
    type: 'refused',
    problem: { reason, object: what, message },
  });
  const revision = revisionOf(artifact);
  const digest = text(artifact.digest);
  if (digest === '') return refused('ArtifactWithoutDigest', `the artifact of revision ${revision} states no digest`);
  const [name = '', hex = ''] = digest.split(':');
  const algorithm = algorithms.find((each) => each === name);
  if (algorithm === undefined || !/^([0-9a-f]{2}){32,64}$/.test(hex))
    return refused(
      'ArtifactRefused',
      `digest ${digest.slice(0, 150)} can not be checked; known are ${algorithms.join(', ')}`,
    );
  const url = URL.parse(text(artifact.url));
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '')
    return refused('ArtifactRefused', 'the URL of the artifact is no plain http or https URL');
  const origin = isObject(artifact.metadata) ? text(artifact.metadata['org.opencontainers.image.revision']) : '';
  return {
    type: 'ready',
    artifact: {
      url,
      revision,
      ...(origin === '' ? {} : { originRevision: origin.slice(0, 512) }),
      algorithm,
      hex,
      ...(typeof artifact.size === 'number' ? { size: artifact.size } : {}),
    },
  };
}

/** Name and namespace of the Service that a cluster's own DNS name stands for; undefined for every other host. */
export function serviceOfHost(host: string): { readonly namespace: string; readonly name: string } | undefined {
  const [, name, namespace] = /^([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.[a-z0-9.-]+)?$/i.exec(host) ?? [];
  return name === undefined || namespace === undefined ? undefined : { namespace, name };
}
