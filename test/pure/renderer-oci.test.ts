import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { mirrorCertificates } from '../../renderer/oci/certificates.ts';
import { pullChartLayer } from '../../renderer/oci/chartlayer.ts';
import { mirrorHosts, mirrorName, mirrorReference } from '../../renderer/oci/mirrors.ts';
import { platformsOf } from '../../renderer/oci/platforms.ts';
import { formatReference, parseOciUrl, parseReference, reachableHosts } from '../../renderer/oci/reference.ts';
import { imageIndexType, imageManifestType, putChart, putImage } from '../standins/artifacts.ts';
import { selfSigned } from '../standins/certificate.ts';
import type { RegistryOptions } from '../standins/registry.ts';
import { failure, reference, value, withFolder, withRegistry } from './renderer-oci-support.ts';

test('references: normal form, oci URLs, hosts', () => {
  const normal = (text: string): string | undefined => {
    const ref = parseReference(text);
    return ref === undefined ? undefined : formatReference(ref);
  };
  assert.is(normal('nginx'), 'docker.io/library/nginx');
  assert.is(normal('kubeovn/kube-ovn:v1'), 'docker.io/kubeovn/kube-ovn:v1');
  assert.is(normal('index.docker.io/kubeovn/kube-ovn:v1'), 'docker.io/kubeovn/kube-ovn:v1');
  assert.is(normal('localhost:5000/a/b:1'), 'localhost:5000/a/b:1');
  assert.is(normal('Not A Ref'), undefined);
  assert.equal(parseOciUrl('oci://h.test:5000/charts/kube-ovn:v1'), {
    registry: 'h.test:5000',
    repository: 'charts/kube-ovn',
    tag: 'v1',
  });
  for (const bad of [
    'oci://kube-ovn',
    'https://h.test/x',
    'oci://',
    'oci://h.test',
    'oci://h.test/../x',
    'oci://u:p@h.test/x',
  ])
    assert.is(parseOciUrl(bad), undefined, bad);
  assert.equal(reachableHosts(['docker.io', 'h.test']), [
    'docker.io',
    'registry-1.docker.io',
    'auth.docker.io',
    'h.test',
  ]);
});

test('mirrors: the longest whole-component prefix wins', () => {
  const rules: RegistryMirror[] = [
    { match: 'docker.io', mirror: 'm.test/hub' },
    { match: 'docker.io/kubeovn/', mirror: 'oci://k.test:5000' },
    { match: 'quay.test/a', mirror: 'not a host' },
  ];
  assert.is(mirrorName('docker.io/library/nginx', rules), 'm.test/hub/library/nginx');
  assert.is(mirrorName('docker.io/kubeovn/kube-ovn', rules), 'k.test:5000/kube-ovn');
  assert.is(mirrorName('docker.io/kubeovn-x/kube-ovn', rules), 'm.test/hub/kubeovn-x/kube-ovn');
  assert.is(mirrorName('docker.io.evil.test/x', rules), 'docker.io.evil.test/x');
  assert.is(mirrorReference({ registry: 'quay.test', repository: 'a/b', tag: '1' }, rules), undefined);
  assert.equal(mirrorHosts(rules.slice(0, 2)), ['m.test', 'k.test:5000']);
});

test('a tag and a digest lead to the manifest whose digest is that of its bytes', async () => {
  await withRegistry({}, async ({ registry, client }) => {
    const digest = putImage(registry, 'demo/app', 'v1', ['linux/amd64', 'linux/arm64']);
    const byTag = value(await client.manifest(reference(registry, 'demo/app:v1')));
    assert.is(byTag.digest, digest);
    assert.is(byTag.kind, 'index');
    assert.is(byTag.mediaType, imageIndexType);
    const byDigest = value(await client.manifest(reference(registry, `demo/app@${digest}`)));
    assert.equal(byDigest.content, byTag.content);
    assert.equal(value(await platformsOf(client, reference(registry, 'demo/app:v1'), byTag)), [
      'linux/amd64',
      'linux/arm64',
    ]);
    const accept = String(registry.requests[0]?.headers.accept);
    for (const type of [
      'oci.image.index.v1',
      'docker.distribution.manifest.list.v2',
      'oci.image.manifest.v1',
      'docker.distribution.manifest.v2',
    ])
      assert.match(accept, type);
    const single = putImage(registry, 'demo/one', 'v2', ['linux/s390x']);
    const one = value(await client.manifest(reference(registry, 'demo/one:v2')));
    assert.is(one.digest, single);
    assert.equal(value(await platformsOf(client, reference(registry, 'demo/one:v2'), one)), ['linux/s390x']);
    assert.is(failure(await client.manifest(reference(registry, 'demo/none:v1'))).kind, 'notFound');
    assert.is(failure(await client.manifest(reference(registry, 'demo/app'))).kind, 'invalid');
  });
});

