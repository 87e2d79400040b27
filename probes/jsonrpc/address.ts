/** Where a daemon listens, in OVSDB's notation: `unix:PATH`, `tcp:HOST[:PORT]`, `ssl:HOST[:PORT]`. */
import { isIPv6 } from 'node:net';

export type Address =
  | { readonly type: 'unix'; readonly path: string }
  | { readonly type: 'tcp' | 'ssl'; readonly host: string; readonly port: number };

/** The port that an address without one means. */
const defaultPort = 6640;

/** The parts of an address, or undefined. A literal may stand in brackets in either family, as Kube-OVN writes it. */
export function parseAddress(text: string): Address | undefined {
  const colon = text.indexOf(':');
  const scheme = text.slice(0, colon);
  const place = text.slice(colon + 1);
  if (scheme === 'unix') return place === '' ? undefined : { type: 'unix', path: place };
  if (scheme !== 'tcp' && scheme !== 'ssl') return undefined;
  if (isIPv6(place)) return { type: scheme, host: place, port: defaultPort };
  const [, bracketed, plain, digits] =
    /^(?:\[([0-9A-Za-z.:%]+)\]|([0-9A-Za-z.-]+))(?::([0-9]{1,5}))?$/.exec(place) ?? [];
  const host = bracketed ?? plain;
  const port = digits === undefined ? defaultPort : Number(digits);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { type: scheme, host, port };
}

/** One notation for one place, whatever brackets it came in. */
export function formatAddress(address: Address): string {
  if (address.type === 'unix') return `unix:${address.path}`;
  const host = address.host.toLowerCase();
  return `${address.type}:${isIPv6(host) ? `[${host}]` : host}:${address.port}`;
}
