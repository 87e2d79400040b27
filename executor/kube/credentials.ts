/** Where the API server is and who we are: from a service account's files, or from a kubeconfig. */
import { readFile } from 'node:fs/promises';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../../constructs/lib/clock.ts';
import { boundPlugins } from './plugin.ts';

/** TLS material as text; `insecure` skips the check of the server's certificate (a kubeconfig may say so). */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly insecure: boolean;
}

/** What one request needs: `server` is a URL, `headers` carry the authorization. */
export interface Credentials {
  readonly server: string;
  readonly tls: TlsMaterial;
  readonly headers: Readonly<Record<string, string>>;
  /** URL of an HTTP proxy, from a kubeconfig's `proxy-url`. */
  readonly proxy?: string;
}

/**
 * Credentials that may rotate. `current` may answer from memory; `renewed` reads everything again, after a 401. Both
 * throw an Error that names the file or the kubeconfig when it cannot be read.
 */
export interface CredentialSource {
  current(): Promise<Credentials>;
  renewed(): Promise<Credentials>;
}

/** The members that have a value: an absent member and an undefined one differ to exact optional types. */
function defined(members: { readonly [key: string]: string | undefined }): { [key: string]: string } {
  return Object.fromEntries(
    Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/**
 * Remembers what `load` answered for `maxAgeMs`; simultaneous callers share one load. `load` is told whether everything
 * must be read anew, after a 401, or whether a plug-in's own memory will do.
 */
export function cachedCredentials(
  load: (anew: boolean) => Promise<Credentials>,
  clock: Clock,
  maxAgeMs: number,
): CredentialSource {
  let known: { readonly credentials: Credentials; readonly at: number } | undefined;
  const loading = new Map<boolean, Promise<Credentials>>();

  async function loaded(anew: boolean): Promise<Credentials> {
    const shared = loading.get(anew) ?? load(anew).finally(() => loading.delete(anew));
    loading.set(anew, shared);
    const credentials = await shared;
    known = { credentials, at: clock.monotonic() };
    return credentials;
  }

  return {
    current: async () =>
      known !== undefined && clock.monotonic() - known.at < maxAgeMs ? known.credentials : loaded(false),
    renewed: () => loaded(true),
  };
}

export interface InClusterOptions {
  /** Folder with `token` and `ca.crt`; both rotate in place. */
  readonly accountDir?: string;
  /** `host:port` from the service environment. */
  readonly serviceHost?: string;
  readonly servicePort?: string;
  /** An explicit `host:port`, so that no ClusterIP is needed. Wins over the service environment. */
  readonly apiServer?: string;
  /** The name that the server's certificate must carry, when it is not that of the endpoint. */
  readonly tlsServerName?: string;
  readonly clock: Clock;
  /** How long a token read from its file is used; the kubelet renews it long before it expires. Default 30 s. */
  readonly maxAgeMs?: number;
}

const accountRoot = '/var/run/secrets/kubernetes.io/serviceaccount';

/** `host:port` with brackets around a bare IPv6 address, which needs them to carry a port. */
export function hostPort(host: string, port: string): string {
  return `${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`;
}

/**
 * The pod's own service account, read without the client library: it would cost the executor 90 MB and half a second.
 * @throws Error when neither an endpoint nor the service environment is given.
 */
export function inClusterCredentials(options: InClusterOptions): CredentialSource {
  const dir = options.accountDir ?? accountRoot;
  const { serviceHost, servicePort, apiServer } = options;
  const endpoint =
    apiServer ??
    (serviceHost === undefined || servicePort === undefined ? undefined : hostPort(serviceHost, servicePort));
  if (endpoint === undefined)
    throw new Error(
      'no API server: neither --api-server nor KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are set',
    );
  return cachedCredentials(
    async () => {
      const [token, ca] = await Promise.all([readFile(`${dir}/token`, 'utf8'), readFile(`${dir}/ca.crt`, 'utf8')]);
      return {
        server: `https://${endpoint}`,
        tls: { ca, insecure: false, ...defined({ servername: options.tlsServerName }) },
        headers: { authorization: `Bearer ${token.trim()}` },
      };
    },
    options.clock,
    options.maxAgeMs ?? 30_000,
  );
}

export interface KubeConfigOptions {
  /** Path of a kubeconfig; absent: `$KUBECONFIG`, then `~/.kube/config`, as kubectl does. */
  readonly file?: string;
  readonly context?: string;
  /** An explicit `host:port` or URL in place of the cluster's; CA, `tls-server-name` and user stay. */
  readonly apiServer?: string;
  readonly clock: Clock;
  readonly maxAgeMs?: number;
  /** How long a credential plug-in may take; five minutes, since a person may have to log in. */
  readonly pluginLimitMs?: number;
  /** Ends a plug-in that is waited for. */
  readonly signal?: AbortSignal;
}

function text(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;
}

function serverUrl(configured: string, override: string | undefined): string {
  if (override === undefined) return configured;
  return /^https?:\/\//.test(override) ? override : `${new URL(configured).protocol}//${override}`;
}

function proxyOf(url: string | undefined): string | undefined {
  if (url === undefined || url === '') return undefined;
  if (!/^https?:\/\//.test(url))
    throw new Error(`kubeconfig: proxy-url '${url}' is no http or https URL; other proxies are not supported`);
  return url;
}

/** The credentials of the config's current context, whatever its plug-in (token, client certificate, exec, OIDC, token file). */
async function fromKubeConfig(config: KubeConfig, apiServer: string | undefined): Promise<Credentials> {
  const cluster = config.getCurrentCluster();
  if (cluster === null || !config.getCurrentUser())
    throw new Error(`kubeconfig: context '${config.getCurrentContext()}' names no cluster or no user`);
  const options: Record<string, unknown> = {};
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  if (typeof options.headers === 'object' && options.headers !== null)
    for (const [name, value] of Object.entries(options.headers)) headers[name.toLowerCase()] = String(value).trim();
  if (typeof options.auth === 'string')
    headers.authorization ??= `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return {
    server: serverUrl(cluster.server, apiServer),
    tls: {
      ...defined({
        ca: text(options.ca),
        cert: text(options.cert),
        key: text(options.key),
        servername: text(options.servername),
      }),
      insecure: options.rejectUnauthorized === false,
    },
    headers,
    ...defined({ proxy: proxyOf(cluster.proxyUrl) }),
  };
}

/**
 * Credentials from a kubeconfig, by the official client library (loaded here, on first use). It keeps a token read from
 * a file for a minute, whatever the server says; so after a 401 the whole configuration is read again. Otherwise a plug-in
 * is asked through the same instance, which remembers its credential until that expires.
 */
export function kubeConfigCredentials(options: KubeConfigOptions): CredentialSource {
  const { pluginLimitMs: limitMs = 300_000, signal } = options;
  let config: KubeConfig | undefined;
  let overdue: () => string | undefined = () => undefined;
  return cachedCredentials(
    async (anew) => {
      if (anew || config === undefined) {
        config = await readKubeConfig(options);
        overdue = boundPlugins(config, { limitMs, ...(signal === undefined ? {} : { signal }) });
      }
      try {
        return await fromKubeConfig(config, options.apiServer);
      } catch (error) {
        throw new Error(overdue() ?? (error instanceof Error ? error.message : String(error)), { cause: error });
      }
    },
    options.clock,
    options.maxAgeMs ?? 30_000,
  );
}

async function readKubeConfig({ file, context }: KubeConfigOptions): Promise<KubeConfig> {
  const { KubeConfig } = await import('./kubeconfig.ts');
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  if (context === undefined) return config;
  if (config.getContextObject(context) === null) {
    const known = config.getContexts().map(({ name }) => name);
    throw new Error(`kubeconfig: no context '${context}'; it has: ${known.join(', ') || 'none'}`);
  }
  config.setCurrentContext(context);
  return config;
}
