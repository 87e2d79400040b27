import { z } from 'zod';
import type { Problem } from '../lib/problems.ts';
import { digest, dnsLabel, timestamp } from './fields.ts';
import { readShape, type Shaped } from './shape.ts';

/**
 * Where a release is inside a one-way span of phases. It is stored with the ledger, before the first write of the span: what
 * a status says may be lost or late, and what it does not say must not open the way for another payload.
 */
export const spanPosition = z.strictObject({
  /** Payload that brought the release into the span. */
  payload: digest(),
  /** Payload that was carried out in full before it: the only other one that is accepted, as a rollback. */
  back: digest(),
  from: dnsLabel(),
  to: dnsLabel(),
  /** `back` once the rollback was accepted; then only the end of a full pass leaves the span. */
  direction: z.enum(['forward', 'back']),
  since: timestamp(),
});
export type SpanPosition = z.infer<typeof spanPosition>;

/** As it stands in an annotation. */
export const spanText = (position: SpanPosition): string => JSON.stringify(position);

/** Reads the annotation; none is no position. */
export function readSpan(text: string | undefined, object: string): Shaped<SpanPosition | undefined> {
  if (text === undefined) return { ok: true, value: undefined };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, problems: [unreadable(object)] };
  }
  return readShape(spanPosition, value, unreadable(object));
}

const unreadable = (object: string): Problem => ({
  reason: 'LedgerUnreadable',
  message: 'what it says of a one-way span can not be read',
  object,
  remedy: 'restore the ConfigMap from a backup of etcd; nothing is written until it can be read',
});
