import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { parseChallenge } from '../../renderer/oci/auth.ts';
import { mirrorCertificates } from '../../renderer/oci/certificates.ts';
import { pullChartLayer } from '../../renderer/oci/chartlayer.ts';
import {
  anonymous,
  type CredentialStore,
  dockerCredentials,
  registryConfigFiles,
} from '../../renderer/oci/credentials.ts';
import { mirrorHosts, mirrorName, mirrorReference } from '../../renderer/oci/mirrors.ts';
import { platformsOf } from '../../renderer/oci/platforms.ts';
import {
  formatReference,
  parseOciUrl,
  parseReference,
  type Reference,
  reachableHosts,
} from '../../renderer/oci/reference.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import type { RegistryFailure, RegistryOutcome } from '../../renderer/oci/types.ts';
import { imageIndexType, imageManifestType, putChart, putImage } from '../standins/artifacts.ts';
import { selfSigned } from '../standins/certificate.ts';
import { startServer } from '../standins/httpserver.ts';
import { type RegistryOptions, type StandInRegistry, startRegistry } from '../standins/registry.ts';

const canary = 'canary-55d0c2';
const login = { username: 'robot', password: canary };

interface Bed {
  readonly registry: StandInRegistry;
  readonly client: ReturnType<typeof createRegistryClient>;
}

interface BedOptions extends RegistryOptions {
  readonly credentials?: CredentialStore;
  readonly registries?: (host: string) => readonly RegistryMirror[];
  readonly pem?: string;
  readonly moreHosts?: readonly string[];
}

async function withRegistry(options: BedOptions, body: (bed: Bed) => Promise<void>): Promise<void> {
  const registry = await startRegistry(options);
  const http = createHttpClient({
    allowedHosts: [registry.host, ...(options.moreHosts ?? [])],
    allowField: 'spec.allow.chartHosts',
    clock: systemClock,
    random: () => 0.5,
    retry: { attempts: 2, initialMs: 1 },
    ...(options.pem === undefined ? {} : { ca: [{ pem: options.pem }] }),
  });
  try {
    const client = createRegistryClient({
      http,
      credentials: options.credentials ?? anonymous,
      registries: options.registries?.(registry.host) ?? [],
    });
    await body({ registry, client });
  } finally {
    http.close();
    await registry.close();
  }
}

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-oci-'));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const reference = (registry: StandInRegistry, rest: string): Reference => {
  const ref = parseOciUrl(`oci://${registry.host}/${rest}`);
  if (ref === undefined) throw new Error(`not a reference: ${rest}`);
  return ref;
};

function failure<T>(outcome: RegistryOutcome<T>): RegistryFailure {
  if (outcome.ok) throw new Error('expected a failure');
  assert.not.match(JSON.stringify(outcome.failure), canary);
  return outcome.failure;
}

function value<T>(outcome: RegistryOutcome<T>): T {
  if (!outcome.ok) throw new Error(`${outcome.failure.kind}: ${outcome.failure.message}`);
  return outcome.value;
}

const known = (credential: Awaited<ReturnType<CredentialStore['get']>>): CredentialStore => ({
  get: async () => credential,
});

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

test('bearer tokens: anonymous is told to log in, a password and an identity token are exchanged, one token serves a repository', async () => {
  const auth = { kind: 'bearer' as const, ...login, identityToken: `${canary}-refresh` };
  await withRegistry({ auth }, async ({ registry, client }) => {
    putImage(registry, 'demo/app', 'v1', ['linux/amd64']);
    const denied = failure(await client.manifest(reference(registry, 'demo/app:v1')));
    assert.is(denied.kind, 'denied');
    assert.match(denied.message, '/token answered 401');
  });
  const credentials = [
    { kind: 'password' as const, ...login },
    { kind: 'identityToken' as const, token: `${canary}-refresh` },
    { kind: 'registryToken' as const, token: 'stand-in.issued.token' },
  ];
  for (const credential of credentials)
    await withRegistry({ auth, credentials: known({ kind: 'found', credential }) }, async ({ registry, client }) => {
      putImage(registry, 'demo/app', 'v1', ['linux/amd64']);
      const ref = reference(registry, 'demo/app:v1');
      const manifest = value(await client.manifest(ref));
      value(await platformsOf(client, ref, manifest));
      value(await client.manifest(ref));
      const tokens = registry.requests.filter((request) => request.path.startsWith('/token'));
      assert.is(tokens.length, credential.kind === 'registryToken' ? 0 : 1, credential.kind);
      assert.is(registry.requests.filter((request) => request.path.startsWith('/v2/')).length, 4);
    });
});

