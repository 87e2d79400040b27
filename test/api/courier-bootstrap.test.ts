import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { kubeconfigText } from '../apiserver/credentials.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { done, runKeelson, type Said } from '../commandline.ts';
import type { DefinitionsName } from '../tools/catalog.ts';
import { readDefinitions } from '../tools/definitions.ts';
import { until } from './kubeBed.ts';

/** Bootstrap and deliver beside couriers, with the definitions that Flux and Argo CD themselves ship. */

const server = await startApiServer();
const { admin } = server;
const root = mkdtempSync(join(tmpdir(), 'keelson-courier-'));
const folder = join(root, 'clusters/example');
cpSync(join(import.meta.dirname, '../pure/plain-cluster'), folder, { recursive: true });
const plain = readFileSync(join(folder, 'cluster.yaml'), 'utf8');

const gitEnv = { PATH: process.env.PATH ?? '', HOME: root, GIT_CONFIG_NOSYSTEM: '1' };

const keelson = (...args: string[]): Promise<Said> =>
  runKeelson(args, { env: { ...gitEnv, KUBECONFIG: server.kubeconfig }, cwd: root });

/** Settings of the plain cluster, carried by a courier, with the UID that they say the cluster has. */
function configure(courier: string, clusterUID?: string): void {
  const url = 'repository: https://git.example.com/platform/rendered.git';
  const uid = clusterUID === undefined ? '' : `\n  clusterUID: ${clusterUID}`;
  const text = plain.replace('repository: .', `${url}\n    courier: ${courier}`).replace('\nspec:', `\nspec:${uid}`);
  writeFileSync(join(folder, 'cluster.yaml'), text);
}

/** The tree of the plain cluster, carried by a courier; the folder that holds it. */
async function renderFor(courier: string, clusterUID?: string): Promise<string> {
  configure(courier, clusterUID);
  const out = join(root, `${courier}${clusterUID ?? ''}`);
  done(await keelson('render', '-c', folder, '--out', out));
  return join(out, 'example');
}

const bootstrap = (tree: string, ...more: string[]): Promise<Said> =>
  keelson('bootstrap', '-c', folder, '--from', tree, '--no-wait', ...more);

