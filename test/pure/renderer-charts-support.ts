import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type CacheFiles, createChartCache } from '../../renderer/charts/cache.ts';
import { loadChart } from '../../renderer/charts/load.ts';
import type { ChartRequest, Checked, LoadedChart } from '../../renderer/charts/types.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import { type ChartVariant, chartArchive } from '../standins/chart.ts';
import { type Handler, type ServerOptions, type StandInServer, startServer } from '../standins/httpserver.ts';

const place = (path: string) => ({ file: 'network.yaml', line: 7, path });
export const places = {
  source: place('spec.chart.source'),
  digest: place('spec.chart.digest'),
  version: place('spec.version'),
  kubernetesVersion: { file: 'cluster.yaml', path: 'spec.kubernetesVersion' },
};

interface Bed {
  readonly folder: string;
  readonly server: StandInServer;
  load(
    request: Partial<ChartRequest>,
    more?: { allowedHosts?: string[]; files?: CacheFiles },
  ): Promise<Checked<LoadedChart>>;
}

/** A server that answers by `handler`, an empty cache, and charts loaded through both. */
export async function withServer(
  handler: Handler,
  body: (bed: Bed) => Promise<void>,
  options: ServerOptions = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-charts-'));
  const server = await startServer(handler, options);
  try {
    await body({
      folder,
      server,
      async load(request, more = {}) {
        const allowedHosts = more.allowedHosts ?? [server.host];
        const limits = { idleMs: 200, totalMs: 2_000 };
        const http = createHttpClient({
          allowedHosts,
          allowField: 'spec.allow.chartHosts',
          clock: systemClock,
          random: () => 0.5,
          limits,
          retry: { attempts: 2, initialMs: 1 },
        });
        const supply = {
          http,
          registry: createRegistryClient({ http, credentials: anonymous }),
          cache: createChartCache(join(folder, 'cache'), 1024 * 1024, more.files),
          allowedHosts,
        };
        const full = {
          source: `${server.url}/kube-ovn.tgz`,
          version: '1.16.2',
          kubernetesVersion: '1.34.2',
          places,
          ...request,
        };
        try {
          return await loadChart(full, supply);
        } finally {
          http.close();
        }
      },
    });
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
}

export const serve =
  (bytes: Uint8Array): Handler =>
  (_, response) =>
    response.end(bytes);

export function problems(outcome: Checked<unknown>): readonly Problem[] {
  if (outcome.ok) throw new Error('expected problems');
  for (const problem of outcome.problems)
    assert.ok(problem.file !== undefined && problem.path !== undefined, JSON.stringify(problem));
  return outcome.problems;
}

export const reasons = (outcome: Checked<unknown>): string[] => problems(outcome).map((problem) => problem.reason);

export function loaded(outcome: Checked<LoadedChart>): LoadedChart {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value;
}

/** Loads an archive that the server gives under its right digest; the outcome is about its content. */
export async function loadArchive(
  archive: Uint8Array,
  request: Partial<ChartRequest> = {},
): Promise<Checked<LoadedChart>> {
  let outcome: Checked<LoadedChart> | undefined;
  await withServer(serve(archive), async ({ load }) => {
    outcome = await load({ digest: sha256Digest(archive), ...request });
  });
  if (outcome === undefined) throw new Error('unreachable');
  return outcome;
}

export const loadVariant = async (variant: ChartVariant, request: Partial<ChartRequest> = {}) =>
  loadArchive(await chartArchive(variant), request);
