// time limit: 300s
/** X6, D9, D10: a network that Helm installed is taken over as it is, and receives a change afterwards. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ClusterInput } from '../../constructs/api/cluster.ts';
import type { Rendered } from '../../renderer/render.ts';
import type { CrashPlan, CrashPoint } from '../faults/crash.ts';
import { assertOnlyMarked, heldBy, helmInstall, liveOf, pathOfId, planOf } from './adopt-bed.ts';
import { until } from './kubeBed.ts';
import {
  bypass,
  condition,
  gatesBypassed,
  type Loose,
  type NetworkBed,
  networkBed,
  paths,
  payloadMutations,
  type RunningExecutor,
  system,
  type Workshop,
  workshop,
} from './network-bed.ts';
import { type ClusterText, networkRelease, releaseName } from './network-folder.ts';

interface Context {
  shop: Workshop;
  bed: NetworkBed;
  /** Every object as Helm left it. */
  before: Map<string, Loose>;
  text: Partial<ClusterText>;
}
const test = suite<Context>('adoption of what Helm installed');

test.before(async (context) => {
  context.shop = await workshop();
  context.bed = await networkBed(context.shop);
  const { bed } = context;
  await bed.deliver(await bed.render(), ['10-system']);
  await helmInstall(bed);
  context.before = await liveOf(bed, await bed.render());
});
test.after(async ({ shop, bed }) => {
  await bed.close();
  await shop.close();
});

type ReleaseSettings = NonNullable<NonNullable<ClusterInput['spec']['releases']>[string]>;

const selector = { matchLabels: { 'app.kubernetes.io/managed-by': 'Helm' } };
const phases = ['definitions', 'access', 'central', 'data-plane'];

const adopting = (takeManagers: string[], settings: ReleaseSettings = {}): Partial<ClusterText> => ({
  spec: { adoption: { enabled: true, selector, takeManagers } },
  settings: { releases: { [releaseName]: settings } },
});

/** All that is said against what is delivered, once it is refused for a reason; nothing was written. */
async function refusal({ bed, before }: Context, rendered: Rendered, reason: string): Promise<string> {
  await bed.deliver(rendered);
  const executor = await bed.executor(bypass);
  const { digest } = networkRelease(rendered).index;
  await bed.until(
    paths.release,
    `it to be refused for ${reason}`,
    (object) =>
      object.status?.desired === digest &&
      condition(object, 'Accepted')?.status === 'False' &&
      object.status.failures.some((failure: Loose) => failure.reason === reason),
    60_000,
  );
  await executor.stop();
  assert.equal(payloadMutations(executor.plan.log), []);
  assert.equal(await bed.ledger(), []);
  for (const [id, object] of before)
    assert.is((await bed.get(pathOfId(id)))?.metadata.labels?.['keelson.dev/release'], undefined, object.metadata.name);
  const report = `keelson-report-${digest.slice('sha256:'.length, 'sha256:'.length + 12)}`;
  return (await bed.get(`/api/v1/namespaces/${system}/configmaps/${report}`)).data['problems.txt'];
}

test('fields of a manager that is not listed are not taken: it is named with them, and nothing is written', async (context) => {
  const told = await refusal(context, await context.bed.render(adopting([])), 'FieldConflict');
  assert.match(told, /ovn-central.*helm \(Update\) holds .*\.metadata\.labels\.app\.kubernetes\.io\/managed-by/);
  assert.match(told, /list helm in spec\.adoption\.takeManagers/);
});

