import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { readTarGz } from '../../constructs/lib/tar.ts';
import { packChart, unpackChart } from '../../renderer/charts/archive.ts';
import { type CacheFiles, createChartCache, localFiles } from '../../renderer/charts/cache.ts';
import { chartImageRepositories } from '../../renderer/charts/features.ts';
import { kubeVersionSatisfies } from '../../renderer/charts/kubeversion.ts';
import { loadChart, lockChart } from '../../renderer/charts/load.ts';
import type { ChartRequest, Checked, LoadedChart } from '../../renderer/charts/types.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import { putChart } from '../standins/artifacts.ts';
import { type ChartVariant, chartArchive, chartFiles } from '../standins/chart.ts';
import { type Handler, type ServerOptions, type StandInServer, startServer } from '../standins/httpserver.ts';
import { kubeVersionCases } from '../standins/kubeversions.ts';
import { startRegistry } from '../standins/registry.ts';

const place = (path: string) => ({ file: 'network.yaml', line: 7, path });
const places = {
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
async function withServer(
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

const serve =
  (bytes: Uint8Array): Handler =>
  (_, response) =>
    response.end(bytes);

function problems(outcome: Checked<unknown>): readonly Problem[] {
  if (outcome.ok) throw new Error('expected problems');
  for (const problem of outcome.problems)
    assert.ok(problem.file !== undefined && problem.path !== undefined, JSON.stringify(problem));
  return outcome.problems;
}

const reasons = (outcome: Checked<unknown>): string[] => problems(outcome).map((problem) => problem.reason);

function loaded(outcome: Checked<LoadedChart>): LoadedChart {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value;
}

/** Loads an archive that the server gives under its right digest; the outcome is about its content. */
async function loadArchive(archive: Uint8Array, request: Partial<ChartRequest> = {}): Promise<Checked<LoadedChart>> {
  let outcome: Checked<LoadedChart> | undefined;
  await withServer(serve(archive), async ({ load }) => {
    outcome = await load({ digest: sha256Digest(archive), ...request });
  });
  if (outcome === undefined) throw new Error('unreachable');
  return outcome;
}

const loadVariant = async (variant: ChartVariant, request: Partial<ChartRequest> = {}) =>
  loadArchive(await chartArchive(variant), request);

test('a chart over http on 127.0.0.1 and [::1]: bytes, checks, lock entry, then from the cache', async () => {
  const archive = await chartArchive();
  const digest = sha256Digest(archive);
  for (const address of ['127.0.0.1', '::1'] as const)
    await withServer(
      serve(archive),
      async ({ load, server, folder }) => {
        const chart = loaded(await load({ digest }));
        assert.is(chart.from, 'network');
        assert.equal(chart.notices, []);
        assert.equal(chart.features, {
          shape: 'modes',
          centralMode: true,
          externalCentral: true,
          hcp: false,
          tlsRotation: false,
        });
        assert.equal(lockChart(chart), {
          source: `${server.url}/kube-ovn.tgz`,
          digest,
          name: 'kube-ovn',
          version: 'v1.16.2',
          appVersion: '1.16.2',
          kubeVersion: '>= 1.29.0-0',
          size: archive.length,
        });
        assert.equal(chartImageRepositories(chart.values), [
          'registry.test/kubeovn/kube-ovn',
          'registry.test/kubeovn/vpc-nat-gateway',
        ]);
        assert.is(loaded(await load({ digest, version: 'v1.16.2' })).from, 'cache');
        assert.is(server.requests.length, 1);
        assert.equal(await readdir(join(folder, 'cache', 'sha256')), [digest.slice(7)]);
      },
      { address },
    );
});

test('a chart from a registry, pinned by its layer', async () => {
  const registry = await startRegistry();
  const archive = await chartArchive();
  const { layer, manifest } = putChart(registry, 'charts/kube-ovn', 'v1.16.2', archive);
  try {
    await withServer(serve(archive), async ({ load }) => {
      const more = { allowedHosts: [registry.host] };
      const source = `oci://${registry.host}/charts/kube-ovn`;
      assert.equal(reasons(await load({ source: `${source}:v1.16.2`, digest: manifest }, more)), [
        'ChartDigestMismatch',
      ]);
      assert.equal(reasons(await load({ source: `${source}:v9`, digest: layer }, more)), ['ChartUnavailable']);
      assert.is(loaded(await load({ source: `${source}:v1.16.2`, digest: layer }, more)).from, 'network');
      assert.is(loaded(await load({ source, digest: layer }, more)).from, 'cache');
      assert.equal(reasons(await load({ source, digest: layer })), ['ChartHostNotAllowed']);
    });
  } finally {
    await registry.close();
  }
});

test('sources: forms, hosts and schemes, decided before any connection and before the cache', async () => {
  const archive = await chartArchive();
  const digest = sha256Digest(archive);
  await withServer(serve(archive), async ({ load, server }) => {
    loaded(await load({ digest }));
    const seen = server.connections();
    assert.equal(reasons(await load({ digest }, { allowedHosts: [] })), ['ChartHostNotAllowed']);
    assert.equal(reasons(await load({ digest }, { allowedHosts: ['other.test'] })), ['ChartHostNotAllowed']);
    const hosts = { allowedHosts: ['charts.test', 'localhost', server.host] };
    const bad = [
      'http://charts.test/kube-ovn.tgz',
      `http://localhost:${server.port}/kube-ovn.tgz`,
      'https://charts.test/kube-ovn.tar.gz',
      'https://charts.test/kube-ovn.tgz?token=x',
      'https://user:pw@charts.test/kube-ovn.tgz',
      'oci://charts',
      'oci://',
      'git+https://charts.test/x.tgz',
      'kube-ovn.tgz',
      'file:///kube-ovn.tgz',
    ];
    for (const source of bad)
      assert.equal(reasons(await load({ source, digest }, hosts)), ['ChartSourceInvalid'], source);
    assert.equal(reasons(await load({ source: 'kube-ovn', digest: 'sha256:1' })), [
      'ChartSourceInvalid',
      'ChartDigestInvalid',
    ]);
    assert.is(server.connections(), seen);
  });
});

test('a wrong digest stops before anything is parsed; a missing one is told', async () => {
  const broken = Buffer.from('no archive at all');
  await withServer(serve(broken), async ({ load, folder }) => {
    const wrong = `sha256:${'2'.repeat(64)}`;
    const [problem] = problems(await load({ digest: wrong }));
    assert.is(problem?.reason, 'ChartDigestMismatch');
    assert.is(problem?.value, wrong);
    assert.match(problem?.message ?? '', sha256Digest(broken));
    const [missing] = problems(await load({}));
    assert.is(missing?.reason, 'ChartDigestMissing');
    assert.match(missing?.remedy ?? '', `digest: ${sha256Digest(broken)}`);
    assert.equal(await readdir(folder), []);
  });
});

test('a redirect to a foreign host, a truncated, oversized, slow and absent download', async () => {
  const archive = await chartArchive();
  const digest = sha256Digest(archive);
  const foreign = await startServer(serve(archive));
  const handler: Handler = (request, response) => {
    if (request.path === '/redirect.tgz') response.writeHead(302, { location: `${foreign.url}/kube-ovn.tgz` }).end();
    else if (request.path === '/big.tgz')
      response.writeHead(200, { 'content-length': String(33 * 1024 * 1024) }).write('x');
    else if (request.path === '/truncated.tgz')
      response
        .writeHead(200, { 'content-length': String(archive.length) })
        .write(archive.subarray(0, 100), () => response.socket?.destroy());
    else if (request.path === '/slow.tgz') response.writeHead(200).write('x');
    else response.writeHead(404).end();
  };
  try {
    await withServer(handler, async ({ load, server, folder }) => {
      const expected: Record<string, string> = {
        redirect: 'is not allowed',
        big: 'larger than',
        truncated: 'before the whole body',
        slow: 'nothing arrived',
        absent: 'answered 404',
      };
      for (const [name, words] of Object.entries(expected)) {
        const [problem, another] = problems(await load({ digest, source: `${server.url}/${name}.tgz` }));
        assert.is(problem?.reason, 'ChartUnavailable', name);
        assert.match(problem?.message ?? '', words);
        assert.is(another, undefined);
      }
      assert.is(foreign.connections(), 0);
      assert.equal(await readdir(folder), []);
    });
  } finally {
    await foreign.close();
  }
});

test('a damaged cache entry is fetched again; a cache that cannot be written is only told', async () => {
  const archive = await chartArchive();
  const digest = sha256Digest(archive);
  await withServer(serve(archive), async ({ load, server, folder }) => {
    loaded(await load({ digest }));
    const path = join(folder, 'cache', 'sha256', digest.slice(7));
    for (const content of [
      Buffer.from('damaged'),
      Buffer.alloc(2 * 1024 * 1024),
      archive.subarray(0, 50),
      Buffer.alloc(0),
    ]) {
      await writeFile(path, content);
      const chart = loaded(await load({ digest }));
      assert.is(chart.from, 'network');
      assert.match(chart.notices.join(), 'was damaged');
      assert.equal(await readFile(path), Buffer.from(archive));
    }
    assert.is(server.requests.length, 5);
    await rm(join(folder, 'cache'), { recursive: true });
    await writeFile(join(folder, 'cache'), 'a file where the folder should be');
    const chart = loaded(await load({ digest }));
    assert.is(chart.from, 'network');
    assert.match(chart.notices.join(), 'cannot be written (');
  });
});

test('a full disk leaves no half-written entry', async () => {
  const archive = await chartArchive();
  const digest = sha256Digest(archive);
  const full: CacheFiles = {
    ...localFiles,
    async write(path, bytes) {
      await writeFile(path, bytes.subarray(0, 10));
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    },
  };
  await withServer(serve(archive), async ({ load, folder }) => {
    const chart = loaded(await load({ digest }, { files: full }));
    assert.match(chart.notices.join(), 'ENOSPC');
    assert.equal(await readdir(join(folder, 'cache', 'sha256')), []);
  });
});

test('eight writers of one entry end with one whole file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-cache-'));
  try {
    const bytes = Buffer.alloc(100_000, 'z');
    const digest = sha256Digest(bytes);
    const cache = createChartCache(folder, 1_000_000);
    const results = await Promise.all(Array.from({ length: 8 }, () => cache.write(digest, bytes)));
    assert.equal(results, Array(8).fill(undefined));
    assert.equal(await readdir(join(folder, 'sha256')), [digest.slice(7)]);
    assert.is((await cache.read(digest)).kind, 'hit');
    assert.is((await cache.read(sha256Digest('other'))).kind, 'miss');
  } finally {
    await rm(folder, { recursive: true });
  }
});

