// time limit: 300s
/** One secret goes through everything that handles secrets. It must come out nowhere but where it was put. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { kubeconfigText } from '../apiserver/credentials.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { packageChart } from '../charts/build.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import { putChart, putImage } from '../standins/artifacts.ts';
import { type GitServer, startGitServer } from '../standins/gitserver.ts';
import { type RegistryAuth, type StandInRegistry, startRegistry } from '../standins/registry.ts';
import { run } from '../tools/process.ts';
import { ensureTool } from '../tools/tools.ts';
import { makeCanary, openSweep, type Running, type Sweep, secretsInGit } from './canary-bed.ts';
import { exampleFolder, images } from './example-bed.ts';
import { until } from './kubeBed.ts';

interface Context {
  sweep: Sweep;
  server: ApiServer;
  registry: StandInRegistry;
  gitServer: GitServer;
  proxy: FaultProxy;
  executor: Running | undefined;
}

const canary = makeCanary();
const badManifests = secretsInGit(canary);
const test = suite<Context>('canary');
const place = 'specs/clusters/example';
const chosen = ['-c', place];
const system = 'keelson-system';

/** Answers errors with everything that it was told, as long as it is unfriendly. */
const registryMood = {
  auth: { kind: 'basic', username: 'bot', password: canary.value } as RegistryAuth,
  hostile: true,
};

async function openRegistry(): Promise<StandInRegistry> {
  const registry = await startRegistry({
    auth: registryMood.auth,
    fault(request, response) {
      if (!registryMood.hostile) return false;
      const { authorization } = request.headers;
      if (authorization === undefined) return false;
      const message = `${canary.value} of ${authorization} was refused; ${canary.chatter}`;
      response.writeHead(403, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code: 'DENIED', message }] }));
      return true;
    },
  });
  const chart = await packageChart('new');
  putChart(registry, 'charts/kube-ovn', 'v1.16.13', chart.bytes);
  for (const [repository, tag] of images) putImage(registry, repository, tag, ['linux/amd64']);
  return registry;
}

const git = (sweep: Sweep, folder: string, ...args: string[]) =>
  run('git', args, {
    cwd: sweep.path(folder),
    env: { ...sweep.env, GIT_TRACE: '0', GIT_TRACE_CURL: '0' },
    limitMs: 60_000,
  });

/** Runs a command that has to end with one of `codes`, and answers what it wrote. */
async function ends(
  sweep: Sweep,
  codes: number | readonly number[],
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const result = await sweep.keelson(args, env);
  assert.ok([codes].flat().includes(result.code ?? -1), `${args.join(' ')}: ${result.code} ${result.text}`);
  return result.text;
}

async function edit(sweep: Sweep, file: string, change: (text: string) => string): Promise<void> {
  const path = sweep.path(file);
  await writeFile(path, change(await readFile(path, 'utf8')));
}

test.before(async (context) => {
  context.server = await startApiServer();
  context.proxy = await startFaultProxy(context.server);
  context.registry = await openRegistry();
  const helm = await ensureTool('helm', { onProgress: (line) => console.error(line) });
  context.sweep = await openSweep(canary, { KEELSON_HELM: helm, KUBECONFIG: context.server.kubeconfig });
  const { sweep } = context;
  await sweep.write('home/gitconfig', '[user]\n  name = Tester\n  email = tester@example.com\n');
  await cp(exampleFolder, sweep.path(place), { recursive: true });
  context.gitServer = await startGitServer({
    root: sweep.path('remote'),
    env: { PATH: process.env.PATH ?? '', HOME: sweep.path('home') },
    username: 'bot',
    password: canary.value,
    refusal: (sent) => `${sent} was refused; ${canary.chatter}\n`,
  });
  const { admin } = context.server;
  const { body } = await admin.expect('GET', '/api/v1/namespaces/kube-system');
  const { host } = context.registry;
  await edit(sweep, `${place}/cluster.yaml`, (text) =>
    text
      .replace(/clusterUID: .*/, `clusterUID: ${body.metadata.uid}`)
      .replace(/repository: .*/, `repository: ${context.gitServer.url}/rendered.git`)
      .replace(/ {4}manifests-base:\n {6}approval:\n {8}mode: always\n/, '')
      .replace('mirror: registry.example.com/kubeovn', `mirror: ${host}/kubeovn`)
      .replace('  registries:\n', `  registries:\n    - match: registry.example.com\n      mirror: ${host}\n`),
  );
  await edit(sweep, `${place}/inventory.yaml`, (text) =>
    text.replace(/clusterUID: .*/, `clusterUID: ${body.metadata.uid}`),
  );
  // A Secret without data may be committed; one with data of somebody else is in the cluster already.
  await sweep.write(
    `${place}/manifests/base/20-rules/credentials.yaml`,
    'apiVersion: v1\nkind: Secret\nmetadata:\n  name: credentials\n  namespace: default\ntype: Opaque\n',
  );
  for (const args of [
    ['init', '--quiet', '--bare', '--initial-branch=main', 'remote/rendered.git'],
    ['init', '--quiet', '--initial-branch=main', 'specs'],
  ])
    assert.is((await git(sweep, '.', ...args)).code, 0);
  await git(sweep, 'remote/rendered.git', 'config', 'http.receivepack', 'true');
});

