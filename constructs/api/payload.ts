import { z } from 'zod';
import { digestOf } from '../lib/digest.ts';
import type { JsonValue } from '../lib/json.ts';
import { objectId } from '../lib/names.ts';
import { limits, payloadFormatVersion } from './constants.ts';
import {
  apiVersionField,
  digest,
  dnsLabel,
  dnsName,
  duration,
  ipText,
  kindField,
  objectName,
  objectUID,
  pointer,
  relativePath,
  requiredText,
  semverText,
  text,
  timestamp,
  upperCamel,
  uuid,
} from './fields.ts';

/**
 * The payload: the rendered objects of one release, in phases, with the gates between them. `content` is what is
 * signed and compared; `provenance` says how it came about and stands outside every digest.
 */

export const domains = ['network', 'storage', 'addresses', 'manifests'] as const;
export type Domain = (typeof domains)[number];

/** What the executor puts in at a pointer of an object, because only the cluster knows it. */
export const bindings = ['owner', 'uidLabels', 'retainedReplicas', 'heldNodeIPs', 'installationUID'] as const;
export type Binding = (typeof bindings)[number];

const bindRule = z.strictObject({ at: pointer(), what: z.enum(bindings) });

const gateTarget = z.strictObject({
  apiVersion: apiVersionField(),
  kind: kindField(),
  namespace: dnsLabel().optional(),
  name: dnsName(),
  condition: upperCamel().optional(),
});

export const gate = z.strictObject({
  type: upperCamel(),
  /** Name of the phase, or of the part of it, whose objects the gate looks at. */
  scope: dnsLabel(),
  target: gateTarget.optional(),
  softLimit: duration(),
  limit: duration().optional(),
});
export type Gate = z.infer<typeof gate>;

/** How people read a gate: `WorkloadsReady(central)`. */
export const gateText = ({ type, scope }: { readonly type: string; readonly scope: string }): string =>
  `${type}(${scope})`;

export const payloadObject = z.strictObject({
  /** Path of the canonical JSON inside the archive. */
  file: z
    .string()
    .max(32)
    .regex(/^objects\/[0-9]{4}\.json$/),
  /** Path of the YAML inside the payload's folder of the rendered tree. */
  yaml: relativePath(),
  /** Hex sha256 over the canonical JSON. */
  sha256: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/),
  apiVersion: apiVersionField(),
  kind: kindField(),
  namespace: dnsLabel().optional(),
  name: objectName(),
  keep: z.boolean().default(false),
  conflict: z.enum(['fail', 'yield']).default('fail'),
  yieldFields: z.array(pointer()).min(1).max(64).optional(),
  recreate: z.boolean().default(false),
  createOnly: z.boolean().default(false),
  absent: z.boolean().default(false),
  bind: z.array(bindRule).min(1).max(16).optional(),
});
export type PayloadObject = z.infer<typeof payloadObject>;

export const payloadPhase = z.strictObject({
  name: dnsLabel(),
  dir: z
    .string()
    .max(66)
    .regex(/^[0-9]{2}-[a-z0-9]([-a-z0-9]*[a-z0-9])?$/),
  gates: z.array(gate).max(limits.gatesPerPhase),
  objects: z.array(payloadObject).max(limits.objects),
});
export type PayloadPhase = z.infer<typeof payloadPhase>;

export const installationEntry = z.strictObject({
  apiVersion: apiVersionField(),
  kind: kindField(),
  namespace: dnsLabel(),
  name: dnsName(),
  specDigest: digest(),
  manifestDigest: digest(),
  /** specDigest without member requests and the number of central replicas. */
  baseDigest: digest(),
  version: semverText().optional(),
  mode: requiredText(32).optional(),
  /** Nodes whose addresses were rendered, in the order of OVN central. */
  nodes: z
    .array(z.strictObject({ name: dnsName(), uid: objectUID(), addresses: z.array(ipText()).min(1).max(8) }))
    .max(64),
  /** The first payload of all takes over what exists; with the managers whose fields are taken. */
  adoption: z.strictObject({ takeManagers: z.array(requiredText(128)).max(16) }).optional(),
});
export type InstallationEntry = z.infer<typeof installationEntry>;

export const requirement = z.strictObject({
  kind: z.literal('Secret'),
  namespace: dnsLabel(),
  name: dnsName(),
  keys: z.array(requiredText(253)).max(32),
  /** A certificate in it must be valid at least until then. */
  notAfter: timestamp().optional(),
});
export type Requirement = z.infer<typeof requirement>;

export const payloadContent = z.strictObject({
  cluster: dnsLabel(),
  clusterUID: uuid().optional(),
  release: z.strictObject({ name: dnsLabel(), domain: z.enum(domains) }),
  manifestDigest: digest(),
  installations: z.array(installationEntry).max(64),
  requires: z.array(requirement).max(256),
  /** Phases between which only repair of the same payload or an authorised rollback is accepted; ends included. */
  spans: z.array(z.strictObject({ from: dnsLabel(), to: dnsLabel() })).max(16),
  phases: z.array(payloadPhase).min(1).max(limits.phases),
});
export type PayloadContent = z.infer<typeof payloadContent>;

export const provenance = z.strictObject({
  keelson: requiredText(64),
  helm: text(64).optional(),
  specCommit: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{40,64}$/)
    .optional(),
  inputs: z.strictObject({
    specs: digest(),
    lock: digest(),
    inventory: digest(),
    charts: z.array(digest()).max(64),
  }),
  filteredHooks: z.array(requiredText(512)).max(256),
});
export type Provenance = z.infer<typeof provenance>;

export const signature = z.strictObject({
  keyId: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{16}$/),
  /** Base64 of the 64 bytes. */
  ed25519: z
    .string()
    .max(88)
    .regex(/^[A-Za-z0-9+/]{86}==$/),
});
export type Signature = z.infer<typeof signature>;

export const payloadIndex = z.strictObject({
  formatVersion: z.literal(payloadFormatVersion),
  digest: digest(),
  signature: signature.optional(),
  content: payloadContent,
  provenance,
});
export type PayloadIndex = z.infer<typeof payloadIndex>;

/** Id of an object of a payload: `group/Kind/namespace/name`. */
export const payloadObjectId = (object: Pick<PayloadObject, 'apiVersion' | 'kind' | 'namespace' | 'name'>): string =>
  objectId({
    apiVersion: object.apiVersion,
    kind: object.kind,
    name: object.name,
    ...(object.namespace === undefined ? {} : { namespace: object.namespace }),
  });

/** Digest that is signed, compared and named by a Release: over canonical `content`, defaults filled in. */
export const payloadDigest = (content: PayloadContent): string =>
  digestOf(payloadContent.parse(content) as unknown as JsonValue);

/** Digest over the ordered list of (phase, object id, object sha256): equal when the same objects are asked for. */
export const manifestDigest = (
  phases: readonly {
    name: string;
    objects: readonly Pick<PayloadObject, 'apiVersion' | 'kind' | 'namespace' | 'name' | 'sha256'>[];
  }[],
): string => digestOf(phases.flatMap((phase) => phase.objects.map((o) => [phase.name, payloadObjectId(o), o.sha256])));
