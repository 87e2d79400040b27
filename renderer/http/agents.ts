import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import tls from 'node:tls';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { splitHostPort } from './address.ts';
import { proxyFor } from './proxy.ts';
import type { ExtraCA, ProxySettings } from './types.ts';

type Agent = http.Agent | https.Agent;

/** Connection pools of one client, one per (proxy, trusted certificates). */
export interface Agents {
  agentFor(url: URL): Agent;
  close(): void;
}

interface Trust {
  readonly minVersion: 'TLSv1.2';
  readonly ca?: string[];
}

/** The library keeps TLS options for the proxy itself; here they count for the host behind it as well. */
class TrustingProxyAgent extends HttpsProxyAgent<string> {
  readonly #trust: Trust;

  constructor(proxy: string, trust: Trust) {
    super(proxy, { ...pool, ...trust });
    this.#trust = trust;
  }

  override connect(...[request, options]: Parameters<HttpsProxyAgent<string>['connect']>): Promise<Socket> {
    return super.connect(request, { ...options, ...this.#trust });
  }
}

const pool = { keepAlive: true, maxSockets: 8 } as const;

/** The extra certificates that count for `url`. */
function extraFor(url: URL, extra: readonly ExtraCA[]): string[] {
  return extra
    .filter(({ host }) => {
      if (host === undefined) return true;
      const wanted = splitHostPort(host.toLowerCase());
      return (
        wanted.host === url.hostname &&
        (wanted.port === undefined || wanted.port === (url.port === '' ? '443' : url.port))
      );
    })
    .map(({ pem }) => pem);
}

/** Pools that honour the proxy and add `extra` to the certificates that this process trusts. */
export function createAgents(proxy: ProxySettings, extra: readonly ExtraCA[]): Agents {
  const made = new Map<string, Agent>();
  const plain = new http.Agent(pool);

  function make(via: string | undefined, pems: readonly string[]): Agent {
    const trust: Trust = {
      minVersion: 'TLSv1.2',
      ...(pems.length === 0 ? {} : { ca: [...tls.getCACertificates('default'), ...pems] }),
    };
    return via === undefined ? new https.Agent({ ...pool, ...trust }) : new TrustingProxyAgent(via, trust);
  }

  return {
    agentFor(url) {
      if (url.protocol === 'http:') return plain;
      const [via, pems] = [proxyFor(url, proxy), extraFor(url, extra)];
      const key = JSON.stringify([via ?? null, pems]);
      const agent = made.get(key) ?? make(via, pems);
      made.set(key, agent);
      return agent;
    },
    close() {
      plain.destroy();
      for (const agent of made.values()) agent.destroy();
      made.clear();
    },
  };
}
