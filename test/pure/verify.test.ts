import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { generateKeyPair, readTrust } from '../../constructs/api/signature.ts';
import { type Tree, treeFile } from '../../constructs/api/tree.ts';
import { checkTree } from '../../constructs/api/tree-check.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { signerOf } from '../../renderer/payload/sign.ts';
import { renderFolder, using } from './render-support.ts';

const key = generateKeyPair();
const trustOf = (...keys: (typeof key)[]) =>
  readTrust(Object.fromEntries(keys.map(({ keyId, publicKey }) => [keyId, publicKey]))).trust;

async function rendered(): Promise<Tree> {
  let tree: Tree | undefined;
  await using(async (copy) => {
    const outcome = await renderFolder(copy.folder, { signer: signerOf(key.privateKey) });
    if (outcome.ok) tree = outcome.rendered.tree;
  });
  if (tree === undefined) throw new Error('the example can not be rendered');
  return tree;
}

const whole = await rendered();
const text = (path: string): string => Buffer.from(whole.get(path) ?? '').toString();
const find = (form: RegExp): string => [...whole.keys()].find((path) => form.test(path)) ?? 'missing';

/** The tree with files changed, and its list brought up to date, as somebody who forges would. */
function forged(changes: Record<string, string | undefined>, relist = true): Tree {
  const files = new Map(whole);
  for (const [path, content] of Object.entries(changes))
    if (content === undefined) files.delete(path);
    else files.set(path, Buffer.from(content));
  if (!relist) return files;
  const index = JSON.parse(Buffer.from(files.get(treeFile) ?? '').toString());
  index.files = [...files]
    .filter(([path]) => path !== treeFile)
    .map(([path, bytes]) => ({ path, sha256: sha256Hex(bytes) }));
  files.set(treeFile, Buffer.from(JSON.stringify(index)));
  return files;
}

const problemsOf = async (tree: Tree, trust = trustOf(key)): Promise<string[]> =>
  (await checkTree(tree, 'example', trust)).problems.map((p) => `${p.reason} ${p.file}: ${p.message}`);

const says = async (tree: Tree, ...forms: RegExp[]): Promise<void> => {
  const told = await problemsOf(tree);
  for (const form of forms)
    assert.ok(
      told.some((line) => form.test(line)),
      `${form} is not among\n${told.join('\n')}`,
    );
};

const chunk = find(/^sync\/20-releases\/configmap/);
const release = find(/^sync\/20-releases\/release/);
const manifest = find(/^payload\/.*\.yaml$/);
const index = find(/index\.json$/);

test('a tree as it was rendered is of one piece, by either of two trusted keys', async () => {
  assert.equal(await problemsOf(whole), []);
  assert.equal(await problemsOf(whole, trustOf(generateKeyPair(), key)), []);
  const { releases } = await checkTree(whole, 'example', undefined);
  assert.is(releases[0]?.signature.kind, 'unknownKey');
});

test('files that are missing, changed, or nobody listed are all told at once', async () => {
  const tree = forged(
    {
      [manifest]: `${text(manifest)}# more\n`,
      [chunk]: undefined,
      'sync/30-specs/evil.yaml': 'a: b\n',
      'README.md': 'x',
    },
    false,
  );
  const told = await problemsOf(tree);
  assert.ok(told.includes(`TreeInvalid ${manifest}: the file is not the one that was rendered`), told.join('\n'));
  assert.ok(told.includes(`TreeInvalid ${chunk}: the file is missing`));
  assert.ok(told.some((line) => line.startsWith('TreeInvalid sync/30-specs/evil.yaml: the file is not part')));
  assert.not(told.some((line) => line.includes('README.md')));
  assert.match((await problemsOf(forged({}), trustOf(key))).join(), /^$/);
  assert.equal((await checkTree(whole, 'other', undefined)).problems.length, 1);
});

test('objects that do not have the digests of the index are told, however well they are listed', async () => {
  await says(
    forged({ [manifest]: text(manifest).replace(/^kind:.*$/m, 'kind: Other') }),
    /^PayloadIntegrity payload\/.*: the file does not have the sha256/,
  );
  await says(forged({ [index]: text(index).replace('"keep": false', '"keep": true') }), /content has sha256/);
});

test('what a courier carries must be the very payload', async () => {
  const flipped = text(chunk).replace(/^( {2}payload: .{40})(.)/m, (_, head, c) => `${head}${c === 'A' ? 'B' : 'A'}`);
  await says(forged({ [chunk]: flipped }), /do not have the sha256/);
  await says(forged({ [chunk]: undefined }), /no chunk of payload/);
  const other = `sha256:${'9'.repeat(64)}`;
  await says(
    forged({ [release]: text(release).replace(/sha256:[0-9a-f]{64}/, other) }),
    new RegExp(`the Release asks for payload ${other}`),
  );
  await says(forged({ [release]: undefined }), /it holds 0 Releases manifests-demo/);
  await says(
    forged({
      'sync/20-releases/release.keelson.dev_keelson-system_x.yaml': text(release).replace(/manifests-demo/g, 'x'),
    }),
    /the list of the tree names no release x/,
  );
});

test('signatures: missing, by a key that is not trusted, of another content, and another than what is carried', async () => {
  const parsed = JSON.parse(text(index));
  const resigned = (change: (value: Record<string, unknown>) => void): Tree => {
    const copy = structuredClone(parsed);
    change(copy);
    return forged({ [index]: JSON.stringify(copy) });
  };
  await says(
    resigned((value) => Reflect.deleteProperty(value, 'signature')),
    /^SignatureMissing/,
    /do not carry the payload of payload\/manifests-demo\/index.json/,
  );
  const stranger = generateKeyPair();
  await says(
    resigned((value) => Object.assign(value, { signature: signerOf(stranger.privateKey).sign(parsed.digest) })),
    new RegExp(`^SignatureUntrusted .*key ${stranger.keyId} signed it; trusted are ${key.keyId}`),
  );
  const wrong = signerOf(key.privateKey).sign(`sha256:${'1'.repeat(64)}`);
  await says(
    resigned((value) => Object.assign(value, { signature: wrong })),
    /^SignatureInvalid/,
  );
});

test.run();
