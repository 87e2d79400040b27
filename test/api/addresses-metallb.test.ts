// time limit: 180s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { type JsonObject, objectsOf } from '../../constructs/lib/json.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { metallbWorker } from '../../executor/addresses/metallb/metallb-worker.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import type { Transport } from '../../executor/kube/transport.ts';
import type { Reply } from '../apiserver/client.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { metallbDefinitions, runMetallb } from '../standins/metallb.ts';
import { install, type LedgerPlace, ledgerPlace } from './addresses-bed.ts';
import { type Role, startRole } from './addresses-role.ts';
import { edgeOf, until } from './kubeBed.ts';

/**
 * Core and driver as one process against a real API server, with the model of MetalLB's controller beside them. The garbage
 * collector and the controller of namespaces are Kubernetes' own.
 */

const server = await startApiServer({ with: ['controllers'], tools: { onProgress: (line) => console.error(line) } });
const { admin } = server;
const [namespace, placeholders, metallb] = (await Promise.all(
  ['tenant', 'holds', 'metallb'].map((prefix) => freshNamespace(admin, prefix)),
)) as [string, string, string];
const place = ledgerPlace(server, namespace);
const edge = edgeOf(server);
const stop = new AbortController();
const settings: MetallbSettings = {
  metallbNamespace: metallb,
  placeholderNamespace: placeholders,
  forcedRelease: 'deleted',
};
const pinKey = 'metallb.io/loadBalancerIPs';
const mark = 'metallb.drivers.local.sdn.cozystack.io/pinned';
const first = 'ip-203-0-113-0';

/** Requests of the role that change something, or list. */
interface Sent {
  readonly what: string;
  readonly at: number;
}
const sent: Sent[] = [];
const counting =
  (inner: Transport): Transport =>
  async (request) => {
    const reply = await inner(request);
    const lists = request.method === 'GET' && request.query.limit !== undefined;
    const counts = request.method !== 'GET' && !request.path.includes('/leases') && !request.path.includes('/events');
    if (counts || lists) sent.push({ what: `${request.method} ${request.path}`, at: performance.now() });
    return reply;
  };

const start = (): Role =>
  startRole({
    server,
    workers: (registry) => [coreWorker(registry, Date.now), metallbWorker(registry, Date.now, settings)],
    leaseNamespace: namespace,
    wrapTransport: counting,
  });

const services = (where = namespace): string => `/api/v1/namespaces/${where}/services`;
const service = async (name: string): Promise<JsonObject & { metadata: { annotations?: Record<string, string> } }> =>
  (await admin.expect('GET', `${services()}/${name}`)).body;
const ingress = async (name: string): Promise<string[]> => {
  const { status } = (await service(name)) as { status?: { loadBalancer?: { ingress?: unknown } } };
  return objectsOf(status?.loadBalancer?.ingress).map(({ ip }) => String(ip));
};
const holds = async (): Promise<string[]> =>
  (await admin.expect('GET', services(placeholders))).body.items.map(
    (one: { metadata: { name: string } }) => one.metadata.name,
  );
const makeService = (name: string, annotations: Record<string, string>): Promise<Reply> =>
  admin.expect('POST', services(), {
    body: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, annotations },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }], allocateLoadBalancerNodePorts: false },
    },
  });
const note = (name: string, annotations: Record<string, string | null>): Promise<Reply> =>
  admin.expect('PATCH', `${services()}/${name}`, {
    body: { metadata: { annotations } },
    type: 'application/merge-patch+json',
  });
const removeService = (name: string): Promise<Reply> => admin.expect('DELETE', `${services()}/${name}`);
const phase = async (kind: 'IPAddress' | 'IPAddressClaim', name: string): Promise<unknown> =>
  (await place.get(kind, name))?.status?.phase;
const user = async (name: string): Promise<unknown> => (await place.get('IPAddress', name))?.status?.associatedTo;
const has = (name: string, ip: string) => async (): Promise<boolean> => (await ingress(name)).join() === ip;
const settledHold = async (): Promise<boolean> =>
  objectsOf((await place.get('IPAddress', first))?.status?.conditions).some(
    ({ type, reason }) => type === 'Held' && reason === 'Reserved',
  );

test.before(async () => {
  for (const body of metallbDefinitions)
    await admin.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body });
  await install(server);
  for (const plural of ['ipaddresspools', 'l2advertisements'])
    await until(`${plural} to be served`, async () => {
      const { status } = await admin.request('GET', `/apis/metallb.io/v1beta1/namespaces/${metallb}/${plural}`);
      return status === 200;
    });
  standin = runMetallb({ client: edge.client, admin, namespace: metallb }, stop.signal);
});

test.after(async () => {
  stop.abort();
  await Promise.allSettled([role?.stop(), standin]);
  await edge.transport.close();
  await server.stop();
});

