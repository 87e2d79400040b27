/** The errors that an OVSDB server answers with; a word that is not listed stays `unknown`, and a caller fails closed on it. */
import { errorText } from '../jsonrpc/connection.ts';
import { type Json, member } from '../jsonrpc/json.ts';

const words = {
  'not owner': 'notOwner',
  'timed out': 'timedOut',
  'constraint violation': 'constraintViolation',
  'referential integrity violation': 'referentialIntegrity',
  'not supported': 'notSupported',
  'I/O error': 'io',
  canceled: 'canceled',
  aborted: 'aborted',
  'database not available': 'databaseUnavailable',
  'unknown database': 'unknownDatabase',
  'unknown method': 'unknownMethod',
  'syntax error': 'syntax',
  'cluster error': 'cluster',
} as const;

export type DatabaseErrorKind = (typeof words)[keyof typeof words] | 'unknown';

export interface DatabaseError {
  readonly kind: DatabaseErrorKind;
  /** The server's words. */
  readonly text: string;
}

const known = new Map<string, DatabaseErrorKind>(Object.entries(words));

/** What an error says, whether it came as a text or as an object. */
export function databaseError(error: Json): DatabaseError {
  const word = typeof error === 'string' ? error : member(error, 'error');
  return { kind: (typeof word === 'string' ? known.get(word) : undefined) ?? 'unknown', text: errorText(error) };
}
