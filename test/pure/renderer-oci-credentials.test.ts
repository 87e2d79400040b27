import { chmod, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { parseChallenge } from '../../renderer/oci/auth.ts';
import { pullChartLayer } from '../../renderer/oci/chartlayer.ts';
import { dockerCredentials, registryConfigFiles } from '../../renderer/oci/credentials.ts';
import { platformsOf } from '../../renderer/oci/platforms.ts';
import { putChart, putImage } from '../standins/artifacts.ts';
import { startServer } from '../standins/httpserver.ts';
import type { RegistryOptions } from '../standins/registry.ts';
import { canary, failure, known, login, reference, value, withFolder, withRegistry } from './renderer-oci-support.ts';

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