type Entry = Parameters<ReturnType<typeof pack>['entry']>[0];

/** An archive with what a hostile packer adds to a good chart. */
async function hostile(entries: readonly [Entry, string?][], top = 'kube-ovn/'): Promise<Uint8Array> {
  const archive = pack();
  for (const file of chartFiles())
    archive.entry({ name: file.path.replace(/^kube-ovn\//, top) }, Buffer.from(file.bytes));
  for (const [header, content] of entries) archive.entry(header, content ?? '');
  archive.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of archive as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return gzipSync(Buffer.concat(chunks));
}

test('hostile archives: traversal, links, devices, duplicates, bombs, other folders, damage', async () => {
  const good = await chartArchive();
  const bomb = gzipSync(Buffer.concat([Buffer.alloc(512), Buffer.alloc(70 * 1024 * 1024)]));
  const cases: Record<string, Uint8Array> = {
    traversal: await hostile([[{ name: 'kube-ovn/../../etc/passwd' }, 'x']]),
    absolute: await hostile([[{ name: '/etc/passwd' }, 'x']]),
    symlink: await hostile([[{ name: 'kube-ovn/templates/x.yaml', type: 'symlink', linkname: '/etc/passwd' }]]),
    hardlink: await hostile([[{ name: 'kube-ovn/templates/x.yaml', type: 'link', linkname: 'kube-ovn/Chart.yaml' }]]),
    device: await hostile([[{ name: 'kube-ovn/dev', type: 'character-device' }]]),
    fifo: await hostile([[{ name: 'kube-ovn/fifo', type: 'fifo' }]]),
    twice: await hostile([[{ name: 'kube-ovn/values.yaml' }, 'a: 1']]),
    otherFolder: await hostile([[{ name: 'second/values.yaml' }, 'a: 1']]),
    noFolder: await hostile([], ''),
    largeFile: await hostile([[{ name: 'kube-ovn/big' }, 'x'.repeat(9 * 1024 * 1024)]]),
    manyFiles: await hostile(
      Array.from({ length: 2_100 }, (_, index): [Entry, string] => [{ name: `kube-ovn/f${index}` }, '']),
    ),
    bomb,
    cut: good.subarray(0, good.length - 20),
    garbage: Buffer.from('not gzip'),
    empty: gzipSync(Buffer.alloc(1024)),
  };
  for (const [name, archive] of Object.entries(cases)) {
    const [problem, another] = problems(await loadArchive(archive));
    assert.is(problem?.reason, 'ChartArchiveInvalid', `${name}: ${problem?.message}`);
    assert.is(another, undefined, name);
  }
});

test('the content of a chart is checked against the specification, all problems at once', async () => {
  assert.equal(reasons(await loadVariant({ name: 'kube-ovn-v2' })), ['ChartNameMismatch']);
  assert.equal(reasons(await loadVariant({ appVersion: '1.16.3' })), ['ChartVersionMismatch']);
  assert.equal(reasons(await loadVariant({}, { version: '1.16.20' })), ['ChartVersionMismatch']);
  assert.equal(reasons(await loadVariant({ kubeVersion: '< 1.34.0-0' })), ['KubernetesOutOfRange']);
  assert.equal(reasons(await loadVariant({ kubeVersion: 'latest' })), ['KubernetesOutOfRange']);
  assert.equal(reasons(await loadVariant({ name: 'cilium', appVersion: '9.9.9', kubeVersion: '< 1.30' })), [
    'ChartNameMismatch',
    'ChartVersionMismatch',
    'KubernetesOutOfRange',
  ]);
  assert.equal(
    reasons(
      await loadVariant({ files: { 'Chart.yaml': 'apiVersion: v1\nname: kube-ovn\nversion: 1\nappVersion: 1.16\n' } }),
    ),
    ['ChartInvalid', 'ChartInvalid', 'ChartInvalid'],
  );
  assert.equal(reasons(await loadVariant({ files: { 'Chart.yaml': 'a: [1', 'values.yaml': '- list' } })), [
    'ChartInvalid',
    'ChartInvalid',
  ]);
  assert.equal(reasons(await loadVariant({ files: { 'values.yaml': undefined } })), ['ChartInvalid']);
  assert.equal(
    reasons(await loadVariant({ files: { 'values.yaml': 'masterNodes: []\nnetworking: {stack: IPv4}\n' } })),
    ['ChartShapeUnknown'],
  );
  assert.is(loaded(await loadVariant({ modes: false, version: '9', appVersion: 'v1.16.2' })).features.shape, 'classic');
});

test('dependencies must lie in the archive, and nothing else may', async () => {
  const dependencies = [{ name: 'common', version: '1.0.0', repository: 'https://charts.test' }];
  assert.equal(reasons(await loadVariant({ dependencies })), ['ChartDependencyMissing']);
  const bundled = { 'charts/common/Chart.yaml': 'apiVersion: v2\nname: common\nversion: 1.0.0\n' };
  loaded(await loadVariant({ dependencies, files: bundled }));
  assert.equal(reasons(await loadVariant({ files: bundled })), ['ChartInvalid']);
  assert.equal(reasons(await loadVariant({ files: { 'charts/common-1.0.0.tgz': 'x' } })), ['ChartInvalid']);
  assert.equal(reasons(await loadVariant({ dependencies, files: { 'charts/common-1.0.0.tgz': 'x' } })), [
    'ChartDependencyMissing',
    'ChartInvalid',
  ]);
});

test('a template that must not be rendered is taken out of what Helm gets', async () => {
  const archive = await unpackChart(await chartArchive(), places.source);
  if (!archive.ok) throw new Error('unreachable');
  const without = ['templates/ovn-tls-secret.yaml', 'templates/absent.yaml'];
  const packed = await packChart('kube-ovn', archive.value.files, without);
  assert.equal(packed.stripped, ['templates/ovn-tls-secret.yaml']);
  const paths = (await readTarGz(packed.archive)).map((file) => file.path);
  assert.ok(paths.includes('kube-ovn/templates/central-deploy.yaml'));
  assert.not.ok(paths.includes('kube-ovn/templates/ovn-tls-secret.yaml'));
  assert.equal((await packChart('kube-ovn', [...archive.value.files].reverse(), without)).archive, packed.archive);
});

test('kubeVersion is read as Helm reads it', () => {
  for (const [version, constraint, expected] of kubeVersionCases)
    assert.is(kubeVersionSatisfies(version, constraint), expected, `${version} ${constraint}`);
});

test.run();
