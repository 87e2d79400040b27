import { z } from 'zod';
import { limits } from './constants.ts';
import { centralFacts } from './evidence/central.ts';
import { chassisFacts } from './evidence/chassis.ts';
import { drainFacts } from './evidence/drain.ts';
import { milliseconds } from './evidence/fields.ts';
import { hostFacts } from './evidence/host.ts';
import { networkFacts } from './evidence/network.ts';
import {
  type ComponentOf,
  type EvidenceKind,
  evidenceComponents,
  evidenceKinds,
  evidenceSchema,
  noncePattern,
  problemCodes,
} from './evidence/words.ts';
import { dnsLabel, dnsName, objectUID, requiredText, text, timestamp } from './fields.ts';

/**
 * The answer of `GET /v1/evidence?nonce=`: what a probe saw while the request was open. It is bound to the nonce, the
 * pod and the boot of the node. A component is among the facts or among the problems and never has a default value,
 * so that a hung daemon can not look like a healthy or an empty one.
 */

export type { ComponentOf, EvidenceKind };
export { evidenceComponents, evidenceKinds };

const evidenceNonce = () => z.string().regex(noncePattern).max(64);

const problem = z.object({
  component: dnsLabel(),
  code: z.enum(problemCodes),
  message: text(512),
  elapsedMs: milliseconds(),
  limitMs: milliseconds(),
});
export type EvidenceProblem = z.output<typeof problem>;

/** Who looked. */
export const evidenceSubject = z.object({
  namespace: dnsLabel(),
  pod: dnsName(),
  podUID: objectUID(),
  container: dnsLabel(),
  node: dnsName(),
  /** Changes with every boot of the node. */
  nodeBootID: requiredText(64),
});
export type EvidenceSubject = z.output<typeof evidenceSubject>;

const envelope = {
  schema: z.literal(evidenceSchema),
  nonce: evidenceNonce(),
  /** By the probe's clock; nobody compares it with another. */
  observation: z.object({ startedAt: timestamp(), endedAt: timestamp(), elapsedMs: milliseconds() }),
  subject: evidenceSubject,
  probe: z.object({ version: requiredText(64) }),
  /** Whether every component is among the facts. */
  complete: z.boolean(),
  problems: z.array(problem).max(16),
};

const evidence = z.discriminatedUnion('kind', [
  z.object({ ...envelope, kind: z.literal('central'), facts: centralFacts }),
  z.object({ ...envelope, kind: z.literal('chassis'), facts: chassisFacts }),
  z.object({ ...envelope, kind: z.literal('network'), facts: networkFacts }),
  z.object({ ...envelope, kind: z.literal('drain'), facts: drainFacts }),
  z.object({ ...envelope, kind: z.literal('host'), facts: hostFacts }),
]);

export type Evidence = z.output<typeof evidence>;
export type EvidenceOf<K extends EvidenceKind> = Extract<Evidence, { kind: K }>;
export type FactsOf<K extends EvidenceKind> = EvidenceOf<K>['facts'];

/** What reading an answer came to. Everything but `evidence` leaves what was asked for Unknown. */
export type EvidenceReading<K extends EvidenceKind> =
  | { readonly outcome: 'evidence'; readonly evidence: EvidenceOf<K> }
  /** A format that this program does not know. */
  | { readonly outcome: 'unsupported'; readonly schema: string }
  /** An answer to another question: another nonce, or another kind of probe. */
  | { readonly outcome: 'otherAnswer'; readonly message: string }
  | { readonly outcome: 'tooLarge'; readonly limitBytes: number }
  | { readonly outcome: 'invalid'; readonly message: string };

export interface EvidenceQuestion<K extends EvidenceKind> {
  readonly kind: K;
  readonly nonce: string;
}

/** Reads an answer. What it holds beyond the format is left out, so that a newer probe can be read. */
export function parseEvidence<K extends EvidenceKind>(
  body: Uint8Array,
  asked: EvidenceQuestion<K>,
): EvidenceReading<K> {
  if (body.byteLength > limits.evidenceBytes) return { outcome: 'tooLarge', limitBytes: limits.evidenceBytes };
  const value = readJson(body);
  if (value === undefined) return { outcome: 'invalid', message: 'the body is not JSON in UTF-8' };
  const schema = schemaOf(value);
  if (schema !== undefined && schema !== evidenceSchema) return { outcome: 'unsupported', schema };
  const parsed = evidence.safeParse(value);
  if (!parsed.success) return { outcome: 'invalid', message: firstIssue(parsed.error) };
  const found = parsed.data;
  if (!isKind(found, asked.kind))
    return { outcome: 'otherAnswer', message: `asked for ${asked.kind}, answered ${found.kind}` };
  if (found.nonce !== asked.nonce) return { outcome: 'otherAnswer', message: 'the nonce is not the one that was sent' };
  const contradiction = contradictionIn(found);
  return contradiction === undefined
    ? { outcome: 'evidence', evidence: found }
    : { outcome: 'invalid', message: contradiction };
}

/** Half of a character can only be written as such an escape. */
const halves = /\\u[dD][89a-fA-F][0-9a-fA-F]{2}/;

function readJson(body: Uint8Array): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    return halves.test(text) ? JSON.parse(text, mended) : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whoever cuts a text may cut a character: what is left of it has no place in a message, nor in a digest. */
const mended = (_key: string, value: unknown): unknown => (typeof value === 'string' ? value.toWellFormed() : value);

/** The name of a format of evidence, known or not; undefined where the answer does not claim to be evidence. */
function schemaOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('schema' in value)) return undefined;
  const { schema } = value;
  return typeof schema === 'string' && /^keelson\.dev\/evidence\/v[0-9]{1,6}$/.test(schema) ? schema : undefined;
}

/** Names the place, never the value: what a probe sends is not repeated in messages before it was understood. */
function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return 'the answer does not have the form of evidence';
  const place = issue.path.map(String).join('.');
  return `${place === '' ? 'answer' : place}: ${issue.code}`.slice(0, 256);
}

const isKind = <K extends EvidenceKind>(found: Evidence, kind: K): found is EvidenceOf<K> => found.kind === kind;

/** Every component stands in exactly one of the two places, and `complete` says whether one stands among the problems. */
function contradictionIn(found: Evidence): string | undefined {
  const facts: Readonly<Record<string, unknown>> = found.facts;
  const troubled = new Set(found.problems.map((one) => one.component));
  for (const component of evidenceComponents[found.kind]) {
    const seen = facts[component] !== undefined;
    if (seen && troubled.has(component)) return `${component} is both a fact and a problem`;
    if (!seen && !troubled.has(component)) return `${component} is neither a fact nor a problem`;
  }
  if (found.complete !== (found.problems.length === 0)) return 'complete does not agree with the problems';
  return undefined;
}