test('basic authentication, wrong password and unreadable credential', async () => {
  const auth = { kind: 'basic' as const, ...login };
  const attempts: [Parameters<typeof known>[0], string][] = [
    [{ kind: 'none' }, 'denied'],
    [{ kind: 'found', credential: { kind: 'password', username: 'robot', password: `${canary}-wrong` } }, 'denied'],
    [{ kind: 'failed', message: 'the helper is broken' }, 'denied'],
  ];
  for (const [credential, kind] of attempts)
    await withRegistry({ auth, credentials: known(credential) }, async ({ registry, client }) => {
      putImage(registry, 'a/b', 'v1', ['linux/amd64']);
      assert.is(failure(await client.manifest(reference(registry, 'a/b:v1'))).kind, kind);
    });
  await withRegistry(
    { auth, credentials: known({ kind: 'found', credential: { kind: 'password', ...login } }) },
    async ({ registry, client }) => {
      putImage(registry, 'a/b', 'v1', ['linux/amd64']);
      value(await client.manifest(reference(registry, 'a/b:v1')));
    },
  );
});

test('a token service on a host that is not allowed gets no credential', async () => {
  const thief = await startServer((_, response) => response.end('{"token":"x"}'));
  const fault: RegistryOptions['fault'] = (_, response) => {
    response.writeHead(401, { 'www-authenticate': `Bearer realm="${thief.url}/token",service="s"` });
    response.end();
    return true;
  };
  try {
    await withRegistry(
      { fault, credentials: known({ kind: 'found', credential: { kind: 'password', ...login } }) },
      async ({ registry, client }) => {
        assert.is(failure(await client.manifest(reference(registry, 'a/b:v1'))).kind, 'refused');
        assert.is(thief.connections(), 0);
      },
    );
  } finally {
    await thief.close();
  }
});

