import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { dumpYaml, parseYaml } from '../../constructs/lib/yaml.ts';
import { kubeconfigText } from '../apiserver/credentials.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { done, type Said } from '../commandline.ts';
import { commandBed } from './command-bed.ts';

/** From a plan that waits for a person to the commit that lets it through, with the command line at both ends. */

// biome-ignore lint/suspicious/noExplicitAny: tests read a status loosely
type Loose = any;

const server = await startApiServer();
const bed = commandBed({ KUBECONFIG: server.kubeconfig });
// Without controllers no Deployment ever becomes ready.
rmSync(join(bed.folder, 'manifests/demo/30-web'), { recursive: true });
bed.commit('specs');
const stop = new AbortController();
let executor: Promise<Said> | undefined;
const path = '/apis/keelson.dev/v1alpha1/namespaces/keelson-system/releases/manifests-demo';
const key = ['--key', '../key'];

const until = (what: string, probe: (release: Loose) => boolean): Promise<Loose> =>
  waitFor({
    what,
    limitMs: 30_000,
    intervalMs: 50,
    clock: systemClock,
    probe: async (saw) => {
      const { body } = await server.admin.expect('GET', path);
      saw(JSON.stringify(body.status?.conditions));
      return body.status?.observedGeneration === body.metadata.generation && probe(body) ? body : undefined;
    },
  });
const accepted = (release: Loose): Loose => release.status.conditions.find((c: Loose) => c.type === 'Accepted');
const waits = (release: Loose): boolean => accepted(release)?.reason === 'ApprovalRequired';

const maps = (names: readonly string[], value: string): string =>
  names
    .map(
      (name) =>
        `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: demo}\ndata: {value: "${value}"}\n`,
    )
    .join('---\n');
const write = (names: readonly string[], value = 'one'): void =>
  writeFileSync(join(bed.folder, 'manifests/demo/20-config/maps.yaml'), maps(names, value));

async function publish(message: string): Promise<void> {
  bed.commit(message);
  done(await bed.keelson(['publish', ...key]));
  done(await bed.keelson(['deliver']));
}

/** Puts what `keelson approve` printed into cluster.yaml, as a person would. */
function take(printed: string): void {
  const file = join(bed.folder, 'cluster.yaml');
  const read = (text: string): JsonObject => {
    const value = parseYaml(text, 'text').documents[0]?.value;
    return isObject(value) ? value : {};
  };
  const merged = (into: JsonObject, from: JsonObject): JsonObject => {
    const result = { ...into };
    for (const [name, value] of Object.entries(from)) {
      const present = result[name];
      result[name] = isObject(value) && isObject(present) ? merged(present, value) : value;
    }
    return result;
  };
  writeFileSync(file, dumpYaml(merged(read(readFileSync(file, 'utf8')), read(printed))));
}

test('the first payload needs nobody', async () => {
  done(await bed.keelson(['keys', 'init', '--out', '../key']));
  write(['a', 'b', 'c']);
  bed.commit('maps');
  done(await bed.keelson(['publish', ...key]));
  done(await bed.keelson(['bootstrap', '--no-wait', '--trust', '../key.pub']));
  const token = await serviceAccountToken(server.admin, 'keelson-system', 'keelson-executor');
  const kubeconfig = join(bed.root, 'executor.kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText({ url: server.url, ca: server.ca, token }), { mode: 0o600 });
  executor = bed.keelson(['executor', '--kubeconfig', kubeconfig, '--metrics-port', '0'], stop.signal);
  done(await bed.keelson(['deliver', '--follow', '--timeout', '1m']));
  const plan = await bed.keelson(['plan', '--live', '--detailed-exitcode']);
  assert.is(plan.code, 0, plan.out);
});

test('a plan that removes waits for its digest, which CI had told; the printed lines let it through', async () => {
  write(['a']);
  const inCI = await bed.keelson(['plan', '--detailed-exitcode']);
  assert.is(inCI.code, 3);
  const digest = /keelson approve manifests-demo --plan (sha256:[0-9a-f]{64})/.exec(inCI.out)?.[1] ?? '';
  await publish('b and c leave');
  const held = await until('it waits', waits);
  assert.is(held.status.plan.digest, digest, 'CI and executor');
  assert.match(accepted(held).message, `keelson approve manifests-demo --plan ${digest}`);
  const live = await bed.keelson(['plan', '--live', '--detailed-exitcode']);
  assert.is(live.code, 3);
  assert.ok(live.out.includes(digest), live.out);

  const said = done(await bed.keelson(['approve', 'manifests-demo', '--plan', digest]));
  assert.match(said.err, /commit this in clusters\/example\/cluster\.yaml/);
  take(said.out);
  await publish('approve');
  await until(
    'it is in place',
    ({ status }) => status.actual === status.desired && status.history[0].state === 'Completed',
  );
  assert.is((await server.admin.request('GET', '/api/v1/namespaces/demo/configmaps/b')).status, 404);
  assert.is((await bed.keelson(['plan', '--live', '--detailed-exitcode'])).code, 0);
});

test('an approval that was overtaken is told with what differs, and lets nothing through', async () => {
  write(['a', 'd', 'e', 'f']);
  await publish('more');
  await until(
    'more is in place',
    ({ status }) => status.actual === status.desired && status.history[0].state === 'Completed',
  );
  write(['a', 'd']);
  await publish('e and f leave');
  const first = await until('it waits', waits);
  take(done(await bed.keelson(['approve', 'manifests-demo', '--plan', first.status.plan.digest])).out);
  // Before the approval is published somebody takes d out as well.
  write(['a']);
  await publish('approve, and d leaves');
  const second = await until(
    'it waits again',
    (release) => waits(release) && release.status.plan.digest !== first.status.plan.digest,
  );
  const told = accepted(second).message;
  assert.ok(
    told.includes(`approved is ${first.status.plan.digest}, which differs: now pruned: /ConfigMap/demo/d`),
    told,
  );
  assert.is((await server.admin.request('GET', '/api/v1/namespaces/demo/configmaps/e')).status, 200);
});

test('approve takes nothing but a digest', async () => {
  const said = await bed.keelson(['approve', 'manifests-demo', '--plan', 'latest']);
  assert.is(said.code, 2);
  assert.match(said.err, /not the digest of a plan/);
});

test.after(async () => {
  stop.abort();
  await executor;
  await server.stop();
  bed.dispose();
});

test.run();