test.after(async ({ sweep, server, registry, gitServer, proxy, executor }) => {
  await executor?.stop();
  await proxy.stop();
  await gitServer.close();
  await registry.close();
  await server.stop();
  await sweep.close();
});

test('the search finds the canary in every form that it is to find', () => {
  const { value, base64, url, bearer, auth, dockerConfig, chatter } = canary;
  for (const text of [
    value,
    base64,
    url,
    bearer,
    auth,
    dockerConfig,
    chatter,
    Buffer.from(dockerConfig).toString('base64'),
  ])
    assert.ok(canary.foundIn(text), text);
  assert.not.ok(canary.foundIn(value.slice(0, -1)));
});

test('lock: refused logins, failing helpers and files that are no configuration', async ({ sweep, registry }) => {
  const config = 'home/.docker/config.json';
  const failing = async (said: RegExp): Promise<void> => {
    assert.match(await ends(sweep, 2, ['lock', ...chosen]), said);
  };
  await sweep.write(`${place}/keelson.lock.yaml`, '');
  await run('rm', [sweep.path(place, 'keelson.lock.yaml')], { limitMs: 5_000 });
  const withAuth = { auths: { [registry.host]: { auth: canary.auth } } };
  await sweep.write(config, JSON.stringify(withAuth));
  await failing(/answered 403/);
  await sweep.write(config, JSON.stringify({ auths: { [registry.host]: { identitytoken: canary.value } } }));
  await failing(/ChartUnavailable/);
  await sweep.write(config, `{"auths": {"${registry.host}": {"auth": "${canary.auth}"`);
  await failing(/is not valid JSON/);
  await sweep.write(config, JSON.stringify({ credsStore: 'canary' }));
  const helper = (script: string) => sweep.write('home/docker-credential-canary', `#!/bin/sh\n${script}\n`, 0o755);
  await helper(
    `echo '{"Username":"bot","Secret":"${canary.value}"}' >&2; echo 'store of ${canary.value} is locked' >&2; exit 1`,
  );
  await failing(/docker-credential-canary ended with 1/);
  await helper(`echo 'Username=bot Secret=${canary.value}'`);
  await failing(/did not answer JSON/);
});

test('lock: accepted logins, by password, by helper and by identity token', async ({ sweep, registry }) => {
  registryMood.hostile = false;
  const helper = `echo '{"Username":"bot","Secret":"${canary.value}"}'`;
  await sweep.write('home/docker-credential-canary', `#!/bin/sh\n${helper}\n`, 0o755);
  await ends(sweep, 0, ['lock', ...chosen]);
  await sweep.write('home/.docker/config.json', JSON.stringify({ auths: { [registry.host]: { auth: canary.auth } } }));
  await ends(sweep, 0, ['lock', ...chosen, '--update', 'executor', '-o', 'json']);
});

test('render: bad input beside a secret', async ({ sweep }) => {
  const bad = 'bad/clusters/example';
  await cp(sweep.path(place), sweep.path(bad), { recursive: true });
  for (const [name, body] of Object.entries(badManifests)) {
    const head = `apiVersion: v1\nkind: Secret\n${body.startsWith('metadata') ? '' : `metadata: {name: ${name}, namespace: web}\n`}`;
    await sweep.write(`${bad}/manifests/base/20-rules/${name}.yaml`, `${head}${body}\n`);
  }
  const refused = await ends(sweep, 2, ['render', '-c', bad, '--out', sweep.path('tmp/out')]);
  for (const name of Object.keys(badManifests)) assert.match(refused, new RegExp(`/${name}\\.yaml`), name);
  const network = (line: string) => (text: string) => text.replace('spec:\n', `spec:\n  ${line}\n`);
  const variants: [string, (text: string) => string][] = [
    ['network.yaml', network(`password: ${canary.value}`)],
    ['network.yaml', network(`secretName: {token: ${canary.value}}`)],
    [
      'network.yaml',
      (text) => text.replace(/source: .*/, `source: https://bot:${canary.value}@registry.example.com/x.tgz`),
    ],
    [
      'cluster.yaml',
      (text) => text.replace(/repository: .*/, `repository: https://bot:${canary.value}@git.example.com/r.git`),
    ],
    ['cluster.yaml', (text) => text.replace(/ {2}registries:\n/, `  registries:\n    - password: ${canary.value}\n`)],
    [
      'cluster.yaml',
      (text) => text.replace(/executor: registry.*/, `executor: https://bot:${canary.value}@registry.example.com/x:1`),
    ],
  ];
  for (const [file, change] of variants) {
    await cp(sweep.path(place), sweep.path('worse'), { recursive: true });
    await edit(sweep, `worse/${file}`, change);
    assert.match(await ends(sweep, 2, ['render', '-c', 'worse']), new RegExp(file));
  }
});

