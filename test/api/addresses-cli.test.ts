// time limit: 90s
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations, addressFinalizers, addressLeases } from '../../constructs/api/addresses.ts';
import { crdOf } from '../../constructs/api/crd.ts';
import { releaseKind } from '../../constructs/api/kinds/release.ts';
import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { type JsonObject, objectOf } from '../../constructs/lib/json.ts';
import { BookWatch } from '../../executor/addressbook/watch.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { writeKubeconfig } from '../apiserver/shared.ts';
import { done, type Said } from '../commandline.ts';
import { crashPoints } from '../faults/crash.ts';
import { metallbDefinitions } from '../standins/metallb.ts';
import { install } from './addresses-bed.ts';
import { balanced, commandPlace, person, pin } from './addresses-cli-bed.ts';
import { life } from './addresses-cli-life.ts';
import { procedures } from './addresses-cli-procedures.ts';
import { races } from './addresses-cli-races.ts';
import { edgeOf, until } from './kubeBed.ts';

const at = await commandPlace();
const { server, namespace, place, admin } = at;

test.after(() => at.close());

const pools = '/apis/metallb.io/v1beta1/namespaces';
const json = (said: Said) => JSON.parse(done(said).out);
const reasonsOf = ({ err }: Said): string[] =>
  (JSON.parse(err.split('\n').at(-1) ?? '') as { problems: { reason: string }[] }).problems.map(({ reason }) => reason);
