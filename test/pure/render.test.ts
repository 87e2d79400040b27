import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { chunkKey, joinChunks } from '../../constructs/api/payload-chunks.ts';
import { decodePayload } from '../../constructs/api/payload-codec.ts';
import { generateKeyPair, readTrust, verifySignature } from '../../constructs/api/signature.ts';
import { type Tree, treeFile } from '../../constructs/api/tree.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { signerOf } from '../../renderer/payload/sign.ts';
import type { Rendered } from '../../renderer/render.ts';
import { copyExample, exampleFolder, renderFolder } from './render-support.ts';

/** Changes when, and only when, the bytes of the example's payload change. A new value is a change of the format. */
const goldenDigest = 'sha256:dc2e186b04492c94fed13ed4abb7d9f5013c0f7e06e7a4a913fc760780209104';

async function rendered(folder = exampleFolder, more: Parameters<typeof renderFolder>[1] = {}): Promise<Rendered> {
  const outcome = await renderFolder(folder, more);
  if (!outcome.ok) throw new Error(outcome.problems.map((p) => `${p.file} ${p.reason} ${p.message}`).join('\n'));
  return outcome.rendered;
}

const text = (tree: Tree, path: string): string =>
  Buffer.from(tree.get(path) ?? assert.unreachable(`${path} is missing`) ?? '').toString();
const yaml = (tree: Tree, path: string): JsonObject => {
  const value = parseYaml(text(tree, path), path).documents[0]?.value;
  return isObject(value) ? value : (assert.unreachable(path) ?? {});
};

test('the example renders to the frozen digest', async () => {
  const { releases } = await rendered();
  assert.equal(
    releases.map((r) => [r.name, r.index.digest]),
    [['manifests-demo', goldenDigest]],
  );
});

test('phases, gates and marks of a manifests release', async () => {
  const { releases } = await rendered();
  const [release] = releases;
  const phases = release?.index.content.phases ?? [];
  assert.equal(
    phases.map((p) => [p.name, p.dir, p.gates.map((g) => `${g.type}(${g.scope}) ${g.softLimit}`)]),
    [
      ['base', '10-base', []],
      ['config', '20-config', []],
      ['web', '30-web', ['WorkloadsReady(web) 10m']],
    ],
  );
  const deployment = release?.objects.get('apps/Deployment/demo/web') as JsonObject & { metadata: JsonObject };
  assert.equal(deployment.metadata.labels, {
    'app.kubernetes.io/managed-by': 'keelson',
    'keelson.dev/phase': 'web',
    'keelson.dev/release': 'manifests-demo',
  });
  assert.equal(deployment.metadata.annotations, { 'keelson.dev/id': 'apps/Deployment/demo/web' });
});

