import { BlockList, isIP } from 'node:net';
import { isLoopbackLiteral, splitHostPort } from './address.ts';
import type { ProxySettings } from './types.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Proxy settings of an environment (`HTTPS_PROXY`, `NO_PROXY`, lower case first); entry points call this once. */
export function proxyFromEnvironment(environment: Environment): ProxySettings {
  const read = (name: string): string | undefined => {
    const value = environment[name.toLowerCase()] ?? environment[name];
    return value === undefined || value.trim() === '' ? undefined : value.trim();
  };
  const [httpsProxy, noProxy] = [read('HTTPS_PROXY'), read('NO_PROXY')];
  return { ...(httpsProxy === undefined ? {} : { httpsProxy }), ...(noProxy === undefined ? {} : { noProxy }) };
}

function inSubnet(address: string, cidr: string): boolean {
  const [network, bits] = cidr.split('/');
  const [family, own] = [isIP(network ?? ''), isIP(address)];
  if (network === undefined || family === 0 || family !== own) return false;
  const prefix = Number(bits);
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, family === 4 ? 'ipv4' : 'ipv6');
  return list.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

function exempt(url: URL, entry: string): boolean {
  if (entry === '*') return true;
  const host = url.hostname.toLowerCase().replace(/^\[|\]$/g, '');
  if (entry.includes('/')) return inSubnet(host, entry);
  const bare = isIP(entry) === 6 ? { host: entry } : splitHostPort(entry);
  if (bare.port !== undefined && bare.port !== (url.port === '' ? '443' : url.port)) return false;
  const name = bare.host.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, '');
  if (name.startsWith('.')) return host.endsWith(name);
  return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
}

/** The proxy that a request to `url` goes through, or undefined for a direct connection. */
export function proxyFor(url: URL, settings: ProxySettings): string | undefined {
  if (settings.httpsProxy === undefined || url.protocol !== 'https:' || isLoopbackLiteral(url.hostname))
    return undefined;
  const entries = (settings.noProxy ?? '')
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '');
  return entries.some((entry) => exempt(url, entry)) ? undefined : settings.httpsProxy;
}
