import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readTarGz } from '../../constructs/lib/tar.ts';
import { packChart, unpackChart } from '../../renderer/charts/archive.ts';
import { kubeVersionSatisfies } from '../../renderer/charts/kubeversion.ts';
import { chartArchive, chartFiles } from '../standins/chart.ts';
import { kubeVersionCases } from '../standins/kubeversions.ts';
import { loadArchive, loaded, loadVariant, places, problems, reasons } from './renderer-charts-support.ts';

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