test('publish: refused and accepted by a remote, and keys that are none', async ({ sweep }) => {
  await git(sweep, 'specs', 'add', '--all');
  assert.is((await git(sweep, 'specs', 'commit', '--quiet', '-m', 'specs')).code, 0);
  await ends(sweep, 0, ['keys', 'init', '--out', 'key']);
  const refused = (args: string[], code: number, env: Record<string, string> = {}) =>
    ends(sweep, code, ['publish', ...chosen, ...args], env);
  await refused(['--key', await sweep.write('not-a-key', `-----BEGIN PRIVATE KEY-----\n${canary.base64}\n`)], 2);
  await refused([], 2, { KEELSON_SIGNING_KEY: canary.value });
  const askpass = await sweep.write(
    'home/askpass',
    `#!/bin/sh\ncase "$1" in User*) echo bot;; *) echo "$GIT_PASSWORD";; esac\n`,
    0o755,
  );
  await refused(['--key', 'key'], 1, { GIT_ASKPASS: askpass, GIT_PASSWORD: `${canary.value}x` });
  await refused(['--key', 'key'], 1, { GIT_ASKPASS: askpass, PASSWORD: canary.value });
  const user = '[user]\n  name = Tester\n  email = tester@example.com\n';
  const helper = `[credential]\n  helper = "!f() { echo username=bot; echo password=${canary.value}; }; f"\n`;
  await sweep.write('home/gitconfig', `${user}[http]\n  extraHeader = "Authorization: ${canary.bearer}"\n`);
  await refused(['--key', 'key'], 1);
  await sweep.write('home/gitconfig', `${user}${helper}`);
  assert.match(await ends(sweep, 0, ['publish', ...chosen, '--key', 'key']), /published/);
});

test('a kubeconfig whose secrets are refused, or whose helper fails', async ({ sweep, server }) => {
  const base = JSON.parse(kubeconfigText({ url: server.url, ca: server.ca, token: canary.value }));
  const withUser = (user: object) => JSON.stringify({ ...base, users: [{ name: 'test', user }] });
  const plugin = await sweep.write('home/plugin', `#!/bin/sh\necho '${canary.chatter}' >&2\nexit 1\n`, 0o755);
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, interactiveMode: 'Never' };
  const users = {
    token: { token: canary.value },
    basic: { username: 'bot', password: canary.value },
    certificate: { 'client-certificate-data': canary.base64, 'client-key-data': canary.base64 },
    exec: { exec },
  };
  for (const [name, user] of Object.entries(users)) {
    const kubeconfig = await sweep.write(`home/${name}.kubeconfig`, withUser(user));
    await ends(sweep, 1, ['status', '--kubeconfig', kubeconfig]);
    if (name === 'token') await ends(sweep, 1, ['deliver', ...chosen, '--kubeconfig', kubeconfig]);
  }
});

