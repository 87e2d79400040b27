/** A Release as the worker reads it, and what of it is work. Pure. */
import { annotations } from '../../constructs/api/constants.ts';
import { type Condition, conditions } from '../../constructs/api/fields.ts';
import { type ReleaseSpec, type ReleaseStatus, releaseSpec, releaseStatus } from '../../constructs/api/release.ts';
import { readShape } from '../../constructs/api/shape.ts';
import { isDigest, sha256Digest } from '../../constructs/lib/digest.ts';
import { deepEqual, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeObject } from '../kube/types.ts';

export interface ReleaseView {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly spec: ReleaseSpec;
  /** As stored; undefined when it can not be read, which a new one then replaces. */
  readonly status: ReleaseStatus | undefined;
  /** What the pin annotation says: the digest of a payload, unless somebody mistyped it. */
  readonly pin?: string;
  /** What the hold annotation says. */
  readonly hold?: string;
  /** What the uninstall annotation says. */
  readonly uninstall?: string;
  /** What the annotation of a lifecycle says that has the release in hand. */
  readonly quiesce?: string;
  /** Echoed in status when a pass has ended. */
  readonly requestedAt?: string;
  readonly deleting: boolean;
}

export type ViewRead =
  | { readonly ok: true; readonly view: ReleaseView }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const requestedAnnotation = 'reconcile.fluxcd.io/requestedAt';

/** Reads a Release. The API server has validated it already; what is found here is from before a change of the CRD. */
export function readRelease(object: KubeObject): ViewRead {
  const { metadata } = object;
  const name = metadata.name ?? '';
  const where = { reason: 'InvalidSpec', object: `Release ${name}` };
  const spec = readShape(releaseSpec, object.spec ?? {}, where);
  if (!spec.ok) return spec;
  const notes = metadata.annotations ?? {};
  const pin = notes[annotations.pin];
  const status = readShape(releaseStatus, object.status ?? {}, where);
  const hold = notes[annotations.hold];
  const quiesce = notes[annotations.quiesce];
  const uninstall = notes[annotations.uninstall];
  const requestedAt = notes[requestedAnnotation];
  return {
    ok: true,
    view: {
      name,
      uid: metadata.uid ?? '',
      generation: metadata.generation ?? 1,
      spec: spec.value,
      status: status.ok ? status.value : undefined,
      deleting: typeof metadata.deletionTimestamp === 'string',
      ...(pin === undefined ? {} : { pin }),
      ...(hold === undefined ? {} : { hold }),
      ...(quiesce === undefined ? {} : { quiesce }),
      ...(uninstall === undefined ? {} : { uninstall }),
      ...(requestedAt === undefined ? {} : { requestedAt: requestedAt.slice(0, 64) }),
    },
  };
}

/** Conditions of a Release as they are stored; none when they can not be read, which new ones then replace. */
export function readConditions({ status, metadata }: KubeObject): readonly Condition[] {
  const where = { reason: 'InvalidSpec', object: `Release ${metadata.name ?? ''}` };
  const read = readShape(conditions(), status?.conditions ?? [], where);
  return read.ok ? read.value : [];
}

/** Whether two states of one Release differ in no more than its status and what the API server books. */
export function asksTheSame(before: KubeObject, after: KubeObject): boolean {
  const asked = ({ metadata, spec }: KubeObject): JsonObject => {
    const { uid, generation, annotations: notes, deletionTimestamp } = metadata;
    return { uid, generation, notes, deletionTimestamp, spec };
  };
  return deepEqual(asked(before), asked(after));
}

/**
 * Digest of the payload that is wanted: the pin, or what the spec names. A pin that is no digest still is one: it stands for
 * a payload that nobody has, so that nothing else comes in its place, and status says why.
 */
export const desiredDigest = ({ pin, spec }: ReleaseView): string => {
  if (pin === undefined) return spec.payload.digest;
  return isDigest(pin) ? pin : sha256Digest(pin);
};

/** Whether a person has approved that the release goes, and nothing stops it: what is held or paused is not written. */
export const leaves = (view: ReleaseView): boolean =>
  view.uninstall !== undefined && view.hold === undefined && !view.spec.paused;

/** What makes two views the same work: a pass goes on only as long as this stays. */
export function workIdentity(view: ReleaseView): string {
  const { spec, uid, pin, hold, quiesce, uninstall, deleting } = view;
  // An annotation without a value is one all the same.
  const marks = [pin, hold, quiesce, uninstall].map((mark) => mark ?? null);
  return JSON.stringify([uid, spec, marks, deleting]);
}

/** Ids that the overrides take out of management. */
export function overriddenIds(spec: Pick<ReleaseSpec, 'overrides'>): Set<string> {
  return new Set(
    spec.overrides.map(({ group, kind, namespace, name }) => `${group}/${kind}/${namespace ?? ''}/${name}`),
  );
}
