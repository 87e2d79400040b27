import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { canonicalJson, type JsonObject } from '../../constructs/lib/json.ts';
import { maxChartBytes } from '../../renderer/charts/acquire.ts';
import { createChartCache } from '../../renderer/charts/cache.ts';
import { loadChart, lockChart } from '../../renderer/charts/load.ts';
import type { ChartSupply, Checked } from '../../renderer/charts/types.ts';
import { createProofStore, renderDeterministic } from '../../renderer/helm/determinism.ts';
import { type Helm, openHelm } from '../../renderer/helm/open.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import type { HttpClient } from '../../renderer/http/types.ts';
import type { LockRecorder } from '../../renderer/lock/collect.ts';
import { type NetworkSupply, networkRenderer } from '../../renderer/network/render.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { createRegistryClient, type RegistryClient } from '../../renderer/oci/registry.ts';
import { putChart, putImage } from '../standins/artifacts.ts';
import { startCrane } from '../standins/crane.ts';
import { pushArtifact, pushBlob } from '../standins/push.ts';
import { startRegistry } from '../standins/registry.ts';
import { ensureTool } from '../tools/tools.ts';

/** A registry on the loopback address with charts and images in it. */
export interface Shelf {
  readonly host: string;
  /** Requests that it answered so far. */
  requests(): number;
  putChart(tag: string, archive: Uint8Array): Promise<void>;
  putImage(repository: string, tag: string): Promise<void>;
  close(): Promise<void>;
}

/** A stand-in in this process, which counts what it is asked. */
export async function countingShelf(): Promise<Shelf> {
  const registry = await startRegistry();
  return {
    host: registry.host,
    requests: () => registry.requests.length,
    async putChart(tag, archive) {
      putChart(registry, 'charts/kube-ovn', tag, archive);
    },
    async putImage(repository, tag) {
      putImage(registry, repository, tag, ['linux/amd64']);
    },
    close: () => registry.close(),
  };
}

const chartLayer = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

/** A registry by another hand: `crane registry serve`. It counts nothing. */
export async function craneShelf(): Promise<Shelf> {
  const { host, close } = await startCrane();
  return {
    host,
    requests: () => Number.NaN,
    async putChart(tag, archive) {
      const digest = await pushBlob(host, 'charts/kube-ovn', archive);
      const layers = [{ mediaType: chartLayer, digest, size: archive.length }];
      await pushArtifact(host, 'charts/kube-ovn', tag, { config: {}, layers });
    },
    async putImage(repository, tag) {
      await pushArtifact(host, repository, tag, { config: { os: 'linux', architecture: 'amd64' }, layers: [] });
    },
    close,
  };
}

/** Chart fetching and the real Helm, with everything that was rendered before kept for this process. */
export interface Workbench {
  readonly registry: RegistryClient;
  /** The network renderer; a recorder is told what a lock has to hold. */
  renderer(recorder?: LockRecorder): ReturnType<typeof networkRenderer>;
  close(): Promise<void>;
}

const helmVersion = '3.19.2';

/** A workbench for the charts and images of a shelf. */
export async function workbench(shelf: Shelf): Promise<Workbench> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-network-'));
  const http: HttpClient = createHttpClient({
    allowedHosts: [shelf.host],
    allowField: 'spec.allow.chartHosts',
    clock: systemClock,
    random: Math.random,
  });
  const registries = [{ match: 'docker.io/kubeovn', mirror: `${shelf.host}/kubeovn` }];
  const registry = createRegistryClient({ http, credentials: anonymous, registries });
  const charts: ChartSupply = {
    http,
    registry,
    cache: createChartCache(join(folder, 'cache'), maxChartBytes),
    allowedHosts: [shelf.host],
  };
  const proofs = createProofStore([], join(folder, 'proofs'));
  const program = await ensureTool('helm', { onProgress: (line) => console.error(line) });
  const opened: Checked<Helm> = await openHelm({ program, version: helmVersion, tempFolder: folder });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  const helm = opened.value;
  const rendered = new Map<string, Promise<Awaited<ReturnType<typeof renderDeterministic>>>>();
  const supply = (recorder?: LockRecorder): NetworkSupply => ({
    async chart(request, signal) {
      const chart = await loadChart(request, charts, signal);
      if (chart.ok) recorder?.chart(lockChart(chart.value));
      return chart;
    },
    async helm(input, signal) {
      const { chart, ...rest } = input;
      const key = sha256Digest(
        canonicalJson({ ...rest, chart: chart.digest, without: [...chart.without] } as unknown as JsonObject),
      );
      const known = rendered.get(key) ?? renderDeterministic(helm, input, { proofs, clock: systemClock }, signal);
      rendered.set(key, known);
      const output = await known;
      if (!output.ok) return output;
      recorder?.proof(output.value.proof);
      return { ok: true, value: { ...output.value, version: helm.version } };
    },
  });
  return {
    registry,
    renderer: (recorder) => networkRenderer(supply(recorder)),
    async close() {
      http.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export { helmVersion };
