import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { joinChunks } from '../../constructs/api/payload-chunks.ts';
import { decodePayload } from '../../constructs/api/payload-codec.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { kubeconfigText } from '../apiserver/credentials.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { done, type Said } from '../commandline.ts';
import { commandBed } from './command-bed.ts';

/** Keys from the first to the third, and `verify --live` on the way, with a real executor on a real API server. */

const server = await startApiServer();
const bed = commandBed({ KUBECONFIG: server.kubeconfig });
const { keelson, root } = bed;
rmSync(join(bed.folder, 'manifests/demo/30-web'), { recursive: true });
bed.commit('specs');

const maps = '/api/v1/namespaces/keelson-system/configmaps';
const keyOf = async (file: string): Promise<string> =>
  JSON.parse(done(await keelson(['keys', 'init', '--out', file, '-o', 'json'])).out).keyId;

/** The executor, as often as it is started. */
let stop = new AbortController();
let running: Promise<Said> | undefined;
let kubeconfig = '';

function start(): void {
  stop = new AbortController();
  running = keelson(['executor', '--kubeconfig', kubeconfig, '--metrics-port', '0'], stop.signal);
}

async function halt(): Promise<void> {
  stop.abort(new Error('stopped'));
  await running;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface LiveRelease {
  readonly status?: { readonly actual?: string; readonly conditions?: readonly Condition[] };
}

/** Waits until the Release is as it should be. */
function released(what: string, holds: (conditions: ReadonlyMap<string, Condition>, actual: string) => boolean) {
  return waitFor({
    what,
    limitMs: 30_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async (saw) => {
      const path = '/apis/keelson.dev/v1alpha1/namespaces/keelson-system/releases/manifests-demo';
      const { status } = (await server.admin.expect('GET', path)).body as LiveRelease;
      const conditions = new Map((status?.conditions ?? []).map((c) => [c.type, c]));
      saw(JSON.stringify(status?.conditions?.map((c) => `${c.type}=${c.status} ${c.reason} ${c.message}`)));
      return holds(conditions, status?.actual ?? '') ? (status?.actual ?? '') : undefined;
    },
  });
}

/** The key that signed the retained copy. */
async function retainedKey(digest: string): Promise<string | undefined> {
  const query = { labelSelector: 'keelson.dev/holds=retained' };
  const { items } = (await server.admin.expect('GET', maps, { query })).body;
  const joined = joinChunks(digest, items);
  const decoded = joined.ok ? await decodePayload(joined.value) : undefined;
  return decoded?.ok === true ? decoded.value.index.signature?.keyId : undefined;
}

/** An object of the payload is taken away and comes back: the payload is enforced. */
async function enforced(): Promise<void> {
  await server.admin.expect('DELETE', '/api/v1/namespaces/demo/configmaps/web');
  await waitFor({
    what: 'ConfigMap demo/web to come back',
    limitMs: 30_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async () =>
      (await server.admin.request('GET', '/api/v1/namespaces/demo/configmaps/web')).status === 200 ? true : undefined,
  });
}

const first = await keyOf('old.key');

test('a first install, checked against the cluster at every stage', async () => {
  done(await keelson(['inventory']));
  bed.commit('inventory');
  done(await keelson(['publish', '--key', 'old.key']));
  done(await keelson(['bootstrap', '--no-wait', '--trust', 'old.key.pub']));
  const early = await keelson(['verify', '--live', '-o', 'json']);
  assert.is(early.code, 1);
  assert.equal(
    JSON.parse(early.out).problems.map((p: { reason: string }) => p.reason),
    ['PayloadIncomplete', 'ReleaseMissing'],
  );
  assert.equal(JSON.parse(early.err).problems, JSON.parse(early.out).problems);
  const token = await serviceAccountToken(server.admin, 'keelson-system', 'keelson-executor');
  kubeconfig = join(root, 'executor.kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText({ url: server.url, ca: server.ca, token }), { mode: 0o600 });
  start();
  done(await keelson(['deliver', '--follow', '--timeout', '1m']));
  done(await keelson(['verify', '--live', '--trust', 'old.key.pub']));
  assert.match(done(await keelson(['keys', 'list'])).out, new RegExp(`${first} +yes +manifests-demo`));
});

test('the key is rotated as the documentation says, and a restart heals the copy', async () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
  const block = /To rotate the key[\s\S]*?```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  const lines = block.split('\n').flatMap((line) => line.replace(/#.*/, '').trim() || []);
  assert.is(lines.length, 7, block);
  for (const line of lines) {
    const [program, ...args] = line.split(/\s+/).map((word) => (word === 'OLD_KEY_ID' ? first : word));
    assert.is(program, 'keelson');
    if (args[1] === 'untrust') assert.match(done(await keelson(['keys', 'list'])).out, new RegExp(`${first} +yes +-`));
    done(await keelson(args[0] === 'deliver' ? [...args, '--timeout', '1m'] : args));
  }
  const digest = await released('the release to be Ready', (c) => c.get('Ready')?.status === 'True');
  assert.is(await retainedKey(digest), first, 'nothing was accepted anew');
  await halt();
  start();
  await enforced();
  assert.is.not(await retainedKey(digest), first);
  done(await keelson(['verify', '--live']));
});

test('a key in use goes only when that is said; what it signed stays enforced, and nothing new of it comes in', async () => {
  const [second] = JSON.parse(done(await keelson(['keys', 'list', '-o', 'json'])).out).map(
    (k: { keyId: string }) => k.keyId,
  );
  assert.is((await keelson(['keys', 'untrust', second])).code, 2);
  const alone = await keelson(['keys', 'untrust', second, '--in-use']);
  assert.is(alone.code, 2);
  assert.match(alone.err, /no key would be left/);
  const third = await keyOf('third.key');
  done(await keelson(['keys', 'trust', 'third.key.pub']));
  assert.match(
    (await keelson(['keys', 'untrust', second])).err,
    new RegExp(`key ${second} signed the payload .*KeyInUse`),
  );
  const before = await released('any', () => true);
  done(await keelson(['keys', 'untrust', second, '--in-use']));
  assert.match(done(await keelson(['keys', 'list'])).out, new RegExp(`${second} +no +manifests-demo`));

  await halt();
  start();
  await enforced();
  await released(
    'Unverified',
    (c) => c.get('Unverified')?.status === 'True' && c.get('Unverified')?.message.includes(second) === true,
  );

  bed.edit('manifests/demo/20-config/config.yaml', (yaml) => yaml.replace('hello', 'goodbye'));
  bed.commit('edit');
  done(await keelson(['publish', '--key', 'new.key']));
  done(await keelson(['deliver']));
  const said = new RegExp(`key ${second} signed it; trusted are ${third}`);
  const still = await released(
    'the refusal',
    (c) => c.get('Accepted')?.status === 'False' && said.test(c.get('Accepted')?.message ?? ''),
  );
  assert.is(still, before);
  await enforced();

  // The same content, signed by a key that is trusted.
  assert.match(done(await keelson(['publish', '--key', 'third.key'])).out, /published/);
  done(await keelson(['deliver', '--follow', '--timeout', '1m']));
  await released('a vouched-for payload', (c, actual) => actual !== before && c.get('Unverified')?.status !== 'True');
  done(await keelson(['verify', '--live', '--trust', 'third.key.pub']));
  // An older commit of the rendered branch is whole as well, and signed by who signed it then.
  const older = await keelson(['verify', '--revision', bed.git('rev-parse', 'rendered~1'), '--trust', 'third.key.pub']);
  assert.is(older.code, 1);
  assert.match(older.err, new RegExp(`^1 problem:\n.*key ${second} signed it; trusted are ${third}`));
});

test('a retained copy that is damaged is told as such, and made anew', async () => {
  const digest = await released('any', () => true);
  await halt();
  const query = { labelSelector: 'keelson.dev/holds=retained' };
  const { items } = (await server.admin.expect('GET', maps, { query })).body;
  const chunk = items.find(
    (item: { metadata: { annotations: Record<string, string> } }) =>
      item.metadata.annotations['keelson.dev/payload'] === digest,
  );
  await server.admin.expect('DELETE', `${maps}/${chunk.metadata.name}`);
  const { name, labels, annotations } = chunk.metadata;
  const bytes = Buffer.from(chunk.binaryData.payload, 'base64');
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  const body = { ...chunk, metadata: { name, labels, annotations }, binaryData: { payload: bytes.toString('base64') } };
  await server.admin.expect('POST', maps, { body });
  const told = await keelson(['verify', '--live']);
  assert.is(told.code, 1);
  assert.match(
    told.err,
    new RegExp(`1 problem:\\n.*retained copy of payload ${digest} is not whole \\[RetainedCopyDamaged\\]`),
  );
  start();
  await enforced();
  done(await keelson(['verify', '--live']));
});

test('a copy that is damaged where nothing can heal it says so, and the next delivery does', async () => {
  const digest = await released('any', () => true);
  await halt();
  for (const holds of ['retained', 'payload']) {
    const query = { labelSelector: `keelson.dev/holds=${holds}` };
    const { items } = (await server.admin.expect('GET', maps, { query })).body;
    const chunk = items.find(
      (item: { metadata: { annotations: Record<string, string> } }) =>
        item.metadata.annotations['keelson.dev/payload'] === digest,
    );
    await server.admin.expect('DELETE', `${maps}/${chunk.metadata.name}`);
    if (holds === 'payload') continue;
    const { name, labels, annotations } = chunk.metadata;
    const body = { ...chunk, metadata: { name, labels, annotations }, binaryData: { payload: 'AAAA' } };
    await server.admin.expect('POST', maps, { body });
  }
  start();
  await released(
    'the damage to be told',
    (c) => c.get('Accepted')?.reason === 'RetainedCopyDamaged' || c.get('Failing')?.reason === 'RetainedCopyDamaged',
  );
  done(await keelson(['deliver']));
  await enforced();
  done(await keelson(['verify', '--live']));
});

test('following is left within a second when it is interrupted', async () => {
  await halt();
  bed.edit('manifests/demo/20-config/config.yaml', (yaml) => yaml.replace('goodbye', 'again'));
  bed.commit('again');
  done(await keelson(['publish', '--key', 'third.key']));
  const interrupt = new AbortController();
  const following = keelson(['deliver', '--follow'], interrupt.signal);
  await waitFor({
    what: 'the delivery',
    limitMs: 20_000,
    intervalMs: 50,
    clock: systemClock,
    probe: async () => ((await keelson(['verify', '--live'])).err.includes('NotEnforced') ? true : undefined),
  });
  const began = performance.now();
  interrupt.abort(new Error('stopped by SIGINT'));
  const said = await following;
  assert.equal([said.code, said.err.split('\n').at(-1)], [1, 'cancelled']);
  assert.ok(performance.now() - began < 1_000);
});

test.after(async () => {
  await halt();
  await server.stop();
  bed.dispose();
});

test.run();
