// time limit: 420s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { apiVersion, managers, systemNamespace } from '../../../constructs/api/constants.ts';
import { units } from '../../../constructs/api/tree.ts';
import { uidOf } from '../../../executor/kube/types.ts';
import { fluxNamespace } from '../flux/objects.ts';
import { fluxRuns, scaleFlux } from '../flux/start.ts';
import { type FluxBed, fluxBed, managersOf, release } from './flux-bed.ts';
import { isPodOf, networkAgent, nodeConfigurations, roamingPod, runningFlux } from './flux-network.ts';
import { conditionOf, textAt, until } from './pipeline-look.ts';
import { apply } from './pods.ts';

/** Real Flux in a real cluster: what is pushed is carried, accepted and applied, and what Flux does to its own loses nothing. */

let bed: FluxBed;
const greeting = 'manifests/demo/10-base/greeting.yaml';
const app = 'manifests/demo/20-app/app.yaml';
const flux = [`${managers.flux} Apply`];

test.before(async () => {
  bed = await fluxBed('flux');
});

test.after(async () => {
  await bed?.close();
});

const say = (words: string): void => bed.edit(greeting, (text) => text.replace(/text: .*/, `text: ${words}`));

const greets = async (): Promise<string> =>
  textAt(
    await bed.look.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: 'greeting' }),
    '/data/text',
  );

const inPlace = (digest: string) =>
  bed.release(`${digest} to be in place`, 90_000, (found) => {
    return textAt(found, '/status/actual') === digest && conditionOf(found, 'Ready')?.status === 'True';
  });