test('missing, different, outside of the selector, owned by another, of another installation: all told at once', async (context) => {
  const { bed } = context;
  const { admin } = bed.server;
  const service = '/api/v1/namespaces/kube-system/services/kube-ovn-pinger';
  const accounts = '/api/v1/namespaces/kube-system/serviceaccounts';
  const account = `${accounts}/kube-ovn-app`;
  const missing = await bed.get(service);
  await admin.expect('DELETE', service);
  const edit = (path: string, body: object) =>
    admin.expect('PATCH', path, { body, type: 'application/merge-patch+json', query: { fieldManager: 'helm' } });
  const managedBy = (value: string) => ({ metadata: { labels: { 'app.kubernetes.io/managed-by': value } } });
  await edit(`${paths.central}/scale`, { spec: { replicas: 1 } });
  await edit(account, managedBy('me'));
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'uid-x', controller: true }];
  const stranger = 'keelson.dev/installation-uid';
  await edit(`${accounts}/ovn`, { metadata: { ownerReferences } });
  await edit(`${accounts}/kube-ovn-cni`, { metadata: { labels: { [stranger]: 'other' } } });
  const told = await refusal(context, await bed.render(adopting(['helm'])), 'AdoptionRefused');
  assert.match(told, /kube-ovn-pinger.*it does not exist/);
  assert.match(told, /ovn-central.*\.spec\.replicas is 1, the payload has 3/);
  assert.match(told, /kube-ovn-app.*do not match the selector \(app\.kubernetes\.io\/managed-by=Helm\)/);
  assert.match(told, /ServiceAccount kube-system\/ovn\b.*it belongs to the controller ConfigMap x/);
  assert.match(told, /kube-ovn-cni.*label keelson\.dev\/installation-uid says that it belongs to other/);
  await edit(`${accounts}/ovn`, { metadata: { ownerReferences: null } });
  await edit(`${accounts}/kube-ovn-cni`, { metadata: { labels: { [stranger]: null } } });
  await edit(`${paths.central}/scale`, { spec: { replicas: 3 } });
  await edit(account, managedBy('Helm'));
  const { metadata, status: _, ...rest } = missing;
  const { name, namespace, labels, annotations } = metadata;
  const { clusterIP: _a, clusterIPs: _b, ...spec } = rest.spec;
  await admin.expect('POST', service.replace(/\/[^/]+$/, ''), {
    body: { ...rest, spec, metadata: { name, namespace, labels, annotations } },
    query: { fieldManager: 'helm' },
  });
  context.before = await liveOf(bed, await bed.render());
});

const lease = { durationMs: 2_000, renewEveryMs: 500, marginMs: 300, retryMs: 50, requestMs: 1_000 };
const engine = { gatePollMs: 100, goneMs: 3_000, concurrency: 1 };

type Match = NonNullable<CrashPlan['match']>;
const folds: Match = ({ mutating, verb }) => mutating && verb === 'patch';
const marks: Match = (request) =>
  request.verb === 'apply' && payloadMutations([{ ...request, sequence: 0 }]).length === 1;