test('bootstrap, deliver and the executor among errors that quote it', async (context) => {
  const { sweep, server, proxy } = context;
  const { admin } = server;
  const secret = (namespace: string, name: string, more: object) =>
    admin.expect('POST', `/api/v1/namespaces/${namespace}/secrets`, {
      body: { apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...more },
    });
  await secret('kube-system', 'registry-pull', { stringData: { other: canary.value } });
  await secret('default', 'credentials', {
    type: 'kubernetes.io/basic-auth',
    stringData: { username: 'bot', password: canary.value },
  });
  const through = await sweep.write(
    'home/proxy.kubeconfig',
    kubeconfigText({ url: proxy.url, ca: server.ca, token: server.token }),
  );
  const quoting = (match: Parameters<FaultProxy['plan']['inject']>[0]['match'], code: number, times = 1, more = '') =>
    proxy.plan.inject({ match, times, fault: { kind: 'status', code, message: `${canary.chatter}${more}` } });
  const plain = `; data.password: Invalid value: "${canary.value}" ${canary.base64}`;

  const bootstrap = (...more: string[]) => [
    'bootstrap',
    ...chosen,
    '--no-wait',
    '--no-courier',
    ...more,
    '--kubeconfig',
    through,
  ];
  const deliver = ['deliver', ...chosen, '--kubeconfig', through];
  quoting({ mutating: true, resource: 'customresourcedefinitions' }, 403);
  await ends(sweep, 1, bootstrap());
  quoting((request) => request.resource === 'secrets', 422, 20, plain);
  await ends(sweep, 1, bootstrap('--trust', 'key.pub'));
  proxy.plan.clear();
  await ends(sweep, 0, bootstrap('--trust', 'key.pub'));
  // A key that is none, beside the good one.
  await admin.expect('PATCH', `/api/v1/namespaces/${system}/secrets/keelson-trust`, {
    type: 'application/merge-patch+json',
    body: { stringData: { broken: canary.value } },
  });
  quoting({ mutating: true, resource: 'releases' }, 422);
  await ends(sweep, 1, deliver);
  proxy.plan.clear();
  await ends(sweep, 0, deliver);

  const faults = [
    quoting({ resource: 'leases', mutating: true }, 500, 2),
    quoting((request) => request.resource === 'secrets', 500, 3, plain),
    quoting({ resource: 'configmaps', verb: 'list' }, 403, 2),
    quoting({ resource: 'configmaps', mutating: true }, 500, 3),
    quoting({ resource: 'releases', subresource: 'status' }, 409, 3),
    quoting({ resource: 'networkpolicies', mutating: true }, 500, 2),
    quoting({ resource: 'events', mutating: true }, 500, 2),
    quoting({ resource: 'selfsubjectaccessreviews' }, 503, 2),
  ];
  context.executor = sweep.start(['executor', '--kubeconfig', through, '--metrics-port', '0']);
  const release = async (name: string) =>
    (await admin.expect('GET', `/apis/keelson.dev/v1alpha1/namespaces/${system}/releases/${name}`)).body.status;
  const told = (status: { conditions?: object[] }): string => JSON.stringify(status.conditions ?? []);
  await until(
    'base to be refused for the Secret of somebody else',
    async () => /credentials/.test(told(await release('manifests-base'))),
    60_000,
  );
  await until(
    'the network to miss a key of the pull Secret',
    async () => /dockerconfigjson/.test(JSON.stringify(await release('network-example'))),
    60_000,
  );
  const { body: pull } = await admin.expect('GET', '/api/v1/namespaces/kube-system/secrets/registry-pull');
  await admin.expect('DELETE', '/api/v1/namespaces/kube-system/secrets/registry-pull', {
    body: { preconditions: { uid: pull.metadata.uid } },
  });
  await secret('kube-system', 'registry-pull', {
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': canary.dockerConfig },
  });
  await admin.expect('DELETE', '/api/v1/namespaces/default/secrets/credentials');
  await until('base to be applied', async () => (await release('manifests-base')).state === 'Reconciling', 90_000);
  await until(
    'web to go on once its namespace is there',
    async () => (await admin.request('GET', '/api/v1/namespaces/web/services/web')).status === 200,
    90_000,
  );
  for (const [index, hits] of faults.entries()) assert.ok(hits() > 0, `fault ${index} hit nothing`);
});

test('what people and machines read afterwards', async ({ sweep, executor }) => {
  for (const args of [
    ['status'],
    ['status', '-o', 'yaml'],
    ['status', 'network-example'],
    ['diff', ...chosen, '-o', 'json'],
    ['plan', ...chosen, '--diff'],
    ['verify', ...chosen],
    ['inventory', ...chosen, '--check'],
  ]) {
    const result = await sweep.keelson(args);
    assert.ok(result.code === 0 || result.code === 2 || result.code === 3, `${args.join(' ')}: ${result.text}`);
  }
  const port = /"port":([0-9]+)/.exec((await executor?.text()) ?? '')?.[1];
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  assert.match(metrics, /keelson_api_requests_total/);
  assert.not.ok(canary.foundIn(metrics), 'metrics');
});

test('the canary is nowhere but where it was put', async (context) => {
  const { sweep, server, executor } = context;
  context.executor = undefined;
  const ended = await executor?.stop();
  assert.is(ended?.code, 0, ended?.text);
  const found = {
    outputs: sweep.outputs(),
    cluster: await sweep.cluster(server),
    rendered: await sweep.repository(sweep.path('remote/rendered.git')),
    specs: await sweep.repository(sweep.path('specs')),
    files: await sweep.files(...['tmp', 'cache', 'specs', 'remote'].map((folder) => sweep.path(folder))),
  };
  const put = ['secrets keelson-system/keelson-trust', 'secrets kube-system/registry-pull'];
  assert.equal(found, { outputs: [], cluster: put, rendered: [], specs: [], files: [] });
});

test.run();
