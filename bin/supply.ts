import { access, constants } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { RegistryMirror } from '../constructs/api/cluster.ts';
import { groupOf } from '../constructs/lib/names.ts';
import { ProblemError, refuseProblems } from '../constructs/lib/problems.ts';
import { addressesRenderer } from '../renderer/addresses/render.ts';
import type { HelmCache } from '../renderer/cache/helm.ts';
import { maxChartBytes } from '../renderer/charts/acquire.ts';
import { createChartCache } from '../renderer/charts/cache.ts';
import { loadChart, lockChart } from '../renderer/charts/load.ts';
import type { ChartSupply } from '../renderer/charts/types.ts';
import type { DomainRenderer } from '../renderer/domain.ts';
import { createProofStore, proofOf, renderDeterministic } from '../renderer/helm/determinism.ts';
import { type Helm, openHelm } from '../renderer/helm/open.ts';
import { createHttpClient } from '../renderer/http/client.ts';
import { proxyFromEnvironment } from '../renderer/http/proxy.ts';
import type { HttpClient, RetryPolicy } from '../renderer/http/types.ts';
import type { LoadedCluster } from '../renderer/load/load.ts';
import type { LockRecorder } from '../renderer/lock/collect.ts';
import { findHelmVersion } from '../renderer/lock/helm.ts';
import { type NetworkSupply, networkRenderer } from '../renderer/network/render.ts';
import { mirrorCertificates } from '../renderer/oci/certificates.ts';
import { dockerCredentials, helperEnvironment, registryConfigFiles } from '../renderer/oci/credentials.ts';
import { mirrorHosts, unmirrored } from '../renderer/oci/mirrors.ts';
import { reachableHosts } from '../renderer/oci/reference.ts';
import { createRegistryClient, type RegistryClient } from '../renderer/oci/registry.ts';
import { openSession, type RegistrySession } from '../renderer/oci/session.ts';
import type { Invocation } from './invocation.ts';

/** Folder of what was fetched and proven before; losing it costs a download. */
export function cacheFolder(env: Invocation['env']): string {
  const home =
    env.KEELSON_CACHE ?? (env.XDG_CACHE_HOME === undefined ? undefined : join(env.XDG_CACHE_HOME, 'keelson'));
  return home ?? join(env.HOME ?? tmpdir(), '.cache', 'keelson');
}

export interface Connection {
  readonly http: HttpClient;
  readonly registry: RegistryClient;
  /** Takes references as they are, without mirrors. */
  readonly session: RegistrySession;
}

export interface ConnectionRules {
  readonly folder: string;
  readonly hosts: readonly string[];
  readonly field: string;
  readonly registries: readonly RegistryMirror[];
  readonly retry?: Partial<RetryPolicy>;
}

/** The way out to registries and chart hosts, by the rules of a cluster. @throws ProblemError for a bad certificate. */
export async function connect(invocation: Invocation, rules: ConnectionRules): Promise<Connection> {
  const { env, clock, random } = invocation;
  const { certificates, problems } = await mirrorCertificates(rules.registries, rules.folder);
  refuseProblems(problems);
  const http = createHttpClient({
    allowedHosts: [...reachableHosts(rules.hosts), ...mirrorHosts(rules.registries)],
    allowField: rules.field,
    clock,
    random,
    proxy: proxyFromEnvironment(env),
    ca: certificates,
    ...(rules.retry === undefined ? {} : { retry: rules.retry }),
  });
  const credentials = dockerCredentials({ configFiles: registryConfigFiles(env), helperEnv: helperEnvironment(env) });
  const options = { http, credentials, registries: rules.registries };
  return { http, registry: createRegistryClient(options), session: openSession(options) };
}

/** The helm program: `KEELSON_HELM`, or the first on the PATH. @throws ProblemError when there is none. */
async function helmProgram(invocation: Invocation): Promise<string> {
  const { env, cwd } = invocation;
  const chosen = env.KEELSON_HELM;
  const places =
    chosen !== undefined ? [chosen] : (env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'helm'));
  for (const place of places) {
    const path = isAbsolute(place) ? place : resolve(cwd, place);
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return path;
  }
  throw new ProblemError([
    {
      reason: 'HelmUnavailable',
      message: chosen === undefined ? 'there is no helm on the PATH' : `KEELSON_HELM (${chosen}) is not a program`,
      remedy: 'install the Helm that keelson.lock.yaml names, or set KEELSON_HELM to it',
    },
  ]);
}

