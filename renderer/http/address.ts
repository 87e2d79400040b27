import { isIPv4 } from 'node:net';
import type { HttpFailure } from './types.ts';

/** `host` as URLs print it (`[::1]` in brackets): is it a literal address of 127.0.0.0/8 or `[::1]`? Names never are. */
export function isLoopbackLiteral(host: string): boolean {
  return host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
}

/** `host[:port]` split at the port; brackets of IPv6 addresses stay. */
export function splitHostPort(text: string): { host: string; port?: string } {
  const match = /^(\[[^\]]*\]|[^:[\]]+)(?::([0-9]{1,5}))?$/.exec(text);
  if (match?.[1] === undefined) return { host: text };
  return { host: match[1], ...(match[2] === undefined ? {} : { port: match[2] }) };
}

/** The address without what may be secret: no user information, no query, no fragment. */
export function safeUrl(url: string | URL): string {
  const parsed = typeof url === 'string' ? parseUrl(url) : url;
  return parsed === undefined ? '(not a URL)' : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}

/** The URL, or undefined when the text is not one. */
export function parseUrl(text: string, base?: URL): URL | undefined {
  return URL.canParse(text, base?.href) ? new URL(text, base) : undefined;
}

function portOf(url: URL): string {
  return url.port !== '' ? url.port : url.protocol === 'https:' ? '443' : '80';
}

/** True when an entry of the list names the host (and port) of `url` exactly. */
function hostAllowed(url: URL, allowed: readonly string[]): boolean {
  const host = url.hostname.toLowerCase().replace(/\.$/, '');
  return allowed.some((entry) => {
    const wanted = splitHostPort(entry.toLowerCase());
    if (wanted.host.replace(/\.$/, '') !== host) return false;
    if (wanted.port !== undefined) return wanted.port === portOf(url);
    return isLoopbackLiteral(host) || url.port === '';
  });
}

/** The host of a URL as it was written, before the URL parser rewrites forms such as `127.1` or `0x7f000001`. */
function writtenHost(text: string): string | undefined {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text.trim())?.[1];
  return authority === undefined ? undefined : splitHostPort(authority.replace(/^.*@/, '')).host.toLowerCase();
}

function refusal(url: string, message: string, remedy: string): { ok: false; failure: HttpFailure } {
  return { ok: false, failure: { kind: 'refused', url: safeUrl(url), message, remedy } };
}

/**
 * Whether `text` may be contacted: https, or http to a literal loopback address; no user information; the host on the list.
 * Applied to the first address and again to every redirect.
 */
export function admitUrl(
  text: string,
  allowed: readonly string[],
  allowField: string,
): { ok: true; url: URL } | { ok: false; failure: HttpFailure } {
  const url = parseUrl(text);
  if (url === undefined) return refusal(text, 'the address is not a URL', 'give an absolute https:// URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return refusal(text, `the scheme '${url.protocol.slice(0, -1)}' is not allowed`, 'use https://');
  if (url.username !== '' || url.password !== '')
    return refusal(
      text,
      'the URL carries credentials',
      'take them out of the URL; registries use the Docker credential store',
    );
  const host = url.hostname;
  const loopback = isLoopbackLiteral(host) && writtenHost(text) === host;
  if (url.protocol === 'http:' && !loopback)
    return refusal(
      text,
      `plain http is accepted only for literal loopback addresses, not for '${writtenHost(text) ?? host}'`,
      'use https://, or 127.0.0.1 or [::1] in a local test',
    );
  if (!hostAllowed(url, allowed))
    return refusal(text, `the host '${url.host}' is not allowed`, `add '${url.host}' to ${allowField} in cluster.yaml`);
  return { ok: true, url };
}