let role: Role | undefined;
let standin = Promise.resolve();

test('P1, P2, R1, S1, E1: from a claim to a Service, and to the next one, with one address', async () => {
  role = start();
  const { registry } = role;
  await place.create('IPAddressClass', 'public', {
    provisioner: 'metallb.drivers.local.sdn.cozystack.io',
    parameters: { addresses: ['203.0.113.0/29'] },
  });
  await place.create('IPAddressClaim', 'web', { className: 'public' });
  await until('the claim is Bound', async () => (await phase('IPAddressClaim', 'web')) === 'Bound');
  await until('the address is held', settledHold);
  const pool = await admin.expect('GET', `/apis/metallb.io/v1beta1/namespaces/${metallb}/ipaddresspools/iad-public`);
  assert.equal(pool.body.spec, { addresses: ['203.0.113.0/29'], autoAssign: false });
  await makeService('a', { [addressAnnotations.claim]: 'web' });
  await until('Service a has the address', has('a', '203.0.113.0'));
  await until('nobody holds it any more', async () => (await holds()).length === 0);
  const { annotations = {} } = (await service('a')).metadata;
  assert.equal([annotations[pinKey], annotations[mark]], ['203.0.113.0', 'true']);
  const given = sent.findLast(({ what }) => what.startsWith('DELETE') && what.includes(placeholders));
  const asked = sent.findLast(({ what }) => what === `PATCH ${services()}/a`);
  const gap = (asked?.at ?? Number.POSITIVE_INFINITY) - (given?.at ?? 0);
  assert.ok(gap > 0 && gap < 1_000, `${gap} ms`);
  console.log(`hand-off: the pin was written ${gap.toFixed(1)} ms after the hold was deleted`);
  await removeService('a');
  await until('it is held again', settledHold);
  await makeService('b', { [addressAnnotations.claim]: 'web' });
  await until('Service b has the address', has('b', '203.0.113.0'));
  const metrics = await registry.metrics();
  assert.match(metrics, 'metallb_iad_pool_capacity{class="public",family="IPv4"} 8');
  assert.match(metrics, 'metallb_iad_ready 1');
  // The pass about the Service that has its address now may be on its way.
  await until('the hand-offs were timed', async () =>
    (await registry.metrics()).includes('metallb_iad_handoff_seconds_count 2'),
  );
  console.log(/metallb_iad_handoff_seconds_sum .*/.exec(await registry.metrics())?.[0]);
});

test('S2, S4, X1: what a Service may not have is told, by who says so', async () => {
  await makeService('c', { [addressAnnotations.claim]: 'web' });
  const events = async (name: string): Promise<JsonObject[]> =>
    objectsOf((await admin.expect('GET', `/apis/events.k8s.io/v1/namespaces/${namespace}/events`)).body.items).filter(
      (one) => (one.regarding as JsonObject).name === name,
    );
  await until('c is rejected', async () => (await events('c')).some(({ reason }) => reason === 'AssociationRejected'));
  await removeService('c');
  await note('b', { [addressAnnotations.claim]: null });
  await until('b is in conflict', async () => (await phase('IPAddress', first)) === 'Conflict');
  assert.equal([await ingress('b'), (await service('b')).metadata.annotations?.[pinKey]], [['203.0.113.0'], undefined]);
  await note('b', { [addressAnnotations.claim]: 'web' });
  await until('b has authority again', async () => (await phase('IPAddress', first)) === 'Bound');
  await until('it was told', async () => (await events('b')).some(({ reason }) => reason === 'AddressConflict'));
  const told = (await events('b')).map(
    ({ type, reason, reportingController }) => `${type} ${reason} ${reportingController}`,
  );
  for (const line of ['Normal Associated', 'Normal Disassociated', 'Warning AddressConflict'])
    assert.ok(told.includes(`${line} iad-service-controller`), told.join());
});

test('E4: a Service that was pinned by hand comes under the ledger and keeps address and pin', async () => {
  await makeService('old', { [pinKey]: '203.0.113.5' });
  await until('it has its address', has('old', '203.0.113.5'));
  const before = (await service('old')).status;
  await place.create('IPAddressClaim', 'old', { className: 'public', addressName: 'ip-203-0-113-5' });
  await place.create('IPAddress', 'ip-203-0-113-5', {
    className: 'public',
    address: '203.0.113.5',
    reclaimPolicy: 'Retain',
    claimRef: { namespace, name: 'old' },
    source: { fromClass: {} },
  });
  await until('the claim is Bound', async () => (await phase('IPAddressClaim', 'old')) === 'Bound');
  await note('old', { [addressAnnotations.claim]: 'old' });
  await until('it is recorded', async () => (await user('ip-203-0-113-5')) !== undefined);
  await until('the address is Bound', async () => (await phase('IPAddress', 'ip-203-0-113-5')) === 'Bound');
  const { metadata, status } = await service('old');
  assert.equal(
    [metadata.annotations?.[pinKey], metadata.annotations?.[mark], status],
    ['203.0.113.5', undefined, before],
  );
  await until('no hold of it is left', async () => (await holds()).length === 0);
});

