// time limit: 120s
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations, addressFinalizers, addressLeases } from '../../constructs/api/addresses.ts';
import { crdOf } from '../../constructs/api/crd.ts';
import type { Kind } from '../../constructs/api/kinds/kind.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { clientLedgerApi } from '../../executor/addresses/client-api.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { startApiServer } from '../apiserver/server.ts';
import { type CrashPoint, crashTransport } from '../faults/crash.ts';
import { ModelServer } from '../pure/addresses-model.ts';
import { install, type LedgerPlace, ledgerPlace, work } from './addresses-bed.ts';
import { isWritten, modelSide, realSide, type Step, sameAnswer, step } from './addresses-equivalence.ts';
import { startRole } from './addresses-role.ts';
import { edgeOf, until } from './kubeBed.ts';

const server = await startApiServer({ tools: { onProgress: (line) => console.error(line) } });
const namespace = await freshNamespace(server.admin, 'tenant');
const place = ledgerPlace(server, namespace);
const edge = edgeOf(server);
const never = new AbortController().signal;
const provisioner = 'metallb.drivers.local.sdn.cozystack.io';
let installed = false;

test.before.each(async () => {
  for (const kind of ['IPAddressClass', 'IPAddress', 'IPAddressClaim'] as const)
    for (const { metadata } of installed ? await place.list(kind) : []) {
      await place.merge(kind, metadata.name ?? '', { metadata: { finalizers: null } });
      await server.admin.request('DELETE', place.path(kind, metadata.name ?? ''));
    }
});

test.after(async () => {
  await edge.transport.close();
  await server.stop();
});

/** A definition as the first controllers brought it: without our rules, patterns and limits, and without what came later. */
function early(kind: Kind): JsonObject {
  const kept = new Set([
    'provisioner cannot be changed',
    'address cannot be changed',
    'source must name exactly one of fromClass and providerRef',
  ]);
  const loosen = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) loosen(one);
    if (!isObject(value)) return;
    for (const limit of ['pattern', 'maxLength', 'maxItems']) delete value[limit];
    const rules = value['x-kubernetes-validations'];
    if (Array.isArray(rules)) {
      const left = rules.filter((rule) => isObject(rule) && kept.has(String(rule.message)));
      if (left.length === 0) delete value['x-kubernetes-validations'];
      else value['x-kubernetes-validations'] = left;
    }
    for (const member of Object.values(value)) loosen(member);
  };
  const crd = structuredClone(crdOf(kind)) as {
    spec: { versions: { schema: { openAPIV3Schema: JsonObject } }[] };
  } & JsonObject;
  const [version] = crd.spec.versions;
  const schema = version?.schema.openAPIV3Schema ?? {};
  loosen(schema);
  delete schema.required;
  const spec = (schema.properties as JsonObject).spec as JsonObject & { properties: JsonObject };
  delete spec.default;
  delete spec.properties.releaseDelay;
  return crd;
}

const finalizersOf = async (kind: Parameters<LedgerPlace['get']>[0], name: string): Promise<string[]> =>
  (await place.get(kind, name))?.metadata.finalizers ?? [];
const phaseOf = async (kind: Parameters<LedgerPlace['get']>[0], name: string): Promise<unknown> =>
  (await place.get(kind, name))?.status?.phase;

