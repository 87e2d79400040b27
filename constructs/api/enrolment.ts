/**
 * How a probe comes by its certificate, over the connection that the executor dialled: the executor asks
 * (`GET /v1/enrolment`), looks at what it got, and hands the certificate over (`PUT /v1/enrolment`). A certificate that the
 * executor does not know is given up (`DELETE /v1/enrolment`), and all starts anew. Written without
 * the schema library, since a sidecar reads it too.
 */

export const enrolmentPath = '/v1/enrolment';
const enrolmentSchema = 'keelson.dev/enrolment/v1';

/** What a probe asks for: a PKCS#10 request in PEM, and a token that proves its pod. */
export interface EnrolmentRequest {
  readonly csr: string;
  readonly token: string;
}

/** What it gets: its certificate in PEM. */
export interface EnrolmentGrant {
  readonly certificate: string;
}

/** Bytes. */
export const enrolmentLimits = { request: 32 * 1024, grant: 16 * 1024 } as const;

export const enrolmentRequestText = ({ csr, token }: EnrolmentRequest): string =>
  JSON.stringify({ schema: enrolmentSchema, csr, token });

export const enrolmentGrantText = ({ certificate }: EnrolmentGrant): string =>
  JSON.stringify({ schema: enrolmentSchema, certificate });

/** Strings of a message of this protocol; undefined for anything else. */
function strings<K extends string>(text: string, keys: readonly K[]): Record<K, string> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const members = value as Readonly<Record<string, unknown>>;
  if (members.schema !== enrolmentSchema) return undefined;
  const found = keys.map((key): [K, unknown] => [key, members[key]]);
  if (!found.every((entry): entry is [K, string] => typeof entry[1] === 'string' && entry[1] !== '')) return undefined;
  return Object.fromEntries(found) as Record<K, string>;
}

/** Reads a request; undefined when it is none. */
export const parseEnrolmentRequest = (text: string): EnrolmentRequest | undefined => strings(text, ['csr', 'token']);

/** Reads a grant; undefined when it is none. */
export const parseEnrolmentGrant = (text: string): EnrolmentGrant | undefined => strings(text, ['certificate']);