test('key fields with a default are written out', async () => {
  const { tree } = await rendered();
  const service = yaml(tree, 'payload/manifests-demo/30-web/service_demo_web.yaml') as { spec?: { ports?: unknown } };
  assert.equal(service.spec?.ports, [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http' }]);
});

test('definitions get the gate Established, and annotations become fields of the index', async () => {
  const copy = copyExample();
  try {
    copy.write(
      'manifests/demo/05-types/crd.yaml',
      [
        'apiVersion: apiextensions.k8s.io/v1',
        'kind: CustomResourceDefinition',
        'metadata: {name: things.example.com}',
        'spec:',
        '  group: example.com',
        '  names: {kind: Thing, plural: things}',
        '  scope: Namespaced',
        '  versions:',
        '    - name: v1',
        '      served: true',
        '      storage: true',
        '      schema:',
        '        openAPIV3Schema:',
        '          type: object',
        '          properties:',
        '            spec:',
        '              type: object',
        '              properties:',
        '                parts:',
        '                  type: array',
        '                  x-kubernetes-list-type: map',
        '                  x-kubernetes-list-map-keys: [id]',
        '                  items: {type: object, properties: {id: {type: string}}}',
        '',
      ].join('\n'),
    );
    copy.write(
      'manifests/demo/40-things/thing.yaml',
      [
        'apiVersion: example.com/v1',
        'kind: Thing',
        'metadata:',
        '  name: a',
        '  namespace: demo',
        '  annotations:',
        '    keelson.dev/conflict-policy: "yield"',
        '    keelson.dev/yield-fields: /spec/size, /spec/other',
        '    keelson.dev/create-only: "true"',
        '    keelson.dev/prune: disabled',
        'spec: {parts: [{id: a}]}',
        '---',
        'apiVersion: v1',
        'kind: ConfigMap',
        'metadata: {name: old, namespace: demo, annotations: {keelson.dev/absent: "true"}}',
        '',
      ].join('\n'),
    );
    const { releases, tree } = await rendered(copy.folder);
    const phases = releases[0]?.index.content.phases ?? [];
    assert.equal(
      phases[0]?.gates.map((g) => `${g.type}(${g.scope})`),
      ['Established(types)'],
    );
    const [old, thing] = phases.at(-1)?.objects ?? [];
    assert.is(old?.absent, true);
    assert.equal(
      [thing?.conflict, thing?.yieldFields, thing?.createOnly, thing?.keep, thing?.recreate],
      ['yield', ['/spec/other', '/spec/size'], true, true, false],
    );
    const role = yaml(tree, 'sync/10-system/clusterrole.rbac.authorization.k8s.io___keelson-executor.yaml');
    assert.match(JSON.stringify(role.rules), /"example.com"\],"resources":\["things"\]/);
    copy.write(
      'manifests/demo/40-things/double.yaml',
      'apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: b, namespace: demo}\nspec:\n  parts:\n    - id: a\n    - id: a\n',
    );
    const outcome = await renderFolder(copy.folder);
    assert.ok(!outcome.ok && outcome.problems.some((p) => p.reason === 'DuplicateListKey' && p.line === 7));
  } finally {
    copy.dispose();
  }
});

test('the inbox carries an archive that decodes to the objects of the tree', async () => {
  const { tree, releases } = await rendered();
  const digest = releases[0]?.index.digest ?? '';
  const chunks = [...tree.keys()].filter((path) => path.startsWith('sync/20-releases/configmap_'));
  const maps = chunks.map((path) => yaml(tree, path) as never);
  const archive = joinChunks(digest, maps);
  assert.ok(archive.ok, JSON.stringify(archive));
  const payload = archive.ok ? await decodePayload(archive.value) : undefined;
  assert.ok(payload?.ok === true);
  if (payload?.ok) assert.equal([...payload.value.objects.values()], [...(releases[0]?.objects.values() ?? [])]);
  assert.ok(maps.every((map: { binaryData: Record<string, string> }) => map.binaryData[chunkKey] !== undefined));
  const release = yaml(tree, 'sync/20-releases/release.keelson.dev_keelson-system_manifests-demo.yaml');
  assert.equal(release.spec, { approval: { mode: 'destructive' }, payload: { digest }, source: { configMaps: {} } });
});

test('tree.json lists every other file with its digest', async () => {
  const { tree } = await rendered();
  const list = JSON.parse(text(tree, treeFile)) as { files: { path: string; sha256: string }[] };
  assert.equal(
    list.files.map((file) => file.path),
    [...tree.keys()].filter((path) => path !== treeFile),
  );
  for (const file of list.files) assert.is(sha256Hex(tree.get(file.path) ?? ''), file.sha256, file.path);
  assert.is(text(tree, '.gitattributes'), '* -text -ident -filter -working-tree-encoding\n');
});

test('an unchanged payload keeps its index byte for byte, also when the renderer and the commit moved', async () => {
  const pair = generateKeyPair();
  const signer = signerOf(pair.privateKey);
  const path = 'payload/manifests-demo/index.json';
  const first = await rendered(exampleFolder, { signer, specCommit: 'a'.repeat(40) });
  const second = await rendered(exampleFolder, {
    signer,
    specCommit: 'b'.repeat(40),
    keelson: '9.9.9',
    previous: first.tree,
  });
  assert.equal([...second.tree], [...first.tree]);
  const unsigned = await rendered(exampleFolder, { previous: first.tree });
  assert.is(text(unsigned.tree, path), text(first.tree, path));
  const other = generateKeyPair();
  const third = await rendered(exampleFolder, { signer: signerOf(other.privateKey), previous: first.tree });
  const { index } = third.releases[0] ?? assert.unreachable() ?? {};
  const trust = readTrust({ other: other.publicKey }).trust;
  assert.is(verifySignature(index?.digest ?? '', index?.signature, trust).kind, 'valid');
  assert.is(index?.digest, first.releases[0]?.index.digest);
});

test('a damaged signature of the previous tree is made anew', async () => {
  const signer = signerOf(generateKeyPair().privateKey);
  const path = 'payload/manifests-demo/index.json';
  const first = await rendered(exampleFolder, { signer });
  const index = JSON.parse(text(first.tree, path)) as { signature: { ed25519: string } };
  index.signature.ed25519 = `${'A'.repeat(86)}==`;
  const damaged = new Map([...first.tree, [path, Buffer.from(JSON.stringify(index))] as const]);
  const second = await rendered(exampleFolder, { signer, previous: damaged });
  assert.is(text(second.tree, path), text(first.tree, path));
});

test('delivery settings reach the Release and never the payload', async () => {
  const copy = copyExample();
  try {
    const before = await rendered(copy.folder);
    const cluster = readFileSync(join(copy.folder, 'cluster.yaml'), 'utf8');
    copy.write(
      'cluster.yaml',
      cluster
        .replace('mode: destructive', 'mode: always')
        .replace('manifests-demo:', 'manifests-demo:\n      paused: true'),
    );
    const after = await rendered(copy.folder);
    assert.is(after.releases[0]?.index.digest, before.releases[0]?.index.digest);
    const release = yaml(after.tree, 'sync/20-releases/release.keelson.dev_keelson-system_manifests-demo.yaml') as {
      spec?: JsonObject;
    };
    assert.equal([release.spec?.paused, release.spec?.approval], [true, { mode: 'always' }]);
  } finally {
    copy.dispose();
  }
});

test('the same bytes in other processes, time zones, languages, umasks and orders of files', async () => {
  const run = promisify(execFile);
  const child = join(import.meta.dirname, 'render-child.ts');
  const variants: { env: NodeJS.ProcessEnv; umask: string; order: string }[] = [
    { env: { TZ: 'UTC', LANG: 'C' }, umask: '022', order: 'sorted' },
    { env: { TZ: 'Pacific/Chatham', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' }, umask: '077', order: 'reversed' },
  ];
  const digests = [];
  for (const { env, umask, order } of variants) {
    const script = `umask ${umask}; exec "$0" "$1" "$2" "$3"`;
    const { stdout } = await run('/bin/sh', ['-c', script, process.execPath, child, exampleFolder, order], { env });
    digests.push(stdout);
  }
  assert.match(digests[0] ?? '', /^sha256:/);
  assert.is(digests[1], digests[0]);
});

test.run();