test('a blob that is redirected to storage elsewhere is fetched there without the token', async () => {
  const archive = Buffer.from('chart bytes');
  const storage = await startServer((_, response) => response.end(archive));
  const fault: RegistryOptions['fault'] = (request, response) => {
    if (!request.path.includes('/blobs/')) return false;
    response.writeHead(307, { location: `${storage.url}/object?X-Amz-Signature=${canary}` });
    response.end();
    return true;
  };
  const credentials = known({ kind: 'found', credential: { kind: 'password', ...login } });
  const auth = { kind: 'bearer' as const, ...login };
  try {
    for (const allowed of [true, false])
      await withRegistry(
        { fault, auth, credentials, moreHosts: allowed ? [storage.host] : [] },
        async ({ registry, client }) => {
          const { layer } = putChart(registry, 'charts/kube-ovn', 'v1', archive);
          const outcome = await pullChartLayer(client, reference(registry, 'charts/kube-ovn:v1'), layer, 1_000);
          if (allowed) assert.is(value(outcome).digest, layer);
          else assert.is(failure(outcome).kind, 'refused');
        },
      );
    assert.is(storage.requests.length, 1);
    assert.is(storage.requests[0]?.headers.authorization, undefined);
  } finally {
    await storage.close();
  }
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

test('challenges are read in the forms that registries send', () => {
  assert.equal(parseChallenge('Bearer realm="https://a.test/t?x=1",service="a, b",scope="repository:x:pull"'), {
    scheme: 'bearer',
    realm: 'https://a.test/t?x=1',
    service: 'a, b',
    scope: 'repository:x:pull',
  });
  assert.equal(parseChallenge('Basic realm="x", Bearer realm="https://a.test/t"'), {
    scheme: 'bearer',
    realm: 'https://a.test/t',
  });
  assert.equal(parseChallenge('basic realm="x"'), { scheme: 'basic' });
  assert.is(parseChallenge('Bearer service="x"'), undefined);
  assert.is(parseChallenge(undefined), undefined);
});

test('docker configuration: entries, helpers, stores, identity tokens; nothing is written', async () => {
  await withFolder(async (folder) => {
    const helper = `#!/bin/sh
read host
case "$host" in
  helped.test) echo '{"ServerURL":"helped.test","Username":"h","Secret":"${canary}"}' ;;
  token.test) echo '{"Username":"<token>","Secret":"${canary}"}' ;;
  broken.test) echo '{"Secret":"${canary}"' ;;
  slow.test) sleep 60 ;;
  fails.test) echo "backend says password=${canary}" >&2; exit 3 ;;
  *) echo 'credentials not found in native keychain'; exit 1 ;;
esac
`;
    await writeFile(join(folder, 'docker-credential-fake'), helper);
    await chmod(join(folder, 'docker-credential-fake'), 0o755);
    const packed = Buffer.from(`user:${canary}:with:colons`).toString('base64');
    const config = {
      auths: {
        'plain.test': { auth: packed },
        'https://url.test:5000/v1/': { username: 'u', password: canary },
        'idt.test': { identitytoken: canary },
        'https://index.docker.io/v1/': { auth: packed },
        'empty.test': {},
      },
      credHelpers: Object.fromEntries(
        ['helped', 'token', 'broken', 'slow', 'fails', 'unknown'].map((name) => [`${name}.test`, 'fake']),
      ),
    };
    const [docker, helm, spoiled] = ['config.json', 'helm.json', 'spoiled.json'].map((name) => join(folder, name));
    if (docker === undefined || helm === undefined || spoiled === undefined) throw new Error('unreachable');
    await writeFile(
      docker,
      JSON.stringify({
        ...config,
        credHelpers: { ...config.credHelpers, 'gone.test': 'absent', 'evil.test': '../fake' },
      }),
    );
    await writeFile(helm, JSON.stringify({ auths: { 'helm.test': { auth: packed } } }));
    await writeFile(spoiled, `{"auths": "${canary}`);
    const before = await readdir(folder);
    const options = { helperEnv: { PATH: `${folder}:/usr/bin:/bin` }, helperLimitMs: 300 };
    const store = dockerCredentials({ ...options, configFiles: [join(folder, 'missing.json'), docker, helm] });
    const password = {
      kind: 'found',
      credential: { kind: 'password', username: 'user', password: `${canary}:with:colons` },
    };
    for (const name of ['plain.test', 'docker.io', 'helm.test']) assert.equal(await store.get(name), password, name);
    assert.equal(await store.get('url.test:5000'), {
      kind: 'found',
      credential: { kind: 'password', username: 'u', password: canary },
    });
    assert.equal(await store.get('helped.test'), {
      kind: 'found',
      credential: { kind: 'password', username: 'h', password: canary },
    });
    for (const name of ['idt.test', 'token.test'])
      assert.equal(await store.get(name), { kind: 'found', credential: { kind: 'identityToken', token: canary } });
    for (const name of ['unknown.test', 'empty.test', 'never.test', 'url.test'])
      assert.equal(await store.get(name), { kind: 'none' }, name);
    for (const name of ['broken.test', 'slow.test', 'fails.test', 'gone.test', 'evil.test']) {
      const outcome = await store.get(name);
      assert.is(outcome.kind, 'failed', name);
      assert.not.match(JSON.stringify(outcome), canary);
    }
    const bad = await dockerCredentials({ ...options, configFiles: [spoiled] }).get('plain.test');
    assert.is(bad.kind, 'failed');
    assert.not.match(JSON.stringify(bad), canary);
    await writeFile(docker, JSON.stringify({ credsStore: 'fake', auths: { 'plain.test': { auth: packed } } }));
    const stored = dockerCredentials({ ...options, configFiles: [docker] });
    assert.is((await stored.get('helped.test')).kind, 'found');
    assert.equal(await stored.get('plain.test'), password);
    assert.equal(await readdir(folder), before);
  });
});

test('the configuration files follow the environment', () => {
  assert.equal(registryConfigFiles({ HOME: '/h' }), ['/h/.docker/config.json', '/h/.config/helm/registry/config.json']);
  assert.equal(registryConfigFiles({ DOCKER_CONFIG: '/d', HELM_REGISTRY_CONFIG: '/r.json' }), [
    '/d/config.json',
    '/r.json',
  ]);
  assert.equal(registryConfigFiles({}), []);
});

test.run();
