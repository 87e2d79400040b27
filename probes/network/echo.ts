import { readServer, type ServerIdentity } from '../../constructs/api/evidence/question.ts';

/** What clients and servers of the network probe say to one another: a nonce, and who answers it. */

export const echoPath = '/v1/echo';

/** Bytes of an answer. */
export const echoLimit = 2 * 1024;

export const echoText = ({ namespace, podUID, node }: ServerIdentity, nonce: string): string =>
  JSON.stringify({ nonce, namespace, podUID, node });

/** Who answered; undefined for an answer to another nonce, and for anything that no server of ours says. */
export function readEcho(text: string, nonce: string): ServerIdentity | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const known = typeof value === 'object' && value !== null && 'nonce' in value && value.nonce === nonce;
  return known ? readServer(value) : undefined;
}