/** Installs definitions as they are shipped, those of the names given. */
async function install(name: DefinitionsName, ...wanted: string[]): Promise<void> {
  for (const definition of await readDefinitions(name)) {
    const { name: id } = (definition.metadata ?? {}) as { name?: string };
    if (id === undefined || !wanted.includes(id)) continue;
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${id}`;
    await admin.expect('PATCH', path, {
      body: definition,
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'installer' },
    });
    await until(`${id} to be established`, async () => {
      const { body } = await admin.expect('GET', path);
      return body.status?.conditions?.some((c: JsonObject) => c.type === 'Established' && c.status === 'True') === true;
    });
  }
}

const makeNamespace = (name: string): Promise<unknown> =>
  admin.expect('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });

const otherUID = '00000000-0000-4000-8000-000000000001';

/** Deliver and bootstrap are refused, whether the settings or the tree alone say that it is for another cluster. */
async function refusedElsewhere(courier: string): Promise<void> {
  const { uid } = (await admin.expect('GET', '/api/v1/namespaces/kube-system')).body.metadata;
  const ours = await renderFor(courier, uid);
  const theirs = await renderFor(courier, otherUID);
  for (const [tree, inSettings] of [
    [theirs, otherUID],
    [theirs, undefined],
    [theirs, uid],
    [ours, otherUID],
  ]) {
    configure(courier, inSettings);
    for (const args of [['deliver'], ['bootstrap', '--no-wait'], ['bootstrap', '--no-wait', '--take-over']]) {
      const said = await keelson(...args, '-c', folder, '--from', tree, '-o', 'json');
      assert.is(said.code, 2, said.err);
      const { problems } = JSON.parse(said.err);
      assert.equal(
        problems.map(({ reason }: { reason: string }) => reason),
        ['ClusterMismatch'],
      );
      for (const part of [otherUID, uid]) assert.match(problems[0].message, part);
    }
  }
}

const kustomizations = '/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations';
const repositories = '/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories';
const applications = '/apis/argoproj.io/v1alpha1/namespaces/argocd/applications';
const releases = '/apis/keelson.dev/v1alpha1/namespaces/keelson-system/releases';
const settings = '/api/v1/namespaces/argocd/configmaps/argocd-cm';

/** Who applied an object, one after the other. */
async function managersOf(path: string): Promise<string[]> {
  const { body } = await admin.expect('GET', path);
  const entries: { manager: string; operation: string }[] = body.metadata.managedFields;
  return entries.filter(({ operation }) => operation === 'Apply').map(({ manager }) => manager);
}

test('a plan shows the objects of a courier, and who applies them', async () => {
  const git = (...args: string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], { cwd: root, env: gitEnv });
  git('init', '--quiet');
  git('add', 'clusters');
  git('commit', '--quiet', '-m', 'specs');
  await renderFor('flux');
  const said = done(await keelson('plan', '-c', folder, '--from', 'HEAD'));
  assert.match(said.out, /\+ courier\/gitrepository/);
  assert.match(said.out, /keelson bootstrap/);
  git('add', 'clusters');
  git('commit', '--quiet', '-m', 'courier');
  assert.not.match(done(await keelson('plan', '-c', folder, '--from', 'HEAD')).out, /courier|bootstrap/);
});

test('in another cluster than the one that was rendered for, neither deliver nor bootstrap makes anything', async () => {
  const made = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const path of [
      '/api/v1/namespaces',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    ])
      for (const { metadata } of (await admin.expect('GET', path)).body.items)
        if (metadata.name.includes('keelson')) found.push(`${path}/${metadata.name}`);
    return found;
  };
  await refusedElsewhere('flux');
  assert.equal(await made(), []);
});

test('where Flux is not installed the rest is done, what is missing is named, and the exit status is 1', async () => {
  const tree = await renderFor('flux');
  const said = await bootstrap(tree);
  assert.is(said.code, 1, said.err);
  assert.match(said.err, /Flux is not installed/);
  for (const part of ['GitRepository', 'Kustomization', 'namespace flux-system', '--no-courier'])
    assert.match(said.err, part);
  await admin.expect('GET', '/apis/apps/v1/namespaces/keelson-system/deployments/keelson-executor');
  assert.match(done(await bootstrap(tree, '--no-courier')).out, /bootstrapped example/);
});

test('the objects of Flux are taken by its own definitions, and have its own manager', async () => {
  const tree = await renderFor('flux');
  await install('source-controller', 'gitrepositories.source.toolkit.fluxcd.io');
  await install('kustomize-controller', 'kustomizations.kustomize.toolkit.fluxcd.io');
  const early = await bootstrap(tree);
  assert.is(early.code, 1);
  assert.match(early.err, /there is no namespace flux-system/);
  await makeNamespace('flux-system');
  done(await bootstrap(tree));
  const { body } = await admin.expect('GET', kustomizations);
  assert.equal(
    body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['keelson-10-system', 'keelson-20-releases', 'keelson-30-specs', 'keelson-health'],
  );
  assert.equal(await managersOf(`${repositories}/keelson`), ['kustomize-controller']);
  assert.equal(await managersOf(`${kustomizations}/keelson-health`), ['kustomize-controller']);
  // The server adds the default of the status by a second write of its own; nothing changes after that.
  done(await bootstrap(tree));
  const again = done(await bootstrap(tree));
  assert.is(again.err.replace(/^warning: no keys.*$/m, ''), '');
});

test('deliver takes the place of the courier, and leaves its objects alone', async () => {
  const tree = await renderFor('flux');
  const said = JSON.parse(done(await keelson('deliver', '-c', folder, '--from', tree, '-o', 'json')).out);
  assert.equal(said.left, []);
  assert.equal(await managersOf(`${releases}/manifests-demo`), ['kustomize-controller']);
  assert.is((await admin.expect('GET', kustomizations)).body.items.length, 4);
});

test('in another cluster bootstrap takes nothing over', async () => {
  await refusedElsewhere('argo');
  for (const path of ['/api/v1/namespaces/keelson-system', `${releases}/manifests-demo`])
    assert.equal(await managersOf(path), ['kustomize-controller'], path);
});

test('in the cluster that was rendered for, deliver goes on', async () => {
  const { uid } = (await admin.expect('GET', '/api/v1/namespaces/kube-system')).body.metadata;
  const tree = await renderFor('flux', uid);
  done(await keelson('deliver', '-c', folder, '--from', tree));
  configure('flux');
  done(await keelson('deliver', '-c', folder, '--from', tree));
});

test('with Argo CD, Flux that still carries is named; the health checks join the settings that are there', async () => {
  const tree = await renderFor('argo');
  await install('argo-cd', 'applications.argoproj.io');
  await makeNamespace('argocd');
  const held = await bootstrap(tree);
  assert.is(held.code, 1);
  assert.match(held.err, /kustomize-controller holds .*FieldConflict[\s\S]*--take-over/);
  const without = await bootstrap(tree, '--take-over');
  assert.is(without.code, 1);
  assert.match(without.err, /there is no ConfigMap argocd\/argocd-cm/);
  for (const path of ['/api/v1/namespaces/keelson-system', `${releases}/manifests-demo`])
    assert.equal(await managersOf(path), ['argocd-controller'], path);
  await admin.expect('PATCH', settings, {
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'argocd-cm' },
      data: { url: 'https://argo.example.com' },
    },
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'argocd-controller' },
  });
  const said = done(await bootstrap(tree));
  for (const name of ['keelson-10-system', 'keelson-health']) assert.match(said.err, `flux-system/${name} is no part`);
  assert.match(said.err, /GitRepository\S* flux-system\/keelson is no part/);
  const { body } = await admin.expect('GET', settings);
  assert.is(body.data.url, 'https://argo.example.com');
  assert.match(body.data['resource.customizations.health.keelson.dev_Release'], /Degraded/);
  assert.equal((await managersOf(settings)).sort(), ['argocd-controller', 'keelson-deliver']);
  assert.equal(await managersOf(`${applications}/keelson-20-releases`), ['argocd-controller']);
  done(await bootstrap(tree));
  assert.not.match(done(await bootstrap(tree)).err, /created|configured/);
});

test('an Argo CD that manages its own settings keeps the health checks', async () => {
  await admin.expect('PATCH', settings, {
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'argocd-cm' },
      data: { url: 'https://new.example.com' },
    },
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'argocd-controller', force: 'true' },
  });
  const { body } = await admin.expect('GET', settings);
  assert.is(Object.keys(body.data).length, 5);
});

test('what was left is told until it is gone, by deliver as well', async () => {
  const tree = await renderFor('argo');
  const before = JSON.parse(done(await keelson('deliver', '-c', folder, '--from', tree, '-o', 'json')).out);
  assert.is(before.left.length, 5, JSON.stringify(before.left));
  await admin.expect('DELETE', kustomizations);
  await admin.expect('DELETE', repositories);
  const after = JSON.parse(done(await keelson('deliver', '-c', folder, '--from', tree, '-o', 'json')).out);
  assert.equal(after.left, []);
  assert.not.match(done(await bootstrap(tree)).err, /is no part/);
});

test('keys that the API server refuses are no mistake of the command line: the exit status is 1', async () => {
  const tree = await renderFor('argo');
  done(await keelson('keys', 'init', '--out', join(root, 'key')));
  done(await keelson('keys', 'init', '--out', join(root, 'other')));
  const rule = (apiGroups: string[], resources: string[], verbs: string[]) => ({ apiGroups, resources, verbs });
  await admin.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
    body: {
      metadata: { name: 'all-but-secrets' },
      rules: [
        ...[
          'apps',
          'apiextensions.k8s.io',
          'rbac.authorization.k8s.io',
          'admissionregistration.k8s.io',
          'argoproj.io',
        ].map((group) => rule([group], ['*'], ['*'])),
        rule([''], ['namespaces', 'serviceaccounts', 'configmaps'], ['*']),
        rule([''], ['secrets'], ['get']),
      ],
    },
  });
  await admin.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    body: {
      metadata: { name: 'all-but-secrets' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'all-but-secrets' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'ci' }],
    },
  });
  const token = await serviceAccountToken(admin, 'default', 'ci');
  const kubeconfig = join(root, 'ci.kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText({ url: server.url, ca: server.ca, token }), { mode: 0o600 });
  const refused = await bootstrap(tree, '--trust', join(root, 'key.pub'), '--kubeconfig', kubeconfig);
  assert.is(refused.code, 1, refused.err);
  assert.match(refused.err, /keelson-trust/);
  assert.match(refused.err, /administrator/);
  done(await bootstrap(tree, '--trust', join(root, 'key.pub')));
  const differs = await bootstrap(tree, '--trust', join(root, 'other.pub'));
  assert.is(differs.code, 2, 'leaving out a trusted key is a mistake of the command line');
});

test('a public key with remarks around it is kept as the key alone', async () => {
  const pem = readFileSync(join(root, 'other.pub'), 'utf8');
  writeFileSync(join(root, 'odd.pub'), `# of CI\n\n${pem.replaceAll('\n', ' \r\n')}# until 2031\n`);
  const tree = await renderFor('argo');
  done(await bootstrap(tree, '--trust', join(root, 'odd.pub'), '--replace-trust'));
  const { body } = await admin.expect('GET', '/api/v1/namespaces/keelson-system/secrets/keelson-trust');
  const [kept, ...more] = Object.values(body.data as Record<string, string>);
  assert.equal([Buffer.from(kept ?? '', 'base64').toString(), more], [pem, []]);
});

test.after(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

test.run();