test('E9: what was stored under the first definitions is read, keeps its phase, and can be worked with', async () => {
  await install(server, early);
  installed = true;
  const own = { finalizers: [addressFinalizers.address] };
  const spec = (address: string, more: JsonObject = {}): JsonObject => ({
    className: 'public',
    address,
    source: { fromClass: {} },
    ...more,
  });
  await place.create('IPAddressClass', 'public', { provisioner });
  const uids = new Map<string, string>();
  for (const [name, family] of [
    ['mapped', 'IPv4'],
    ['six', 'IPv6'],
    ['both', 'Dual'],
  ] as const) {
    const more = name === 'both' ? { addressName: 'nothing' } : {};
    const { metadata } = await place.create(
      'IPAddressClaim',
      name,
      { className: 'public', family, ...more },
      { finalizers: [addressFinalizers.claim], annotations: { [addressAnnotations.provisioner]: provisioner } },
    );
    uids.set(name, metadata.uid ?? '');
    await place.merge('IPAddressClaim', name, { status: { phase: name === 'both' ? 'Pending' : 'Bound' } }, true);
  }
  await server.admin.expect('POST', place.path('IPAddressClaim', 'x').replace(/\/x$/, ''), {
    body: { apiVersion: 'local.sdn.cozystack.io/v1alpha1', kind: 'IPAddressClaim', metadata: { name: 'bare' } },
  });
  const ref = (name: string): JsonObject => ({ claimRef: { namespace, name, uid: uids.get(name) ?? 'gone' } });
  const stored: readonly (readonly [string, JsonObject, string])[] = [
    ['odd', spec('not-an-ip'), 'Pending'],
    ['octal', spec('010.0.0.1'), 'Pending'],
    ['ip-mapped', spec('::ffff:203.0.113.7', ref('mapped')), 'Bound'],
    ['ip-six', spec('2001:DB8:0::7', ref('six')), 'Bound'],
    ['old', spec('203.0.113.9', ref('nobody')), 'Released'],
    ['free', spec('203.0.113.10'), 'Available'],
  ];
  for (const [name, body, phase] of stored) {
    await place.create('IPAddress', name, body, own);
    await place.merge('IPAddress', name, { status: { phase } }, true);
  }
  await install(server);
  await work(edge.client, Date.now, never);
  for (const [name, , phase] of stored) assert.is(await phaseOf('IPAddress', name), phase, name);
  for (const [name, phase] of [
    ['mapped', 'Bound'],
    ['six', 'Bound'],
    ['both', 'Pending'],
    ['bare', 'Pending'],
  ] as const)
    assert.is(await phaseOf('IPAddressClaim', name), phase, name);
  assert.equal((await place.get('IPAddressClaim', 'bare'))?.spec, { family: 'IPv4' });
  assert.equal(await finalizersOf('IPAddressClass', 'public'), [addressFinalizers.class]);
  // All of it can be given up, in the order of the operating page.
  for (const { metadata } of await place.list('IPAddressClaim'))
    await place.remove('IPAddressClaim', metadata.name ?? '');
  await work(edge.client, Date.now, never);
  for (const [name] of stored) await place.remove('IPAddress', name);
  await work(edge.client, Date.now, never);
  await place.remove('IPAddressClass', 'public');
  await work(edge.client, Date.now, never);
  for (const kind of ['IPAddressClass', 'IPAddress', 'IPAddressClaim'] as const)
    assert.equal(await place.list(kind), [], kind);
});