const serviceOf = async (name: string): Promise<KubeObject> =>
  (await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/services/${name}`)).body;
const adopt = (name: string, ...args: string[]): Promise<Said> =>
  admin.keelson('addresses', 'adopt', name, '--namespace', namespace, '--timeout', '10s', ...args);

test('a cluster without the ledger is told of', async () => {
  for (const args of [['addresses'], ['addresses', 'adopt', 'web'], ['addresses', 'release-finalizers']]) {
    const said = await admin.keelson(...args, '-o', 'json');
    assert.is(said.code, 1);
    assert.equal(reasonsOf(said), ['LedgerAbsent'], args.join(' '));
  }
  assert.is(done(await admin.keelson('addresses', 'migrate')).out, 'nothing is to be migrated');
  await install(server);
  for (const body of metallbDefinitions)
    await server.admin.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body });
  await until('MetalLB’s kinds are served', async () => {
    const replies = ['ipaddresspools', 'l2advertisements'].map((kind) =>
      server.admin.request('GET', `${pools}/${namespace}/${kind}`),
    );
    return (await Promise.all(replies)).every(({ status }) => status === 200);
  });
  await place.create('IPAddressClass', 'public', {
    provisioner: metallbProvisioner,
    releaseDelay: '24h',
    parameters: { addresses: ['203.0.113.0/24', '2001:db8::/64'] },
  });
});

test('without a core the first step is the last one, and the same approval goes on later', async () => {
  await balanced(server, namespace, 'early', '203.0.113.2');
  const { digest } = json(await adopt('early', '-o', 'json'));
  const said = await adopt('early', '--approve', digest, '--timeout', '200ms');
  assert.is(said.code, 1);
  assert.match(said.err, /waited 200ms for the core to see the claim; last seen: .*does one run\?/);
  assert.is((await place.list('IPAddress')).length, 0);
  assert.is((await serviceOf('early')).metadata.annotations?.[addressAnnotations.claim], undefined);
  await at.start();
  done(await adopt('early', '--approve', digest));
  assert.is((await place.get('IPAddress', 'ip-203-0-113-2'))?.status?.phase, 'Bound');
});

test('adopt: a dry run that the server has a say in, then three steps on record; the Service keeps what it has', async () => {
  const before = await balanced(server, namespace, 'web', '203.0.113.7', {
    [pin]: '203.0.113.7',
    'example.com/note': 'Authorization: Bearer abcdefgh12345678',
  });
  const shown = done(await adopt('web'));
  assert.match(shown.out, /^1 +IPAddressClaim\S* \S+\/web +to do/m);
  assert.match(shown.out, /--approve sha256:[0-9a-f]{64}$/);
  assert.is(await place.get('IPAddressClaim', 'web'), undefined);
  assert.equal((await serviceOf('web')).metadata.resourceVersion, before.metadata.resourceVersion);
  const plan = json(await adopt('web', '-o', 'json'));
  assert.is((await adopt('web', '--approve', `sha256:${'0'.repeat(64)}`)).code, 2);
  const said = done(await adopt('web', '--approve', plan.digest, '--audit', 'audit.jsonl'));
  assert.match(said.out, /has 203\.0\.113\.7 from claim web now; what was done is in audit\.jsonl/);
  const [claim, address, service] = [
    await place.get('IPAddressClaim', 'web'),
    await place.get('IPAddress', 'ip-203-0-113-7'),
    await serviceOf('web'),
  ];
  assert.equal(claim?.status?.addresses, [{ name: 'ip-203-0-113-7', address: '203.0.113.7' }]);
  assert.equal([address?.status?.phase, address?.spec?.reclaimPolicy], ['Bound', 'Retain']);
  assert.equal(service.metadata.annotations, { ...before.metadata.annotations, [addressAnnotations.claim]: 'web' });
  assert.equal([service.spec, service.status], [before.spec, before.status]);
  const text = readFileSync(join(admin.folder, 'audit.jsonl'), 'utf8');
  const entries = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(
    entries.map(({ event, step }) => (step === undefined ? event : `${event} ${step}`)),
    [
      'plan',
      ...['claim', 'address', 'service'].flatMap((step) =>
        ['writing', 'written', 'settled'].map((event) => `${event} ${step}`),
      ),
      'done',
    ],
  );
  for (const entry of entries) assert.match(entry.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const written = entries.filter(({ event }) => event === 'written');
  assert.equal(
    written.map(({ uid }) => uid),
    [claim, address, service].map((object) => object?.metadata.uid),
  );
  assert.equal(written[2].after, { annotations: { [addressAnnotations.claim]: 'web' } });
  assert.not.match(text, /abcdefgh12345678/);
  // Once more: nothing is left to do, and nothing is written.
  const versions = [address?.metadata.resourceVersion, service.metadata.resourceVersion];
  done(await adopt('web', '--approve', plan.digest, '--audit', 'audit.jsonl'));
  assert.equal(
    [
      (await place.get('IPAddress', 'ip-203-0-113-7'))?.metadata.resourceVersion,
      (await serviceOf('web')).metadata.resourceVersion,
    ],
    versions,
  );
  assert.match(readFileSync(join(admin.folder, 'audit.jsonl'), 'utf8').slice(text.length), /"found".*\n.*\n.*"found"/);
  assert.is((await adopt('web', '--approve', plan.digest, '--audit', '/proc/none')).code, 1);
});

test('a run may die at any of its writes, and the next one comes to the same end', async () => {
  const whole = await life(at, 0, { nth: 0, at: 'afterReply' });
  assert.is(whole.count, 3, 'three writes; dry runs are none');
  const deaths = crashPoints.flatMap((at) => Array.from({ length: whole.count }, (_, n) => ({ nth: n + 1, at })));
  const rest = deaths.map((crash, n) => ({ crash, n: n + 1 }));
  const worker = async (): Promise<void> => {
    for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
      const { died, state, events } = await life(at, next.n, next.crash);
      const told = `died ${next.crash.at} of write ${next.crash.nth}`;
      assert.ok(died, told);
      assert.is(state, whole.state, told);
      assert.is(events.at(-1), 'done', told);
      // What was sent is on record, whether it was heard of or not.
      for (const step of ['claim', 'address', 'service']) assert.ok(events.includes(`writing ${step}`), told);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  console.log(`${deaths.length} deaths at ${whole.count} writes`);
});

test('an address that is recorded and free is given to the claim, by its own name', async () => {
  const spec = { address: '203.0.113.9', className: 'public', source: { fromClass: {} } };
  await place.create('IPAddress', 'vip', spec);
  await until('it is available', async () => (await place.get('IPAddress', 'vip'))?.status?.phase === 'Available');
  await balanced(server, namespace, 'vital', '203.0.113.9');
  const { digest, addressName } = json(await adopt('vital', '-o', 'json', '--claim', 'vi'));
  assert.is(addressName, 'vip');
  done(await adopt('vital', '--claim', 'vi', '--approve', digest));
  const address = await place.get('IPAddress', 'vip');
  assert.equal([address?.status?.phase, objectOf(address?.spec?.claimRef).name], ['Bound', 'vi']);
});

test('what the server would refuse is told before anything is written, all of it at once', async () => {
  await balanced(server, namespace, 'plain', '203.0.113.8');
  const rules = [
    { apiGroups: [''], resources: ['services'], verbs: ['get', 'list'] },
    { apiGroups: ['local.sdn.cozystack.io'], resources: ['*'], verbs: ['get', 'list'] },
  ];
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await server.admin.expect('POST', `${rbac}/clusterroles`, {
    body: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'reader' }, rules },
  });
  await server.admin.expect('POST', `${rbac}/clusterrolebindings`, {
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'user-1' }],
    },
  });
  const reader = person(
    await writeKubeconfig(join(admin.folder, 'reader'), server, { token: server.tokens['user-1'] ?? '' }),
  );
  try {
    await until('the rights are in force', async () => (await reader.keelson('addresses')).code === 0);
    const said = await reader.keelson('addresses', 'adopt', 'plain', '--namespace', namespace, '-o', 'json');
    assert.is(said.code, 2);
    assert.equal(reasonsOf(said), ['StepRefused', 'StepRefused', 'StepRefused']);
  } finally {
    reader.leave();
  }
  const other = await adopt('web', '--claim', 'early', '-o', 'json');
  assert.equal(reasonsOf(other), ['AddressTaken', 'ClaimTaken', 'ClaimTaken', 'ServiceNotAdoptable']);
});

test('the list tells who holds what, and how full the class is', async () => {
  await place.create('IPAddress', 'spare', { address: '2001:db8::9', className: 'public', source: { fromClass: {} } });
  await until('it can be claimed', async () => (await place.get('IPAddress', 'spare'))?.status?.phase === 'Available');
  const { addresses, classes } = json(await admin.keelson('addresses', '-o', 'json', '--class', 'public'));
  const web = addresses.find(({ address }: { address: string }) => address === '203.0.113.7');
  assert.equal(web.claim, `${namespace}/web`);
  assert.equal(web.workload, { kind: 'Service', namespace, name: 'web' });
  assert.equal(classes[0].usage[1], {
    family: 'IPv6',
    size: `${1n << 64n}`,
    used: 0,
    released: 0,
    held: 0,
    ready: 1,
    pending: 0,
    free: `${(1n << 64n) - 1n}`,
  });
  assert.match(
    done(await admin.keelson('addresses')).out,
    /^203\.0\.113\.7 +public +IPv4 +Bound +tenant-a\/web +tenant-a\/web$/m,
  );
  assert.is(json(await admin.keelson('addresses', '-o', 'json', '--namespace', 'nobody')).addresses.length, 0);
});

test('status tells the ledger in numbers, with the releases and beside the one that carries it', async () => {
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await server.admin.expect('POST', crds, { body: crdOf(releaseKind) });
  const releases = `/apis/keelson.dev/v1alpha1/namespaces/${namespace}/releases`;
  const body = {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Release',
    metadata: { name: 'addresses' },
    spec: { payload: { digest: `sha256:${'0'.repeat(64)}` }, source: { configMaps: {} } },
  };
  await until(
    'releases are served',
    async () => (await server.admin.request('POST', releases, { body })).status === 201,
  );
  const status = (...args: string[]): Promise<Said> => admin.keelson('status', '--namespace', namespace, ...args);
  const text = done(await status()).out;
  assert.match(text, /^addresses +Unknown +NeverSeen/m);
  assert.match(text, /^addresses 1\d in 1 class; claims pending\/bound\/lost/m);
  assert.match(text, /^public +0 +1 +1\d +0 +0 +0 +0\/1\d\/0 +IPv4 \[#+\.+\] 2\d\d free of 256/m);
  const [one] = json(await status('addresses', '-o', 'json'));
  assert.equal([one.name, one.addresses.classes[0].name, one.addresses.troubles], ['addresses', 'public', []]);
});

test('a watch keeps the numbers true, and looking at them asks the server nothing', async () => {
  let asked = 0;
  const counting = edgeOf(server, {
    wrap: (inner) => (request) => {
      asked += 1;
      return inner(request);
    },
  });
  const stop = new AbortController();
  let [wanted, looks] = [false, 0];
  const said: string[] = [];
  const options = {
    client: counting.client,
    clock: systemClock,
    random: Math.random,
    askEveryMs: 10,
    restMs: 0,
    onProblem: (line: string) => said.push(line),
  };
  const watch = new BookWatch({
    ...options,
    wanted: () => {
      looks += 1;
      return wanted;
    },
  });
  const running = watch.run(stop.signal);
  assert.is(watch.summary(), undefined);
  await until('it has looked whether there is one', () => looks > 3);
  assert.is(asked, 0, 'nothing is asked where there is no ledger');
  wanted = true;
  const lost = (): number => watch.summary()?.troubles.length ?? -1;
  await until('it is known', () => lost() === 0);
  const before = asked;
  for (let n = 0; n < 1_000; n += 1) watch.summary();
  assert.ok(asked - before <= 3, 'watches alone');
  await balanced(server, namespace, 'thief', '203.0.113.9');
  await until('the conflict is seen', () => lost() === 1);
  await server.admin.expect('DELETE', `/api/v1/namespaces/${namespace}/services/thief`);
  await until('and that it is over', () => lost() === 0);
  stop.abort();
  await running;
  await counting.transport.close();
  assert.equal(said, []);
});

test('migrate reads the pools of MetalLB as they are', async () => {
  const body = {
    apiVersion: 'metallb.io/v1beta1',
    kind: 'IPAddressPool',
    metadata: { name: 'office' },
    spec: { addresses: ['198.51.100.1-198.51.100.6'] },
  };
  await server.admin.expect('POST', `${pools}/${namespace}/ipaddresspools`, { body });
  await balanced(server, namespace, 'old', '198.51.100.3', {});
  const { classes, steps, done: already } = json(await admin.keelson('addresses', 'migrate', '-o', 'json'));
  assert.equal(classes[0].document.spec.parameters.addresses, [
    '198.51.100.1/32',
    '198.51.100.2/31',
    '198.51.100.4/31',
    '198.51.100.6/32',
  ]);
  assert.equal(
    steps.map((one: { service: string; className: string }) => `${one.service} ${one.className}`),
    ['old office', 'plain public'],
  );
  assert.ok(already >= 3);
  // The steps as they are told: pin, deliver the class, adopt.
  const [step] = steps;
  await server.admin.expect('PATCH', `/api/v1/namespaces/${namespace}/services/old`, {
    body: step.pin,
    type: 'application/merge-patch+json',
  });
  await server.admin.expect('POST', place.path('IPAddressClass', 'office').replace(/\/office$/, ''), {
    body: classes[0].document,
  });
  const { digest } = json(await adopt('old', '--class', 'office', '-o', 'json'));
  done(await adopt('old', '--class', 'office', '--approve', digest));
  assert.is((await place.get('IPAddress', 'ip-198-51-100-3'))?.status?.phase, 'Bound');
});

const lease = '/apis/coordination.k8s.io/v1/namespaces';

test('release-finalizers: not while a controller renews its Lease; then what waits for one is let go, and what is left is named', async () => {
  await at.stop();
  const spec = (holderIdentity: string): JsonObject => ({
    holderIdentity,
    leaseDurationSeconds: 1,
    renewTime: new Date().toISOString().replace('Z', '000Z'),
  });
  const path = `${lease}/${namespace}/leases`;
  const body = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: addressLeases.core },
    spec: spec('somebody'),
  };
  await server.admin.expect('POST', path, { body });
  const beat = new AbortController();
  const beating = (async () => {
    while (!beat.signal.aborted) {
      await server.admin.expect('PATCH', `${path}/${addressLeases.core}`, {
        body: { spec: spec('somebody') },
        type: 'application/merge-patch+json',
      });
      await systemClock.sleep(100, beat.signal).catch(() => undefined);
    }
  })();
  const refused = await admin.keelson('addresses', 'release-finalizers', '-o', 'json');
  beat.abort();
  await beating;
  assert.is(refused.code, 2);
  assert.equal(reasonsOf(refused), ['ControllerRuns']);
  // One object is on its way out, and waits for a controller that is gone.
  await place.remove('IPAddressClass', 'office');
  const shown = await admin.hurried('addresses', 'release-finalizers', '-o', 'json');
  const { digest, objects, abandoned } = json(shown);
  assert.equal([abandoned.length, abandoned[0].holder], [1, 'somebody']);
  assert.ok(objects.some((one: JsonObject) => one.name === 'office' && one.deleting === true));
  assert.ok((await place.get('IPAddressClass', 'office')) !== undefined, 'a dry run');
  await server.admin.expect('DELETE', `${path}/${addressLeases.core}`);
  const said = done(await admin.keelson('addresses', 'release-finalizers', '--approve', digest));
  assert.match(said.out, new RegExp(`^${objects.length} objects of the ledger wait for no controller any more`));
  assert.match(said.out, /yours: IPAddressClass public: its pool and advertisement iad-public/);
  assert.is(await place.get('IPAddressClass', 'office'), undefined);
  for (const kind of ['IPAddressClass', 'IPAddress', 'IPAddressClaim'] as const)
    for (const { metadata } of await place.list(kind)) assert.equal(metadata.finalizers ?? [], [], metadata.name);
  assert.match(readFileSync(join(admin.folder, 'keelson-release-finalizers.jsonl'), 'utf8'), addressFinalizers.claim);
  assert.match(
    done(await admin.keelson('addresses', 'release-finalizers')).out,
    /no object of the ledger has a finalizer/,
  );
});

races(test, at);
procedures(test, at);

test.run();