test('a manifest that is not what a digest or header says is refused', async () => {
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: imageManifestType, layers: [] }));
  const answer = { headers: {} as Record<string, string>, body: bytes };
  const fault: RegistryOptions['fault'] = (_, response) => {
    response.writeHead(200, { 'content-type': imageManifestType, ...answer.headers });
    response.end(answer.body);
    return true;
  };
  await withRegistry({ fault }, async ({ registry, client }) => {
    const wrong = `sha256:${'1'.repeat(64)}`;
    assert.is(failure(await client.manifest(reference(registry, `a/b@${wrong}`))).kind, 'digestMismatch');
    answer.headers = { 'docker-content-digest': wrong };
    assert.is(failure(await client.manifest(reference(registry, 'a/b:1'))).kind, 'digestMismatch');
    answer.headers = {};
    assert.is(value(await client.manifest(reference(registry, 'a/b:1'))).digest, sha256Digest(bytes));
    assert.is(failure(await client.blob(reference(registry, 'a/b:1'), wrong, 1_000)).kind, 'digestMismatch');
    for (const body of [
      'not json',
      '[]',
      '{"mediaType":"text/plain"}',
      '{"schemaVersion":1,"mediaType":"application/vnd.docker.distribution.manifest.v1+json"}',
    ]) {
      answer.body = Buffer.from(body);
      assert.is(failure(await client.manifest(reference(registry, 'a/b:1'))).kind, 'invalid', body);
    }
  });
});

test('the chart layer by tag, and by its digest alone', async () => {
  await withRegistry({}, async ({ registry, client }) => {
    const archive = Buffer.from('chart bytes');
    const { layer } = putChart(registry, 'charts/kube-ovn', 'v1.16.2', archive);
    const tagged = reference(registry, 'charts/kube-ovn:v1.16.2');
    const bare = reference(registry, 'charts/kube-ovn');
    assert.equal(Buffer.from(value(await pullChartLayer(client, tagged, undefined, 1_000)).bytes), archive);
    assert.is(value(await pullChartLayer(client, tagged, layer, 1_000)).digest, layer);
    assert.is(value(await pullChartLayer(client, bare, layer, 1_000)).digest, layer);
    assert.is(failure(await pullChartLayer(client, bare, undefined, 1_000)).kind, 'invalid');
    const before = registry.requests.length;
    assert.is(failure(await pullChartLayer(client, tagged, sha256Digest('other'), 1_000)).kind, 'digestMismatch');
    assert.is(failure(await pullChartLayer(client, tagged, layer, 5)).kind, 'tooLarge');
    // Both were decided by the manifest: no blob was asked for.
    assert.not.ok(registry.requests.slice(before).some((request) => request.path.includes('/blobs/')));
    assert.is(failure(await pullChartLayer(client, bare, layer, 5)).kind, 'tooLarge');
    putImage(registry, 'demo/app', 'v1', ['linux/amd64']);
    assert.match(
      failure(await pullChartLayer(client, reference(registry, 'demo/app:v1'), undefined, 1_000)).message,
      'is not a Helm chart',
    );
  });
});

test('references are read through the mirror, over TLS when it has a certificate authority', async () => {
  const tls = selfSigned(['127.0.0.1']);
  await withRegistry(
    { registries: (host) => [{ match: 'docker.io/demo', mirror: `${host}/hub` }] },
    async ({ registry, client }) => {
      const digest = putImage(registry, 'hub/app', 'v1', ['linux/amd64']);
      assert.is(
        value(await client.manifest({ registry: 'docker.io', repository: 'demo/app', tag: 'v1' })).digest,
        digest,
      );
      assert.is(
        failure(await client.manifest({ registry: 'docker.io', repository: 'other/app', tag: 'v1' })).kind,
        'refused',
      );
    },
  );
  const registries = (host: string): RegistryMirror[] => [{ match: 'docker.io', mirror: host, caFile: 'ca.pem' }];
  await withRegistry({ tls, pem: tls.cert, registries }, async ({ registry, client }) => {
    const digest = putImage(registry, 'library/app', 'v1', ['linux/amd64']);
    assert.is(
      value(await client.manifest({ registry: 'docker.io', repository: 'library/app', tag: 'v1' })).digest,
      digest,
    );
  });
});

test('certificate files of mirror rules are read from the cluster folder and checked', async () => {
  await withFolder(async (folder) => {
    const { cert } = selfSigned(['m.test']);
    await writeFile(join(folder, 'ca.pem'), cert);
    await writeFile(join(folder, 'bad.pem'), 'no certificate');
    const rules = ['ca.pem', 'bad.pem', 'missing.pem', '../ca.pem'].map((caFile) => ({
      match: 'a.test',
      mirror: 'm.test:5000/x',
      caFile,
    }));
    const { certificates, problems } = await mirrorCertificates(rules, folder);
    assert.equal(certificates, [{ host: 'm.test:5000', pem: cert }]);
    assert.equal(
      problems.map((problem) => problem.path),
      ['spec.registries[1].caFile', 'spec.registries[2].caFile', 'spec.registries[3].caFile'],
    );
  });
});

test.run();