test('it is planned, approved whatever the mode, and changes nothing but marks; it ends what deaths cut off', async (context) => {
  const { bed, before } = context;
  // Suspended phases let the adoption be seen by itself.
  const settings: ReleaseSettings = { approval: { mode: 'never' }, suspendPhases: phases };
  const rendered = await bed.render(adopting(['helm'], settings));
  await bed.deliver(rendered);
  const planner = await bed.executor(bypass);
  const waiting = await bed.until(
    paths.release,
    'it to wait for a person',
    (object) => condition(object, 'Accepted')?.reason === 'ApprovalRequired',
    60_000,
  );
  await planner.stop();
  assert.equal(payloadMutations(planner.plan.log), []);
  assert.match(
    condition(waiting, 'Accepted').message,
    new RegExp(`${before.size} object\\(s\\) that exist already are adopted`),
  );
  assert.match(
    condition(waiting, 'Accepted').message,
    /fields of theirs that helm hold are taken over, without a change of any value/,
  );
  assert.is(waiting.status.plan.counts.adopted, before.size);
  assert.is(waiting.status.plan.counts.created, 0);
  const plan = await planOf(bed);
  const actions = plan.phases.flatMap((phase: Loose) => phase.objects.map((object: Loose) => object.action));
  assert.equal(new Set(actions), new Set(['adopted']));
  assert.is(plan.adoption.take.length, before.size);
  assert.ok(plan.adoption.take.every((entry: Loose) => entry.managers.join() === 'helm'));
  const pinned: Loose[] = plan.adoption.pinned;
  assert.ok(
    pinned.some(
      ({ id, fields }) =>
        id.endsWith('/ovn-central') && fields.every((field: string) => /image|args|command|env/.test(field)),
    ),
  );

  const planDigest = waiting.status.plan.digest;
  const approved = adopting(['helm'], { ...settings, approval: { mode: 'never', planDigest } });
  await bed.deliver(await bed.render(approved));
  bed.playKubelets();
  const deaths: readonly (readonly [nth: number, at: CrashPoint, match: Match])[] = [
    [1, 'afterEffect', ({ name, mutating }) => mutating && name?.startsWith('keelson-ledger-') === true],
    [1, 'afterEffect', folds],
    [1, 'beforeSend', marks],
    [4, 'afterEffect', marks],
    [6, 'afterReply', folds],
  ];
  const dead: RunningExecutor[] = [];
  for (const [nth, at, match] of deaths) {
    const executor = await bed.executor({ ...bypass, lease, engine, crash: { match, nth, at } });
    await until(`death ${at} of write ${nth}`, executor.dead, 60_000);
    await executor.ended;
    dead.push(executor);
  }
  const last = await bed.executor({ ...bypass, lease, engine });
  await bed.until(
    paths.release,
    'it to be adopted',
    (object) => condition(object, 'Ready')?.reason === 'PhaseSuspended',
    60_000,
  );
  await last.stop();
  const { uid } = (await bed.installation()).metadata;
  for (const [id, after] of await liveOf(bed, rendered)) {
    assertOnlyMarked(id, before.get(id), after, uid);
    // What is left to Helm is what the payload does not name: its own annotations, and defaults of the server.
    const ours = new Set(heldBy(after, 'keelson'));
    const left = heldBy(after, 'helm');
    assert.equal(
      left.filter((path) => ours.has(path)),
      [],
      id,
    );
    assert.ok(left.includes('.metadata.annotations.meta.helm.sh/release-name'), id);
  }
  const sent = [...dead, last].flatMap(({ plan: { log } }) => payloadMutations(log));
  assert.equal(
    sent.filter(({ status, verb }) => status === 201 || verb.startsWith('delete')),
    [],
  );
  for (const record of sent.filter(({ verb }) => verb === 'patch'))
    assert.equal(
      (record.body as unknown as Loose[]).map(({ op, path }) => `${op} ${path}`),
      ['test /metadata/uid', 'replace /metadata/resourceVersion', 'replace /metadata/managedFields'],
    );
  for (const {
    plan: { violations },
  } of [...dead, last])
    assert.equal(violations, []);
  const ledger = await bed.ledger();
  assert.is(ledger.length, before.size);
  for (const { id, uid: known } of ledger) assert.is(known, before.get(id)?.metadata.uid, id);
  console.log(`${deaths.length} deaths, ${sent.length} writes sent for ${before.size} objects`);
  context.text = approved;
});

const more = `apiVersion: v1
kind: ConfigMap
metadata: {name: further, namespace: "{{ .Values.namespace }}"}
data: {a: b}
`;

test('the phases go on: images become digests where they were tags, nothing else changes; then it receives a change', async (context) => {
  const { shop, bed, before } = context;
  const { planDigest } = context.text.settings?.releases?.[releaseName]?.approval ?? {};
  const text = adopting(['helm'], { approval: { mode: 'never', ...(planDigest === undefined ? {} : { planDigest }) } });
  const rendered = await bed.render(text);
  await bed.deliver(rendered);
  const executor = await bed.executor(bypass);
  await bed.until(paths.release, 'it to be carried out', gatesBypassed, 120_000);
  const live = await liveOf(bed, rendered);
  const strip = (object: Loose): string =>
    JSON.stringify([object.spec, object.data]).replaceAll(
      /[a-z0-9.:-]+\/kubeovn\/([a-z-]+)(:v[0-9.]+|@sha256:[0-9a-f]{64})/g,
      '$1',
    );
  for (const [id, after] of live) {
    assert.is(after.metadata.uid, before.get(id)?.metadata.uid, id);
    assert.is(strip(after), strip(before.get(id)), id);
    assert.not.match(JSON.stringify([after.spec, after.data]), /kubeovn\/[a-z-]+:v/);
  }
  assert.equal(new Set((await bed.ledger()).map(({ state }) => state)), new Set(['applied']));

  executor.plan.resetLog();
  const chart = await shop.edited('more', (files) => files.set('templates/zz-more.yaml', more));
  const changed = await bed.render({ ...text, chart });
  await bed.deliver(changed);
  const { digest } = networkRelease(changed).index;
  await bed.until(
    paths.release,
    'the change to be carried out',
    (object) => object.status.actual === digest && gatesBypassed(object),
    60_000,
  );
  const written = payloadMutations(executor.plan.log).map(({ name, status }) => `${name} ${status}`);
  assert.equal(written, ['further 201'], 'a later object is created, not adopted');
});

test.run();