test('the model answers as the server does', async () => {
  const model = modelSide(new ModelServer(Date.now));
  const real = realSide(clientLedgerApi(edge.client), place);
  const steps: Step[] = fc.sample(step, { numRuns: 700, seed: 20_261_130 });
  const seen = new Map<string, number>();
  const differences: string[] = [];
  for (const [n, one] of steps.entries()) {
    const [expected, answer] = [await model.take(one), await real.take(one)];
    if (!sameAnswer(expected, answer)) differences.push(JSON.stringify({ n, one, model: expected, server: answer }));
    const key = isWritten(answer) ? `${one.type} written` : answer.type;
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  assert.equal(differences.slice(0, 5), []);
  for (const key of [
    'create written',
    'edit written',
    'patch written',
    'status written',
    'removed',
    'refused',
    'stale',
    'gone',
    'exists',
    'found',
  ])
    assert.ok((seen.get(key) ?? 0) >= 5, `${key}: ${JSON.stringify([...seen])}`);
});

/** A short life in which every kind of write occurs. The core works through `client`; after a death through another one. */
async function life(nth: number, at: CrashPoint): Promise<{ count: number; died: boolean; states: string }> {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const dying: { crash?: ReturnType<typeof crashTransport> } = {};
  const mortal = edgeOf(server, {
    wrap: (inner) => {
      dying.crash = crashTransport(inner, { nth, at });
      return dying.crash.transport;
    },
  });
  const states: unknown[] = [];
  const go = async (): Promise<void> => {
    const crashed = dying.crash?.crashed;
    if (crashed?.aborted !== true) await work(mortal.client, () => now, crashed ?? never).catch(deathOnly(crashed));
    if (crashed?.aborted === true) await work(edge.client, () => now, never);
    for (const kind of ['IPAddress', 'IPAddressClaim'] as const)
      for (const { metadata, spec, status } of await place.list(kind))
        states.push([kind, metadata.name, metadata.finalizers ?? [], withoutUid(spec), status?.phase ?? null]);
  };
  const address = { className: 'public', source: { fromClass: {} } };
  await place.create('IPAddressClass', 'public', { provisioner, releaseDelay: '1h' });
  await place.create('IPAddressClaim', 'web', { className: 'public' });
  await place.create('IPAddressClaim', 'mail', { className: 'public', addressName: 'ip-8' });
  await place.create('IPAddress', 'ip-7', { ...address, address: '203.0.113.7' });
  await place.create('IPAddress', 'ip-8', {
    ...address,
    address: '203.0.113.8',
    reclaimPolicy: 'Delete',
    claimRef: { namespace, name: 'mail' },
  });
  await go();
  for (const name of ['web', 'mail']) await place.remove('IPAddressClaim', name);
  await go();
  now += 3_600_000;
  await go();
  await place.remove('IPAddress', 'ip-7');
  await place.remove('IPAddressClass', 'public');
  await go();
  await mortal.transport.close();
  return {
    count: dying.crash?.count() ?? 0,
    died: dying.crash?.crashed.aborted === true,
    states: JSON.stringify(states),
  };
}

const deathOnly =
  (crashed: AbortSignal | undefined) =>
  (error: unknown): void => {
    if (crashed?.aborted !== true) throw error;
  };

function withoutUid(spec: JsonObject | undefined): unknown {
  const ref = isObject(spec?.claimRef) ? spec.claimRef : undefined;
  return {
    ...spec,
    ...(ref === undefined ? {} : { claimRef: { ...ref, uid: typeof ref.uid === 'string' && ref.uid !== '' } }),
  };
}

test('I12: a process may die at any of its writes', async () => {
  const whole = await life(0, 'afterReply');
  assert.match(whole.states, '"Released"');
  assert.match(whole.states, '"Available"');
  assert.equal(await place.list('IPAddress'), []);
  // What a process leaves behind is what it has written: after the effect of a write is before the next one is sent.
  const deaths = Array.from({ length: whole.count }, (_, n) => ({ nth: n + 1, at: 'afterEffect' as CrashPoint }));
  deaths.push({ nth: 1, at: 'beforeSend' }, ...[5, 10, 15].map((nth) => ({ nth, at: 'afterReply' as CrashPoint })));
  for (const { nth, at } of deaths) {
    const { died, states } = await life(nth, at);
    assert.ok(died, `write ${nth}`);
    assert.is(states, whole.states, `died ${at} of write ${nth}`);
  }
  console.log(`${deaths.length} deaths at ${whole.count} writes`);
});

test('the worker takes the Lease of the core, waits for its holder, and adopts an address in the order of the operating page', async () => {
  const lease = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = {
    holderIdentity: 'another',
    leaseDurationSeconds: 1,
    acquireTime: renewTime,
    renewTime,
    leaseTransitions: 1,
  };
  await server.admin.expect('POST', lease, {
    body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: addressLeases.core }, spec },
  });
  const events: JsonObject[] = [];
  const role = startRole({ server, workers: (of) => [coreWorker(of, Date.now)], leaseNamespace: namespace });
  const { registry, said } = role;
  await place.create('IPAddressClass', 'public', { provisioner });
  await until('the Lease is taken over', () => said.includes('info lease leading'));
  await until('the class is protected', async () => (await finalizersOf('IPAddressClass', 'public')).length > 0);
  const { body } = await server.admin.expect('GET', `${lease}/${addressLeases.core}`);
  assert.match(body.spec.holderIdentity, /^test_/);
  // Claim first, then the address that names it.
  await place.create('IPAddressClaim', 'web', { className: 'public', addressName: 'ip-203-0-113-7' });
  await until('the claim waits', async () => (await phaseOf('IPAddressClaim', 'web')) === 'Pending');
  await place.create('IPAddress', 'ip-203-0-113-7', {
    address: '203.0.113.7',
    className: 'public',
    reclaimPolicy: 'Retain',
    claimRef: { namespace, name: 'web' },
    source: { fromClass: {} },
  });
  await until('the claim has its address', async () => (await phaseOf('IPAddressClaim', 'web')) === 'Bound');
  await until('the address is Bound', async () => (await phaseOf('IPAddress', 'ip-203-0-113-7')) === 'Bound');
  const claim = (await place.get('IPAddressClaim', 'web')) as KubeObject;
  assert.equal(claim.status?.addresses, [{ name: 'ip-203-0-113-7', address: '203.0.113.7' }]);
  await until('it was told', async () => {
    const { body: list } = await server.admin.expect('GET', `/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
    events.splice(0, events.length, ...list.items);
    return events.some(({ reason }) => reason === 'Bound');
  });
  const bound = events.find(({ reason }) => reason === 'Bound');
  assert.equal([bound?.type, bound?.reportingController], ['Normal', 'ipaddressclaim-controller']);
  // The order of the operating page: claims, addresses, classes.
  await place.remove('IPAddressClaim', 'web');
  await until('the address is Released', async () => (await phaseOf('IPAddress', 'ip-203-0-113-7')) === 'Released');
  await place.remove('IPAddressClass', 'public');
  await place.remove('IPAddress', 'ip-203-0-113-7');
  await until('the class is gone', async () => (await place.get('IPAddressClass', 'public')) === undefined);
  const metrics = await registry.metrics();
  assert.match(metrics, 'address_controller_reclaims_total{class="public",policy="Retain",path="claim"} 1');
  assert.match(metrics, 'address_controller_claim_bind_seconds_count{class="public"} 1');
  assert.match(metrics, 'address_controller_ready 1');
  await role.stop();
  const { body: given } = await server.admin.expect('GET', `${lease}/${addressLeases.core}`);
  assert.is(given.spec.holderIdentity ?? '', '', 'the Lease is given up');
  assert.equal(
    said.filter((line) => line.startsWith('warn')),
    [],
  );
});

test.run();
