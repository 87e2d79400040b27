// time limit: 180s
/** What is looked at before a first install, with the real API server and controller of Jobs: a cluster that refuses, and then does not. */
import * as assert from 'uvu/assert';
import { preflight } from '../../constructs/api/preflight.ts';
import type { RequestRecord } from '../faults/plan.ts';
import type { KubeRequest } from '../faults/request.ts';
import { until } from './kubeBed.ts';
import {
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
} from './network-bed.ts';
import { evidenceGates, networkRelease } from './network-folder.ts';
import { workshopSuite } from './network-suite.ts';
import { type Hosts, playHosts } from './preflight-bed.ts';

const test = workshopSuite('preflight');

let bed: NetworkBed;
let hosts: Hosts;

const image = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
const images = { executor: image('keelson', 'e'), probe: image('probe', 'f') };
// Real controllers tell that no pod is ready: nothing here runs but the pods that look.
const pace = { bypassGates: [...evidenceGates, 'WorkloadsReady'], preflight: { limitMs: 60_000, pollMs: 100 } };
const space = '/api/v1/namespaces/kube-system';
const level = 'pod-security.kubernetes.io/enforce';
const data = '/etc/origin/ovn/ovnnb_db.db';

const jobs = async (): Promise<Loose[]> =>
  (await bed.get('/apis/batch/v1/namespaces/kube-system/jobs')).items.filter(
    ({ metadata }: Loose) => metadata.labels?.[preflight.label] !== undefined,
  );
const uids = async (): Promise<string[]> => (await jobs()).map(({ metadata }) => metadata.uid).sort();
const isMaking = ({ verb, resource, dryRun }: KubeRequest): boolean =>
  verb === 'apply' && resource === 'jobs' && !dryRun;
const made = (log: readonly RequestRecord[]): number => log.filter(isMaking).length;
const written = (log: readonly RequestRecord[]): RequestRecord[] =>
  payloadMutations(log).filter(({ resource }) => resource !== 'jobs');
const reasons = (release: Loose): string[] => release.status?.failures?.map(({ reason }: Loose) => reason).sort() ?? [];

test.before(async ({ shop }) => {
  bed = await networkBed(shop, { with: ['controllers'] });
  hosts = await playHosts(bed.server.admin);
  await bed.deliver(await bed.render({ settings: { images } }));
});
test.after(async () => {
  await hosts.close();
  await bed.close();
});

test('what the API server tells comes first: a namespace that lets no such pods in, and no Job', async () => {
  await bed.patch(space, { metadata: { labels: { [level]: 'baseline' } } });
  const executor = await bed.executor(pace);
  const release = await bed.until(paths.release, 'the namespace to be refused', (one) =>
    reasons(one).includes('PodSecurityTooStrict'),
  );
  const told = release.status.failures.find(({ reason }: Loose) => reason === 'PodSecurityTooStrict');
  assert.match(told.message, /kube-system/);
  await executor.stop();
  assert.is(made(executor.plan.log), 0);
  assert.equal(written(executor.plan.log), []);
  await bed.patch(space, { metadata: { labels: { [level]: null } } });
});

test('X24: an executor that only plans looks at no node', async () => {
  const executor = await bed.executor({ ...pace, planOnly: true });
  await bed.until(paths.release, 'a plan', (one) => condition(one, 'Ready')?.reason === 'PlanOnly');
  await executor.stop();
  assert.is(made(executor.plan.log), 0);
});

test('W29: a folder with data blocks with the ways out, everything of all nodes is told at once, and nothing is deleted', async () => {
  await hosts.put('n2', data);
  await hosts.put('n1', '/etc/cni/net.d/00-other.conflist');
  const executor = await bed.executor(pace);
  const release = await bed.until(paths.release, 'the nodes to be refused', (one) =>
    reasons(one).includes('DatabaseRootOccupied'),
  );
  assert.equal(reasons(release), ['CniConflict', 'DatabaseRootOccupied']);
  const told = release.status.failures.find(({ reason }: Loose) => reason === 'DatabaseRootOccupied');
  assert.match(told.message, /n2.*Adopt.*recover/);
  await executor.stop();
  assert.equal(written(executor.plan.log), []);
  const deletions = executor.plan.log.filter(({ verb }) => verb === 'delete');
  assert.ok(deletions.length >= 3);
  for (const { resource, body } of deletions) {
    assert.is(resource, 'jobs');
    assert.match((body as Loose).preconditions.uid, /^[0-9a-f-]{36}$/);
  }
  assert.ok(await hosts.holds('n2', data));
  await hosts.remove('n2', '/etc/origin');
  await hosts.remove('n1', '/etc/cni');
});

test('it dies while it makes the Jobs; the next one goes on with those that are there, and a newer payload takes the place of the waiting one', async () => {
  for (const job of await jobs())
    await bed.server.admin.request('DELETE', `/apis/batch/v1/namespaces/kube-system/jobs/${job.metadata.name}`);
  for (const node of ['n1', 'n2', 'n3']) hosts.silent.add(node);
  const lease = { durationMs: 2_000, renewEveryMs: 500, marginMs: 300, retryMs: 50, requestMs: 1_000 };
  const dying = await bed.executor({ ...pace, lease, crash: { match: isMaking, nth: 2, at: 'afterEffect' } });
  await until('its death', dying.dead, 60_000);
  await dying.ended;
  const before = await uids();
  assert.ok(before.length >= 1 && before.length <= 3);

  const next = await bed.executor({ ...pace, lease });
  await until('a Job for every node', async () => (await jobs()).length === 3, 30_000);
  assert.is(made(next.plan.log), 3 - before.length);
  const running = await uids();
  for (const uid of before) assert.ok(running.includes(uid));

  // Another specification, and so another payload, which asks the same of the nodes.
  const newer = await bed.render({ settings: { images }, spec: { networkStack: 'ipv4' } });
  await bed.deliver(newer, ['20-releases', '30-specs']);
  const { digest } = networkRelease(newer).index;
  await bed.until(paths.release, 'the newer payload to be tried', (one) => one.spec.payload.digest === digest);
  for (const node of ['n1', 'n2', 'n3']) hosts.silent.delete(node);
  const release = await bed.until(paths.release, 'it to be installed', (one) => one.status?.actual === digest, 60_000);
  assert.equal(
    release.status.history.map((one: Loose) => one.digest),
    [digest],
  );
  await bed.until(paths.release, 'it to be complete', gatesBypassed, 60_000);
  assert.equal([...hosts.answered].filter((uid) => running.includes(uid)).length, 3);
  assert.equal(await jobs(), [], 'no Job is left');

  const looked = made(next.plan.log);
  await next.stop();
  const later = await bed.executor({ ...pace, lease });
  await until('a look at what is in place', () => later.plan.log.length > 50, 30_000);
  await later.stop();
  assert.is(made(later.plan.log), 0, 'what is installed is not looked at again');
  assert.ok(looked <= 3);
});

test.run();