test('H6, D24: an address under Delete is taken off its Service before it goes', async () => {
  await place.create('IPAddressClass', 'brief', {
    provisioner: 'metallb.drivers.local.sdn.cozystack.io',
    reclaimPolicy: 'Delete',
    parameters: { addresses: ['198.51.100.0/30'] },
  });
  await place.create('IPAddressClaim', 'brief', { className: 'brief' });
  await makeService('brief', { [addressAnnotations.claim]: 'brief' });
  await until('it has its address', has('brief', '198.51.100.0'));
  await place.remove('IPAddressClaim', 'brief');
  await until('the address is gone', async () => (await place.get('IPAddress', 'ip-198-51-100-0')) === undefined);
  assert.equal(await ingress('brief'), []);
  await until('nothing of ours is on the Service', async () => {
    const { annotations = {} } = (await service('brief')).metadata;
    return Object.keys(annotations).join() === addressAnnotations.claim;
  });
});

test('E7: a namespace that is deleted with its claims: completely while the role runs, and once it runs again', async () => {
  const there = await Promise.all(
    ['up', 'down'].map(async (prefix) => {
      const own = ledgerPlace(server, await freshNamespace(admin, prefix));
      for (const className of ['public', 'brief']) await own.create('IPAddressClaim', className, { className });
      return own;
    }),
  );
  const names: string[] = [];
  for (const own of there) {
    await until('its claims are Bound', async () =>
      (await own.list('IPAddressClaim')).every(({ status }) => status?.phase === 'Bound'),
    );
    for (const { status } of await own.list('IPAddressClaim'))
      names.push(...objectsOf(status?.addresses).map(({ name }) => String(name)));
  }
  const leave = (own: LedgerPlace): Promise<Reply> => admin.expect('DELETE', `/api/v1/namespaces/${own.namespace}`);
  const gone = (own: LedgerPlace): Promise<void> =>
    until(
      'the namespace is gone',
      async () => (await admin.request('GET', `/api/v1/namespaces/${own.namespace}`)).status === 404,
      60_000,
    );
  const [up, down] = there as [LedgerPlace, LedgerPlace];
  await leave(up);
  await gone(up);
  await role?.stop();
  await leave(down);
  await until('its claims are deleted, and wait', async () =>
    (await down.list('IPAddressClaim')).every(({ metadata }) => metadata.deletionTimestamp !== undefined),
  );
  const waiting = await down.list('IPAddressClaim');
  assert.equal(
    waiting.map(({ metadata }) => [metadata.name, metadata.finalizers?.length]),
    [
      ['brief', 1],
      ['public', 1],
    ],
  );
  role = start();
  await gone(down);
  // What is left is what Retain keeps, and it is held.
  await until('the addresses under Delete are gone', async () => {
    const left = (await place.list('IPAddress')).filter(({ metadata }) => names.includes(metadata.name ?? ''));
    return (
      left.length === 2 &&
      left.every(({ spec, status }) => spec?.className === 'public' && status?.phase === 'Released')
    );
  });
  await until('each has its hold', async () => (await holds()).length === 2);
});

test('I11: another process lists everything once, and writes nothing', async () => {
  await role?.stop();
  sent.length = 0;
  role = start();
  const { registry, said } = role;
  const passes = async (metric: string): Promise<number> => {
    const text = (await registry.metrics()).split('\n');
    return text
      .filter((line) => line.startsWith(`${metric}_count`))
      .reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
  };
  const kinds = ['IPAddressClass', 'IPAddress', 'IPAddressClaim'] as const;
  const objects = (await Promise.all(kinds.map((kind) => place.list(kind)))).flat().length;
  const tenants = (await admin.expect('GET', services())).body.items.length;
  await until(
    'everything was looked at',
    async () =>
      (await passes('metallb_iad_pass_seconds')) >= objects + tenants &&
      (await passes('address_controller_pass_seconds')) >= objects,
  );
  const writes = sent.filter(({ what }) => !what.startsWith('GET')).map(({ what }) => what);
  assert.equal(writes, []);
  const lists = sent.filter(({ what }) => what === 'GET /api/v1/services');
  assert.is(lists.length, 1);
  // One event of a Service costs no list and no write.
  sent.length = 0;
  const before = await passes('metallb_iad_pass_seconds');
  await note('old', { other: 'x' });
  await until('it was looked at', async () => (await passes('metallb_iad_pass_seconds')) > before);
  assert.equal(sent, []);
  await role.stop();
  assert.equal(
    said.filter((line) => line.startsWith('warn')),
    [],
  );
});

test.run();