/** Seconds that work took, for people who read the output. */
async function timed<T>(what: string, work: Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work;
  console.log(`${what}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
  return result;
}

/** Waits until so many nodes are ready. */
const nodesReady = (count: number) =>
  until(`${count} nodes to be ready`, 60_000, async (saw) => {
    const conditions = (await bed.look.nodes()).map((node) => conditionOf(node, 'Ready'));
    saw(conditions.map((condition) => condition?.message).join('; '));
    return conditions.filter((condition) => condition?.status === 'True').length === count ? true : undefined;
  });

/** Waits until the mirror tells a state of the Releases at a commit. */
const mirrored = (commit: string, ready: string) =>
  until(`keelson-health to be Ready=${ready} at ${commit}`, 60_000, async (saw) => {
    const health = await bed.kustomization('health');
    const condition = conditionOf(health, 'Ready');
    saw(`${textAt(health, '/status/lastAttemptedRevision')} ${condition?.status} ${condition?.message}`);
    const here = textAt(health, '/status/lastAttemptedRevision').includes(commit);
    return here && condition?.status === ready ? condition : undefined;
  });

test('bootstrap points Flux at the tree, and what was published is carried, accepted and applied', async () => {
  await bed.prepare();
  const commit = bed.head();
  await timed('from bootstrap to a release in place', inPlace(bed.look.digest(release)));
  assert.is(await greets(), 'hello from Git');
  for (const part of units) await bed.carried(part, commit);
  const condition = await timed('until keelson-health tells it', mirrored(commit, 'True'));
  assert.match(condition.message, commit);
  assert.equal(managersOf(await bed.look.release(release)), flux);
  const told = await bed.keelson('status');
  assert.match(told, /manifests-demo .*Completed/);
});

test('a push is carried; Flux prunes the old inbox, and the retained copies enforce what was accepted', async () => {
  const { look, cluster } = bed;
  const [old = ''] = await bed.inbox();
  const former = look.digest(release);
  say('hello by Flux');
  const commit = await bed.push('Greet by Flux');
  const digest = look.digest(release);
  await timed('from a push to its release in place', inPlace(digest));
  assert.is(await greets(), 'hello by Flux');
  await bed.carried('20-releases', commit);
  const now = await until('Flux to prune the old payload', 30_000, async (saw) => {
    const names = await bed.inbox();
    saw(names.join(', '));
    return names.includes(old) ? undefined : names;
  });
  assert.is(now.length, 1);
  await mirrored(commit, 'True');
  // What Flux carried is gone from the inbox by hand as well: the executor runs from copies of its own.
  await cluster.kubectl(['-n', systemNamespace, 'delete', 'configmap', ...now]);
  await cluster.kubectl(['-n', 'demo', 'delete', 'configmap', 'greeting']);
  await until('the greeting to come back', 60_000, async () =>
    (await greets()) === 'hello by Flux' ? true : undefined,
  );
  await cluster.kubectl(['-n', systemNamespace, 'annotate', 'release', release, `keelson.dev/pin=${former}`]);
  await until('the payload before to be enforced', 60_000, async () =>
    (await greets()) === 'hello from Git' ? true : undefined,
  );
  await cluster.kubectl(['-n', systemNamespace, 'annotate', 'release', release, 'keelson.dev/pin-']);
  await inPlace(digest);
});

test('a bad payload is refused and mirrored, and a good one after it waits for no timeout', async () => {
  const { look } = bed;
  const former = look.digest(release);
  bed.edit(app, (text) => text.replace('replicas: 2', 'replicas: -1'));
  const bad = await bed.push('A payload that can not be');
  const refused = await bed.release('it to be refused', 60_000, (found) => {
    return (
      textAt(found, '/status/desired') === look.digest(release) && conditionOf(found, 'Accepted')?.status === 'False'
    );
  });
  assert.is(textAt(refused, '/status/actual'), former);
  assert.is(conditionOf(refused, 'Stalled')?.status, 'True');
  assert.match((await mirrored(bad, 'False')).message, /manifests-demo/);
  // Units wait for nothing that a payload comes to.
  for (const part of units) await bed.carried(part, bad);

  bed.edit(app, (text) => text.replace('replicas: -1', 'replicas: 2').replace('.listen(8080)', '.listen(8081)'));
  await bed.push('A payload that never becomes ready');
  const waiting = look.digest(release);
  await timed(
    'from a push after a bad one to its acceptance',
    bed.release('it to be accepted and to wait', 60_000, (found) => {
      const here = textAt(found, '/status/actual') === waiting;
      return here && textAt(found, '/status/sync/blocker/gate') === 'WorkloadsReady(app)';
    }),
  );
  bed.edit(app, (text) => text.replace('.listen(8081)', '.listen(8080)'));
  const good = await bed.push('A good one');
  await timed('from a push after one that waits to its release in place', inPlace(look.digest(release)));
  await timed('until keelson-health tells it', mirrored(good, 'True'));
});

test('with Flux down keelson deliver takes its place, and Flux takes it back: one owner, no conflict', async () => {
  const { look } = bed;
  await scaleFlux(bed.cluster, 0);
  say('hello without Flux');
  const commit = await bed.push('While Flux is down');
  await bed.keelson('deliver', '--follow', '--timeout', '1m');
  assert.is(await greets(), 'hello without Flux');
  assert.equal(managersOf(await look.release(release)), flux);
  await scaleFlux(bed.cluster, 1);
  for (const part of units) await bed.carried(part, commit);
  await mirrored(commit, 'True');
  assert.equal(managersOf(await look.release(release)), flux);
  const [chunk = ''] = await bed.inbox();
  const object = await look.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: systemNamespace, name: chunk });
  assert.equal(managersOf(object), flux);
});

test('a push that takes the network from all nodes and Flux with it is mended by keelson deliver, and by nothing else', async () => {
  const { look, cluster } = bed;
  const agent = 'manifests/demo/15-network/agent.yaml';
  const good = nodeConfigurations(cluster);
  const carry = (configurations: Record<string, string>): void =>
    bed.write(agent, JSON.stringify(networkAgent(cluster, configurations), null, 2));
  carry(Object.fromEntries(Object.entries(good).map(([node, text]) => [node, text.replace(/\}$/, ',}')])));
  const bad = await bed.push('Bring the network out of Git, with a comma too many');
  await bed.carried('20-releases', bad);
  await timed('until no node is ready', nodesReady(0));
  // What runs keeps its addresses; what starts, as after a restart of its node, gets none.
  await cluster.kubectl(['-n', fluxNamespace, 'delete', 'pods', '--all', '--wait=false']);
  await cluster.kubectl(['-n', systemNamespace, 'delete', 'pods', '--all', '--wait=false']);
  await apply(cluster, roamingPod(cluster, 'roamer'));
  await until('Flux to have ended', 60_000, async (saw) => {
    const running = await runningFlux(cluster);
    saw(running.join(', '));
    return running.length === 0 ? true : undefined;
  });
  await until('the runtime to refuse a pod that needs a network', 60_000, async () => {
    const told = await cluster.kubectl(['get', 'events', '--field-selector=involvedObject.name=roamer']);
    return /NetworkNotReady.*cni plugin not initialized/.test(told) ? true : undefined;
  });

  carry(good);
  bed.edit(app, (text) => text.replace('replicas: 2', 'replicas: 3'));
  const commit = await bed.push('Take the comma out');
  assert.equal(await runningFlux(cluster), []);
  assert.match(textAt(await bed.kustomization('20-releases'), '/status/lastAppliedRevision'), bad);
  await nodesReady(0);
  const told = await timed('from deliver to a release in place', bed.keelson('deliver', '--follow', '--timeout', '2m'));
  assert.match(told, /manifests-demo {2}Syncing {2}app .*WorkloadsReady\(app\)/);
  assert.match(told, /manifests-demo {2}Reconciling {2}Completed (\d+)\/\1 {2}Ready=True Completed/);
  await nodesReady(3);
  const pod = await until('the pod to run', 60_000, async () => {
    const found = await look.get({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'roamer' });
    return textAt(found, '/status/phase') === 'Running' ? found : undefined;
  });
  assert.ok(isPodOf(cluster.node(textAt(pod, '/spec/nodeName')), textAt(pod, '/status/podIP')));
  await timed('until Flux is back by itself', fluxRuns(cluster));
  for (const part of units) await bed.carried(part, commit);
  await mirrored(commit, 'True');
  assert.equal(managersOf(await look.release(release)), flux);
});

test('deleting the objects of Flux loses nothing that they carried, and bootstrap brings them back', async () => {
  const { look, cluster } = bed;
  const carried = [
    { apiVersion, kind: 'Release', namespace: systemNamespace, name: release },
    { apiVersion: 'apps/v1', kind: 'Deployment', namespace: systemNamespace, name: 'keelson-executor' },
    { apiVersion: 'v1', kind: 'ConfigMap', namespace: systemNamespace, name: (await bed.inbox())[0] ?? '' },
    { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name: 'releases.keelson.dev' },
    ...look.payload(release),
  ];
  const uids = async (): Promise<string[]> =>
    Promise.all(
      carried.map(async (ref) => {
        const found = await look.get(ref);
        return found === undefined || found.metadata.deletionTimestamp !== undefined ? `no ${ref.name}` : uidOf(found);
      }),
    );
  const before = await uids();
  assert.not.ok(
    before.some((uid) => uid.startsWith('no ')),
    before.join(', '),
  );
  await cluster.kubectl(['-n', fluxNamespace, 'delete', 'kustomizations', '--all', '--timeout=60s'], {
    limitMs: 70_000,
  });
  await cluster.kubectl(['-n', fluxNamespace, 'delete', 'gitrepository', 'keelson', '--timeout=30s']);
  assert.equal(await uids(), before);
  assert.is(conditionOf(await look.release(release), 'Ready')?.status, 'True');
  await bed.keelson('bootstrap');
  // Objects that Flux has seen in the tree are its own again; what left before that would stay for `deliver` to remove.
  await bed.carried('20-releases', bed.head());
  say('hello after all');
  const commit = await bed.push('After the loss');
  await inPlace(look.digest(release));
  await mirrored(commit, 'True');
  const [, , chunk] = carried;
  await until('Flux to prune the payload that was replaced', 30_000, async () =>
    (await bed.inbox()).includes(chunk?.name ?? '') ? undefined : true,
  );
  const gone = (uid: string | undefined, n: number): string | undefined => (n === 2 ? `no ${chunk?.name}` : uid);
  assert.equal(await uids(), before.map(gone));
});

test('a release whose payload is an artifact is fetched from source-controller, and needs no inbox', async () => {
  const { look } = bed;
  bed.edit('cluster.yaml', (text) => text.replace('    flux:\n', `    flux:\n      artifactFor: [${release}]\n`));
  say('hello out of an artifact');
  const commit = await bed.push('By artifact');
  await timed('from a push to its release in place, with a new executor', inPlace(look.digest(release)));
  const found = await look.release(release);
  assert.is(textAt(found, '/spec/source/flux/path'), `local/payload/${release}`);
  assert.match(textAt(found, '/status/lastAppliedRevision'), `main@sha1:${commit}`);
  assert.is(await greets(), 'hello out of an artifact');
  await until('Flux to empty the inbox', 30_000, async () => ((await bed.inbox()).length === 0 ? true : undefined));
  say('hello once more');
  const next = await bed.push('By artifact, once more');
  await timed('from a push to its release in place', inPlace(look.digest(release)));
  assert.match(textAt(await look.release(release), '/status/lastAppliedRevision'), `main@sha1:${next}`);
});

test.run();
