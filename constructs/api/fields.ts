import { z } from 'zod';

/**
 * Field types that several formats share. Every string and list is bounded: bounds keep CEL cheap on the API server
 * and keep a hostile file from costing memory. Patterns stay in the subset that RE2 and JavaScript read alike.
 */

const labelPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export const text = (max: number) => z.string().max(max);
export const requiredText = (max: number) => z.string().min(1).max(max);

/** DNS-1123 label: one part of a name, at most 63 characters. */
export const dnsLabel = () => z.string().min(1).max(63).regex(labelPattern);

/** DNS-1123 subdomain: the name of most objects. */
export const dnsName = () => z.string().min(1).max(253).regex(subdomainPattern);

/** Names of RBAC objects and others may hold colons and upper case; only what cannot be a URL path segment is refused. */
export const objectName = () =>
  z
    .string()
    .min(1)
    .max(253)
    .regex(/^[^/%\s]+$/);

export const apiVersionField = () =>
  z
    .string()
    .min(2)
    .max(317)
    .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?v[0-9]+((alpha|beta)[0-9]+)?$/);

export const kindField = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[A-Z][A-Za-z0-9]*$/);

/** Name of a phase, reason, gate or condition type. */
export const upperCamel = (max = 63) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[A-Z][A-Za-z0-9]*$/);

export const digest = () =>
  z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .max(71);

export const uuid = () =>
  z
    .string()
    .max(36)
    .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);

/** UID of an object; the API server makes UUIDs, but promises only a string. */
export const objectUID = () =>
  z
    .string()
    .min(1)
    .max(64)
    .regex(/^[0-9A-Za-z-]+$/);

/** Go duration without sign and without units below the millisecond, such as `1h30m`. */
export const duration = () =>
  z
    .string()
    .min(2)
    .max(32)
    .regex(/^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/);

export const timestamp = () => z.iso.datetime({ offset: true }).max(64);

export const semverText = () =>
  z
    .string()
    .min(5)
    .max(64)
    .regex(/^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/);

/** `name[:port]`, `1.2.3.4[:port]` or `[::1][:port]`. */
export const hostPort = () =>
  z
    .string()
    .min(1)
    .max(320)
    .regex(/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)(:[0-9]{1,5})?$/);

/** Literal IP address; whether it is one is decided by a parser, this only bounds the alphabet. */
export const ipText = () =>
  z
    .string()
    .min(2)
    .max(45)
    .regex(/^[0-9a-fA-F:.]+$/);

export const cidrText = () =>
  z
    .string()
    .min(4)
    .max(49)
    .regex(/^[0-9a-fA-F:.]+\/[0-9]{1,3}$/);

/** Image reference pinned by digest. */
export const pinnedImage = () =>
  z
    .string()
    .min(73)
    .max(512)
    .regex(
      /^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?\/[a-z0-9]([-a-z0-9._/]*[a-z0-9])?(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}$/,
    );

/** Image reference, pinned or not. */
export const imageText = () =>
  z
    .string()
    .min(1)
    .max(512)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/);

/** Label map with a bound on its size; `max` counts entries. */
export const stringMap = (max: number) =>
  z.record(z.string().max(317), z.string().max(63)).meta({ maxProperties: max });

/** RFC 6901 pointer. */
export const pointer = () =>
  z
    .string()
    .max(512)
    .regex(/^(\/([^~/]|~[01])*)*$/);

/** Path below the payload's root, forward slashes, no empty and no dot segments. */
export const relativePath = () =>
  z
    .string()
    .min(1)
    .max(512)
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_%.:+-]*(\/[A-Za-z0-9_][A-Za-z0-9_%.:+-]*)*$/);

/** Name of an object in the same namespace. */
export const nameRef = () => z.strictObject({ name: dnsName().meta({ description: 'Name of the object.' }) });

/** Group and kind as `group/Kind`; the core group is empty: `/ConfigMap`. */
export const groupKind = () =>
  z
    .string()
    .min(2)
    .max(317)
    .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?\/[A-Z][A-Za-z0-9]*$/);

/** One entry of `status.conditions`. */
export const condition = () =>
  z.strictObject({
    type: upperCamel(),
    status: z.enum(['True', 'False', 'Unknown']),
    observedGeneration: z.int().min(0).optional(),
    lastTransitionTime: timestamp(),
    reason: upperCamel(128),
    message: text(1024),
  });
export type Condition = z.infer<ReturnType<typeof condition>>;

export const conditions = () =>
  z
    .array(condition())
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] });
