import { isIP } from 'node:net';
import { type AddressFamily, addressFamilies, type NetworkTarget, networkTargets } from './words.ts';

/**
 * What a network probe is told to ask, as the executor has observed it: a probe has no account at the API server. It is the
 * body of `POST /v1/evidence?nonce=`. Written without the schema library, since a probe reads it too.
 */

const questionSchema = 'keelson.dev/network-question/v1';

/** Bytes and checks of a question. */
export const questionLimits = { bytes: 16 * 1024, checks: 32 } as const;

/** A pod that serves. */
export interface ServerIdentity {
  readonly namespace: string;
  readonly podUID: string;
  readonly node: string;
}

export interface WantedCheck {
  readonly target: NetworkTarget;
  readonly family: AddressFamily;
  /** Address to ask; of a name the only one that it may resolve to. */
  readonly address: string;
  readonly port: number;
  /** Who has to answer. Absent where any server may: who that was is then judged by the executor, which knows them all. */
  readonly server?: ServerIdentity;
}

export interface NetworkQuestion {
  /** The Service whose name is resolved. */
  readonly service?: { readonly namespace: string; readonly name: string };
  readonly checks: readonly WantedCheck[];
}

export const networkQuestionText = ({ service, checks }: NetworkQuestion): string =>
  JSON.stringify({ schema: questionSchema, ...(service === undefined ? {} : { service }), checks });

type Members = Readonly<Record<string, unknown>>;

const members = (value: unknown): Members | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : undefined;

const names = /^[0-9A-Za-z]([-.0-9A-Za-z]{0,251}[0-9A-Za-z])?$/;
const isName = (value: unknown): value is string => typeof value === 'string' && names.test(value);

/** A pod's identity, held to the forms that evidence may repeat; undefined for anything else. */
export function readServer(value: unknown): ServerIdentity | undefined {
  const { namespace, podUID, node } = members(value) ?? {};
  const readable =
    isName(namespace) && isName(node) && typeof podUID === 'string' && /^[0-9A-Za-z-]{1,64}$/.test(podUID);
  if (!readable || !/^[-a-z0-9]{1,63}$/.test(namespace) || node !== node.toLowerCase()) return undefined;
  return { namespace, podUID, node };
}

function readCheck(value: unknown): WantedCheck | undefined {
  const { target, family, address, port, server } = members(value) ?? {};
  const [to, by] = [networkTargets.find((one) => one === target), addressFamilies.find((one) => one === family)];
  if (to === undefined || by === undefined || typeof address !== 'string' || typeof port !== 'number') return undefined;
  if (isIP(address) !== (by === 'IPv4' ? 4 : 6) || !Number.isInteger(port) || port < 1 || port > 65_535)
    return undefined;
  const who = readServer(server);
  if (server !== undefined && who === undefined) return undefined;
  return { target: to, family: by, address, port, ...(who === undefined ? {} : { server: who }) };
}

/** Reads a question; undefined when it is none, or more than one may ask. */
export function parseNetworkQuestion(text: string): NetworkQuestion | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { schema, service, checks } = members(value) ?? {};
  if (schema !== questionSchema || !Array.isArray(checks) || checks.length > questionLimits.checks) return undefined;
  const read = checks.map(readCheck);
  const known = read.filter((one) => one !== undefined);
  if (known.length < read.length) return undefined;
  if (service === undefined) return { checks: known };
  const { namespace, name } = members(service) ?? {};
  return isName(namespace) && isName(name) ? { service: { namespace, name }, checks: known } : undefined;
}