/** What a render of charts works with; made on first use, since plain manifests need none of it. */
interface Tools extends Connection {
  readonly helm: () => Promise<Helm>;
}

async function openTools(invocation: Invocation, loaded: LoadedCluster, use: Use): Promise<Tools> {
  const { spec } = loaded.cluster;
  const { folder } = use;
  const hosts = spec.allow.chartHosts;
  const connection = await connect(invocation, {
    folder,
    hosts,
    field: 'spec.allow.chartHosts',
    registries: use.origins === true ? unmirrored(spec.registries) : spec.registries,
  });
  let opened: Promise<Helm> | undefined;
  const open = async (): Promise<Helm> => {
    const program = await helmProgram(invocation);
    const version = loaded.lock?.spec.tools.helm ?? (await findHelmVersion(program, invocation.signal));
    const helm = await openHelm({ program, version, tempFolder: tmpdir() }, invocation.signal);
    if (helm.ok) return helm.value;
    throw new ProblemError(helm.problems);
  };
  return {
    ...connection,
    helm: () => {
      opened ??= open();
      return opened;
    },
  };
}

/** A network supply over real tools; a recorder is told what a lock has to hold. */
function networkSupply(
  invocation: Invocation,
  loaded: LoadedCluster,
  tools: Tools,
  recorder?: LockRecorder,
  outputs?: HelmCache,
): NetworkSupply {
  const cache = cacheFolder(invocation.env);
  const charts: ChartSupply = {
    http: tools.http,
    registry: tools.registry,
    cache: createChartCache(cache, maxChartBytes),
    allowedHosts: loaded.cluster.spec.allow.chartHosts,
  };
  const proofs = createProofStore(loaded.lock?.spec.determinism ?? [], cache);
  return {
    async chart(request, signal) {
      const chart = await loadChart(request, charts, signal);
      if (chart.ok) recorder?.chart(lockChart(chart.value));
      return chart;
    },
    async helm(input, signal) {
      const locked = loaded.lock?.spec.tools.helm?.replace(/^v/, '');
      const known = locked === undefined ? undefined : await outputs?.read(proofOf(input, locked));
      if (known !== undefined && locked !== undefined) return { ok: true, value: { ...known, version: locked } };
      const helm = await tools.helm();
      const output = await renderDeterministic(helm, input, { proofs, clock: invocation.clock }, signal);
      if (!output.ok) return output;
      recorder?.proof(output.value.proof);
      await outputs?.write(output.value.proof, output.value);
      return { ok: true, value: { ...output.value, version: helm.version } };
    },
  };
}

const kindsOnly = networkRenderer({
  chart: () => Promise.reject(new TypeError('no supply')),
  helm: () => Promise.reject(new TypeError('no supply')),
});

const isNetwork = ({ identity }: LoadedCluster['specs'][number]): boolean =>
  kindsOnly.kinds.includes(`${groupOf(identity.apiVersion)}/${identity.kind}`);

/** What domains are opened for. */
interface Use {
  /** Of the cluster. */
  readonly folder: string;
  /** Charts come from where specs say, and from no mirror: it is about to be filled. */
  readonly origins?: boolean;
}

/** What domains are rendered for. */
export interface DomainUse {
  /** Told what a lock has to hold. */
  readonly recorder?: LockRecorder;
  /** Charts come from where specs say, and from no mirror. */
  readonly origins?: boolean;
  /** What Helm gave before. */
  readonly outputs?: HelmCache | undefined;
}

/** The domains that this program renders, over real tools. */
export function domains(
  invocation: Invocation,
  folder: string,
  { recorder, origins = false, outputs }: DomainUse = {},
): DomainRenderer[] {
  return [
    {
      domain: kindsOnly.domain,
      kinds: kindsOnly.kinds,
      async render(loaded, signal) {
        if (!loaded.specs.some(isNetwork)) return { releases: [], problems: [], warnings: [] };
        const tools = await openTools(invocation, loaded, { folder, origins });
        try {
          return await networkRenderer(networkSupply(invocation, loaded, tools, recorder, outputs)).render(
            loaded,
            signal,
          );
        } finally {
          tools.http.close();
        }
      },
    },
    addressesRenderer,
  ];
}
