import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { kubeconfigText } from '../apiserver/credentials.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { done, runKeelson, type Said } from '../commandline.ts';

/** The command line from keys to diff, against a real API server and real repositories, its executor on the rendered account. */

const server = await startApiServer();
const root = mkdtempSync(join(tmpdir(), 'keelson-cli-'));
const specs = join(root, 'specs');
const env = {
  PATH: process.env.PATH ?? '',
  HOME: root,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: join(root, 'gitconfig'),
  KUBECONFIG: server.kubeconfig,
};
writeFileSync(env.GIT_CONFIG_GLOBAL, '[user]\n  name = Tester\n  email = tester@example.com\n');
const git = (...args: string[]): string => execFileSync('git', args, { cwd: specs, env, encoding: 'utf8' }).trim();

const all: string[] = [];

async function keelson(...args: string[]): Promise<Said> {
  return keelsonWith(new AbortController().signal, args);
}

async function keelsonWith(signal: AbortSignal, args: string[]): Promise<Said> {
  const said = await runKeelson(args, { env, cwd: specs, signal });
  all.push(said.out, said.err);
  return said;
}

const stop = new AbortController();
let executor: Promise<Said> | undefined;

execFileSync('git', ['init', '--quiet', '--initial-branch=main', specs], { env });
cpSync(join(import.meta.dirname, '../pure/plain-cluster'), join(specs, 'clusters/example'), { recursive: true });
// Without controllers no Deployment ever becomes ready.
rmSync(join(specs, 'clusters/example/manifests/demo/30-web'), { recursive: true });
const edit = (path: string, change: (text: string) => string): void => {
  const file = join(specs, 'clusters/example', path);
  writeFileSync(file, change(readFileSync(file, 'utf8')));
};
git('add', '--all');
git('commit', '--quiet', '-m', 'specs');

test('keys init makes a key that only its owner reads, and never overwrites one', async () => {
  const said = done(await keelson('keys', 'init', '--out', '../key'));
  assert.is(statSync(join(root, 'key')).mode & 0o777, 0o600);
  assert.match(said.out, /BEGIN PUBLIC KEY/);
  assert.not.match(said.out, /PRIVATE KEY/);
  assert.is((await keelson('keys', 'init', '--out', '../key')).code, 2);
});

test('usage errors and invalid input exit with 2, and nothing is written', async () => {
  assert.is((await keelson('no-such-verb')).code, 2);
  assert.is((await keelson('render', '--no-such-flag')).code, 2);
  assert.is((await keelson('render', '-c', 'clusters/missing')).code, 2);
  edit('cluster.yaml', (text) => `${text}  nonsense: 1\n`);
  const said = await keelson('render', '--out', '../out');
  assert.is(said.code, 2);
  assert.match(said.err, /clusters\/example\/cluster\.yaml:21:3 .*spec\.nonsense/);
  assert.not(existsSync(join(root, 'out')));
  git('checkout', '--quiet', '.');
});

test('inventory writes the facts of the cluster, and --check tells when they change', async () => {
  const node = (name: string, address: string) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'node-role.kubernetes.io/control-plane': '', 'example.com/rack': 'r1' } },
    spec: {
      taints: [
        { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
        { key: 'a', effect: 'NoExecute' },
      ],
    },
    status: {
      addresses: [
        { type: 'Hostname', address: name },
        { type: 'InternalIP', address },
      ],
    },
  });
  for (const [name, address] of [
    ['n2', '192.0.2.2'],
    ['n1', '192.0.2.1'],
  ] as const) {
    const made = node(name, address);
    await server.admin.expect('POST', '/api/v1/nodes', { body: made });
    await server.admin.expect('PATCH', `/api/v1/nodes/${name}/status`, {
      type: 'application/merge-patch+json',
      body: { status: made.status },
    });
  }
  assert.is((await keelson('inventory', '--check')).code, 3);
  done(await keelson('inventory'));
  const text = readFileSync(join(specs, 'clusters/example/inventory.yaml'), 'utf8');
  const uid = (await server.admin.expect('GET', '/api/v1/namespaces/kube-system')).body.metadata.uid;
  assert.ok(text.includes(`clusterUID: ${uid}`) && text.includes('kubernetesVersion: 1.34.2'), text);
  assert.ok(text.indexOf('name: n1') < text.indexOf('name: n2'), text);
  assert.not.match(text, /rack|not-ready|hostname/i);
  assert.match(text, /node-role\.kubernetes\.io\/control-plane: ""/);
  done(await keelson('inventory', '--check'));
  git('add', '--all');
  git('commit', '--quiet', '-m', 'inventory');
});

test('publish and bootstrap bring the system unit and the trusted key', async () => {
  assert.is((await keelson('bootstrap', '--no-wait')).code, 2, 'nothing is published yet');
  done(await keelson('publish', '--key', '../key'));
  const said = done(await keelson('bootstrap', '--no-wait', '--trust', '../key.pub'));
  assert.match(said.err, /created CustomResourceDefinition\.apiextensions\.k8s\.io releases\.keelson\.dev/);
  const again = done(await keelson('bootstrap', '--no-wait', '--trust', '../key.pub'));
  assert.not.match(again.err, /created|configured/);
  done(await keelson('keys', 'init', '--out', '../other'));
  const other = await keelson('bootstrap', '--no-wait', '--trust', '../other.pub');
  assert.is(other.code, 2);
  assert.match(other.err, /--replace-trust/);
});

