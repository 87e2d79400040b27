import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { type CacheFiles, createChartCache, localFiles } from '../../renderer/charts/cache.ts';
import { chartImageRepositories } from '../../renderer/charts/features.ts';
import { lockChart } from '../../renderer/charts/load.ts';
import { putChart } from '../standins/artifacts.ts';
import { chartArchive } from '../standins/chart.ts';
import { type Handler, startServer } from '../standins/httpserver.ts';
import { startRegistry } from '../standins/registry.ts';
import { loaded, problems, reasons, serve, withServer } from './renderer-charts-support.ts';

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

test.run();
