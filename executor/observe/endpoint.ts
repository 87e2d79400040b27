/** Endpoints as OVSDB writes them, in one form, so that two spellings of an address compare as equal. */

export interface Endpoint {
  readonly protocol: string;
  /** Without brackets; IPv6 in its shortest form. */
  readonly host: string;
  readonly port: string;
}

const form = /^(tcp|ssl):(?:\[([^\]]*)\]|([^:[\]]+)):([0-9]{1,5})$/;

/** An address in the form in which it compares; what is none stays as it is. */
export function plainHost(host: string): string {
  if (!host.includes(':')) return host.toLowerCase();
  try {
    return new URL(`http://[${host}]`).hostname.slice(1, -1);
  } catch {
    return host.toLowerCase();
  }
}

/** Parts of `tcp:<host>:<port>` or `ssl:<host>:<port>`, bracketed or not; undefined for anything else. */
export function parseEndpoint(text: string): Endpoint | undefined {
  const [, protocol, bracketed, bare, port] = form.exec(text) ?? [];
  const host = bracketed ?? bare;
  if (protocol === undefined || host === undefined || port === undefined) return undefined;
  return { protocol, host: plainHost(host), port };
}

/** One spelling of an endpoint; of what is none, the text itself. */
export function plainEndpoint(text: string): string {
  const found = parseEndpoint(text);
  if (found === undefined) return text;
  const host = found.host.includes(':') ? `[${found.host}]` : found.host;
  return `${found.protocol}:${host}:${found.port}`;
}

export const sameEndpoint = (a: string, b: string): boolean => plainEndpoint(a) === plainEndpoint(b);