test('deliver, the executor on its rendered account, and status until it is done', async () => {
  const token = await serviceAccountToken(server.admin, 'keelson-system', 'keelson-executor');
  const kubeconfig = join(root, 'executor.kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText({ url: server.url, ca: server.ca, token }), { mode: 0o600 });
  executor = keelsonWith(stop.signal, ['executor', '--kubeconfig', kubeconfig, '--metrics-port', '0']);
  const said = done(await keelson('deliver', '--follow', '--timeout', '2m'));
  assert.match(said.out, /Ready=True/);
  const { body } = await server.admin.expect('GET', '/api/v1/namespaces/demo/configmaps/web');
  assert.is(body.data.greeting, 'hello');
  const status = done(await keelson('status', 'manifests-demo'));
  assert.match(status.out, /config +Done +2\/2/);
  const json = JSON.parse(done(await keelson('status', '-o', 'json')).out);
  assert.is(json[0].name, 'manifests-demo');
  assert.is((await keelson('status', 'nothing')).code, 2);
});

test('diff sees a change by hand, and nothing else', async () => {
  done(await keelson('diff'));
  await server.admin.expect('PATCH', '/api/v1/namespaces/demo/serviceaccounts/web', {
    type: 'application/merge-patch+json',
    query: { fieldManager: 'somebody' },
    body: { metadata: { labels: { 'app.kubernetes.io/managed-by': 'somebody' } } },
  });
  const said = await keelson('diff');
  // The executor may have taken it back already; if not, the manager is named.
  if (said.code === 3) assert.match(said.out, /ServiceAccount demo\/web: (held by others|differs)/);
  else assert.is(said.code, 0, said.err);
});

test('an edit is planned, published and delivered; what left is pruned, also the last of its kind', async () => {
  edit('manifests/demo/20-config/config.yaml', (text) =>
    text.replace('hello', 'goodbye').replace(/apiVersion: v1\nkind: ServiceAccount[\s\S]*?---\n/, ''),
  );
  const plan = await keelson('plan', '--detailed-exitcode');
  assert.is(plan.code, 3);
  assert.match(plan.out, /1 configured, 1 unchanged, 1 pruned/);
  assert.match((await keelson('plan', '--live')).out, /from what the cluster enforces[\s\S]*1 configured, 1 unchanged/);
  const digest = /--plan (sha256:[0-9a-f]{64})/.exec(plan.out)?.[1] ?? '';
  assert.match(plan.out, /prune\.maxPercent/);
  edit('cluster.yaml', (text) => text.replace('mode: destructive', `mode: destructive\n        planDigest: ${digest}`));
  assert.match((await keelson('publish', '--key', '../key')).err, /SpecsNotCommitted/);
  git('commit', '--quiet', '--all', '-m', 'edit');
  done(await keelson('publish', '--key', '../key'));
  const said = done(await keelson('deliver', '--follow', '--timeout', '2m'));
  assert.match(said.out, /removed from the inbox: ConfigMap keelson-system\/keelson-payload-manifests-demo-/);
  assert.is((await server.admin.expect('GET', '/api/v1/namespaces/demo/configmaps/web')).body.data.greeting, 'goodbye');
  assert.is((await server.admin.request('GET', '/api/v1/namespaces/demo/serviceaccounts/web')).status, 404);
  const again = done(await keelson('deliver'));
  assert.match(again.out, /0 created, 0 configured/);
});

test('what the tree no longer names is listed and left', async () => {
  await server.admin.expect('PATCH', '/apis/rbac.authorization.k8s.io/v1/clusterroles/keelson-old', {
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'test' },
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'keelson-old', labels: { 'app.kubernetes.io/managed-by': 'keelson' } },
      rules: [],
    },
  });
  assert.match(done(await keelson('deliver')).out, /left in the cluster:\n {2}ClusterRole\.rbac.* keelson-old/);
});

test('a field that another manager holds is never taken', async () => {
  const path = '/apis/keelson.dev/v1alpha1/namespaces/keelson-system/releases/manifests-demo';
  await server.admin.expect('PATCH', path, {
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'somebody', force: 'true' },
    body: {
      apiVersion: 'keelson.dev/v1alpha1',
      kind: 'Release',
      metadata: { name: 'manifests-demo', namespace: 'keelson-system' },
      spec: { approval: { mode: 'always' } },
    },
  });
  const said = await keelson('deliver');
  assert.is(said.code, 1);
  assert.match(said.err, /somebody holds .*mode.*\[FieldConflict\]/);
});

test('a damaged tree is not delivered', async () => {
  done(await keelson('render', '--out', '../tree'));
  const folder = join(root, 'tree/example');
  done(await keelson('verify', '--from', folder));
  writeFileSync(join(folder, 'sync/10-system/namespace___keelson-system.yaml'), 'apiVersion: v1\n');
  const said = await keelson('deliver', '--from', folder);
  assert.is(said.code, 2);
  assert.match(said.err, /namespace___keelson-system\.yaml: the file is not the one that was rendered/);
});

test('no private key was told by any command', () => {
  const key = readFileSync(join(root, 'key'), 'utf8').split('\n')[1] ?? 'missing';
  assert.not(all.join('\n').includes(key));
});

test.after(async () => {
  stop.abort(new Error('the tests are over'));
  await executor;
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

test.run();
