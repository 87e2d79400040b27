import { SocketAddress } from 'node:net';
import type { AddressFamily } from '../../constructs/api/evidence/words.ts';

/** Names of Services, asked of the resolvers that the pod was given; never of a cache. */

export type Resolved =
  /** Addresses in their shortest form; none where the name has none of the family. */
  | { readonly type: 'resolved'; readonly addresses: readonly string[] }
  | { readonly type: 'timeout' | 'refused' | 'failed'; readonly message: string };

export type Resolve = (name: string, family: AddressFamily, signal: AbortSignal) => Promise<Resolved>;

/** One spelling of an address. */
export const plainAddress = (address: string): string =>
  new SocketAddress({ address, family: address.includes(':') ? 'ipv6' : 'ipv4' }).address;

/** The full name of a Service, by the search list that the kubelet writes into resolv.conf. */
export function serviceName(
  service: { readonly namespace: string; readonly name: string },
  resolvConf: string,
): string {
  const searches =
    [...resolvConf.matchAll(/^[ \t]*search[ \t]+(.+)$/gm)]
      .at(-1)?.[1]
      ?.trim()
      .split(/[ \t]+/) ?? [];
  const services = searches.find((one) => one.startsWith('svc.'))?.replace(/\.$/, '') ?? 'svc';
  return `${service.name}.${service.namespace}.${services}`;
}

const noAddress: readonly (string | undefined)[] = ['ENODATA', 'ENOTFOUND'];

/** Asks these servers, `address` or `address:port` each; those of resolv.conf where none are named. */
export const resolverOf =
  (servers: readonly string[] = [], tryMs = 1_000): Resolve =>
  async (name, family, signal) => {
    // Loaded where it is needed: the sidecars beside the daemons ask for no names.
    const { Resolver } = await import('node:dns/promises');
    if (signal.aborted) return { type: 'timeout', message: `no answer to ${name} in time` };
    // Two tries: a lost datagram is not a name that does not resolve.
    const resolver = new Resolver({ timeout: tryMs, tries: 2 });
    if (servers.length > 0) resolver.setServers([...servers]);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const found = family === 'IPv4' ? await resolver.resolve4(name) : await resolver.resolve6(name);
      return { type: 'resolved', addresses: found.map(plainAddress) };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (noAddress.includes(code)) return { type: 'resolved', addresses: [] };
      if (code === 'ETIMEOUT' || code === 'ECANCELLED')
        return { type: 'timeout', message: `no answer to ${name} in time` };
      return { type: code === 'ECONNREFUSED' ? 'refused' : 'failed', message: `${name}: ${code ?? 'failed'}` };
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
