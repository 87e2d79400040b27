// time limit: 120s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { seededRandom } from '../pure/virtualClock.ts';
import { until } from './kubeBed.ts';
import { metalLb, metalLbServer, withWebhook } from './metallb-bed.ts';
import { agreed, beginning, History, linesAfter, outcome, type Step, taken } from './metallb-equivalence.ts';
import { pinKey, poolKey, type Services, services } from './metallb-services.ts';

/** What the MetalLB driver takes for granted, asked of MetalLB's own controller. */

const server = await metalLbServer();
const main = await metalLb(server);
let controller = await main.start();
let pools = 0;
let probes = 0;
const used: Services[] = [];
const probing = await services(server);
await main.pool('probes', ['198.19.0.0/24']);

// Whoever waits is told of it again with every address that is given back, and MetalLB writes no more than 20 Events a second.
test.after.each(async () => {
  for (const { namespace } of used.splice(0))
    await server.admin.expect('DELETE', `/api/v1/namespaces/${namespace}/services`);
});

test.after(async () => {
  await controller.kill();
  await server.stop();
});

/** Services of one test. */
async function tenant(): Promise<Services> {
  const made = await services(server);
  used.push(made);
  return made;
}

/** A pool of a name of its own. */
async function pool(...addresses: string[]): Promise<string> {
  const name = `pool-${++pools}`;
  await main.pool(name, addresses);
  return name;
}

/** Everything that was written until now has been looked at: MetalLB has one worker, and one that moves wakes nobody. */
async function settled(): Promise<void> {
  const ip = `198.19.0.${250 + (++probes % 2)}`;
  if (probes === 1) await probing.create('probe', pinned(ip));
  else await probing.annotate('probe', pinned(ip).annotations);
  await probing.has('probe', ip);
}

/** Nothing is assigned, and MetalLB has looked. */
async function stays(of: Services, name: string, ...ips: string[]): Promise<void> {
  await settled();
  assert.equal((await of.get(name)).ips, ips, name);
}

const from = (name: string): { annotations: Record<string, string> } => ({ annotations: { [poolKey]: name } });
const pinned = (...ips: string[]): { annotations: Record<string, string> } => ({
  annotations: { [pinKey]: ips.join(',') },
});
const v6 = { ipFamilies: ['IPv6'] };
const dual = (ipFamilyPolicy: string): { ipFamilyPolicy: string; ipFamilies: string[] } => ({
  ipFamilyPolicy,
  ipFamilies: ['IPv4', 'IPv6'],
});

test('a pool that is not for automatic choice serves who names it, or an address of it', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.0/29');
  await s.create('nobody');
  assert.match(await s.event('nobody', 'AllocationFailed'), 'no available IPs');
  await s.create('pool', from(name));
  await s.create('pin', pinned('203.0.113.5'));
  await s.create('both', { annotations: { [poolKey]: name, [pinKey]: '203.0.113.6' } });
  await s.has('pool', '203.0.113.0');
  await s.has('pin', '203.0.113.5');
  await s.has('both', '203.0.113.6');
  await stays(s, 'nobody');
  assert.is((await s.get('pool')).annotations['metallb.io/ip-allocated-from-pool'], name);
  assert.match(await s.event('pool', 'IPAllocated'), '203.0.113.0');
});

test('an assignment is sticky: without pin and pool it stays; with another pool or pin it moves', async () => {
  const s = await tenant();
  const [one, two] = [await pool('203.0.113.8/29'), await pool('203.0.113.16/29')];
  await s.create('web', from(one));
  await s.has('web', '203.0.113.8');
  await s.annotate('web', { [poolKey]: null });
  await stays(s, 'web', '203.0.113.8');
  await s.annotate('web', { [pinKey]: '203.0.113.10' });
  await s.has('web', '203.0.113.10');
  await s.annotate('web', { [pinKey]: null });
  await stays(s, 'web', '203.0.113.10');
  await s.annotate('web', { [poolKey]: two });
  await s.has('web', '203.0.113.16');
  await s.patch('web', { spec: { type: 'ClusterIP', allocateLoadBalancerNodePorts: null } });
  await s.has('web');
});

test('a pin outside the pool that is named, and a pin beside spec.loadBalancerIP, are refused', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.24/29');
  await s.create('outside', { annotations: { [poolKey]: name, [pinKey]: '198.19.0.200' } });
  assert.match(await s.event('outside', 'AllocationFailed'), `not compatible with requested address pool ${name}`);
  await s.create('nowhere', pinned('192.0.2.1'));
  assert.match(await s.event('nowhere', 'AllocationFailed'), 'is not allowed in config');
  await s.create('twice', { ...pinned('203.0.113.25'), spec: { loadBalancerIP: '203.0.113.25' } });
  assert.match(await s.event('twice', 'AllocationFailed'), 'service can not have both');
  await s.annotate('twice', { [pinKey]: null });
  await s.has('twice', '203.0.113.25');
  await s.annotate('twice', { [pinKey]: '203.0.113.26' });
  assert.match(await s.event('twice', 'LoadBalancerFailed'), 'service can not have both');
  await stays(s, 'twice', '203.0.113.25');
});

test('a pin to an address of another Service waits until that one is deleted, or left without any', async () => {
  const s = await tenant();
  await pool('203.0.113.32/29');
  await s.create('holder', pinned('203.0.113.32'));
  await s.has('holder', '203.0.113.32');
  await s.create('waiting', pinned('203.0.113.32'));
  assert.match(await s.event('waiting', 'AllocationFailed'), 'address also in use by');
  await stays(s, 'waiting');
  await s.remove('holder');
  await s.has('waiting', '203.0.113.32');
  await s.create('next', pinned('203.0.113.32'));
  await s.event('next', 'AllocationFailed');
  // Taken away by force: no pool of that name exists.
  await s.annotate('waiting', { [poolKey]: 'no-such-pool' });
  await s.has('waiting');
  await s.has('next', '203.0.113.32');
  await s.annotate('waiting', { [poolKey]: null, [pinKey]: null });
  await stays(s, 'waiting');
});

test('a Service that moves on wakes nobody who waits for what it had; a touch does', async () => {
  const s = await tenant();
  await pool('203.0.113.40/29');
  await s.create('mover', pinned('203.0.113.40'));
  await s.has('mover', '203.0.113.40');
  await s.create('waiting', pinned('203.0.113.40'));
  await s.event('waiting', 'AllocationFailed');
  await s.annotate('mover', pinned('203.0.113.41').annotations);
  await s.has('mover', '203.0.113.41');
  await stays(s, 'waiting');
  await s.annotate('waiting', { touched: 'now' });
  await s.has('waiting', '203.0.113.40');
});

test('families are those of the cluster addresses, and a pin names all of them', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.48/29', '2001:db8:48::/126');
  await s.create('six', { ...from(name), spec: v6 });
  await s.create('four', from(name));
  await s.has('six', '2001:db8:48::');
  await s.has('four', '203.0.113.48');
  await s.create('wrong', { ...pinned('203.0.113.50'), spec: v6 });
  assert.match(await s.event('wrong', 'AllocationFailed'), 'does not match the ipFamily of the service');
  await s.create('half', { ...pinned('203.0.113.50'), spec: dual('PreferDualStack') });
  assert.match(await s.event('half', 'AllocationFailed'), 'does not match the ipFamily of the service');
  await s.create('many', { ...pinned('203.0.113.50', '2001:db8:48::2'), spec: dual('RequireDualStack') });
  // The order is that of their texts, whatever the pin says.
  await s.has('many', '2001:db8:48::2', '203.0.113.50');
  await s.create('preferring', { ...from(name), spec: dual('PreferDualStack') });
  await until('preferring to have both', async () => (await s.get('preferring')).ips.length === 2);
});

test('a pool that is used up keeps Services waiting; what is freed goes to one of them at once', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.56/32');
  await s.create('first', from(name));
  await s.has('first', '203.0.113.56');
  await s.create('second', from(name));
  await s.create('third', from(name));
  await s.event('second', 'AllocationFailed');
  await s.event('third', 'AllocationFailed');
  await stays(s, 'second');
  await s.remove('first');
  const waiting = async (): Promise<number> =>
    [await s.get('second'), await s.get('third')].filter(({ ips }) => ips.length === 0).length;
  await until('one of them to be served', async () => (await waiting()) === 1);
  await settled();
  assert.is(await waiting(), 1);
});

test('two Services with one key share an address: it changes hands, and nobody who waits comes in between', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.57/32');
  const [address, sharing] = ['203.0.113.57', 'metallb.io/allow-shared-ip'];
  await s.create('placeholder', from(name));
  await s.has('placeholder', address);
  await s.create('thief', pinned(address));
  await s.create('web', {
    annotations: { [pinKey]: address, [sharing]: 'web' },
    spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  });
  await s.event('web', 'AllocationFailed');
  await s.annotate('placeholder', { [sharing]: 'web' });
  await s.has('web', address);
  assert.equal((await s.get('placeholder')).ips, [address], 'it never let go');
  await s.remove('placeholder');
  // A key that goes before MetalLB has seen that the placeholder is gone costs the address.
  await settled();
  await s.annotate('web', { [sharing]: null });
  await stays(s, 'web', address);
  assert.equal((await s.get('thief')).ips, []);
  await s.remove('web');
  await s.has('thief', address);
});

test('keys of before are read, give way to the new ones, and stay', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.64/29');
  const old = {
    'metallb.universe.tf/address-pool': 'no-such-pool',
    'metallb.universe.tf/loadBalancerIPs': '203.0.113.65',
  };
  await s.create('old', { annotations: { 'metallb.universe.tf/loadBalancerIPs': '203.0.113.64' } });
  await s.create('new', { annotations: { ...old, [poolKey]: name, [pinKey]: '203.0.113.66' } });
  await s.has('old', '203.0.113.64');
  await s.has('new', '203.0.113.66');
  await s.event('old', 'deprecatedAnnotation');
  await settled();
  const { annotations } = await s.get('new');
  for (const [key, value] of Object.entries(old)) assert.is(annotations[key], value, key);
});

test('a pool that shrinks moves who has no pin, and leaves who has one without an address', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.72/31', '203.0.113.80/31');
  await s.create('free', from(name));
  await s.has('free', '203.0.113.72');
  await s.create('pinned', pinned('203.0.113.73'));
  await s.has('pinned', '203.0.113.73');
  await main.setAddresses(name, ['203.0.113.80/31']);
  await s.has('free', '203.0.113.80');
  await s.has('pinned');
  assert.match(await s.event('pinned', 'ClearAssignment'), 'not allowed by config');
  await main.setAddresses(name, ['203.0.113.72/31', '203.0.113.80/31']);
  await s.has('pinned', '203.0.113.73');
  await main.removePool(name);
  await s.has('free');
  await s.has('pinned');
});

test('after a restart who has an address keeps it before anybody who waits is served', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.88/31');
  await s.create('holder', from(name));
  await s.has('holder', '203.0.113.88');
  await s.annotate('holder', { [poolKey]: null });
  await s.create('other', pinned('203.0.113.89'));
  await s.has('other', '203.0.113.89');
  await controller.kill();
  // Allocations that were not carried out, and pins to what is held: all of them are met in one pass.
  for (let n = 0; n < 10; n += 1) await s.create(`a-${n}`, n % 2 === 0 ? from(name) : pinned('203.0.113.88'));
  controller = await main.start();
  for (let n = 0; n < 10; n += 1) await s.event(`a-${n}`, 'AllocationFailed');
  await settled();
  await s.has('holder', '203.0.113.88');
  await s.has('other', '203.0.113.89');
});

test('after a restart a hold without an address, and whoever waits for any, get it by chance', async () => {
  const s = await tenant();
  const name = await pool('203.0.113.90/32');
  await controller.kill();
  await s.create('hold', { annotations: { [poolKey]: name, [pinKey]: '203.0.113.90' } });
  await s.create('allocation', from(name));
  controller = await main.start();
  await until('one of them to have it', async () => {
    const all = [...(await s.get('hold')).ips, ...(await s.get('allocation')).ips];
    return all.join() === '203.0.113.90';
  });
});

test('the model of MetalLB ends up where MetalLB does, after every step of a random history', async () => {
  const s = await tenant();
  const seed = Number(process.env.KEELSON_TEST_SEED ?? '1');
  const history = new History(seededRandom(seed));
  const started = performance.now();
  const met = new Map<string, number>();
  const count = (what: string): void => void met.set(what, (met.get(what) ?? 0) + 1);
  const take = async (step: Step): Promise<void> => {
    const before = history.objects;
    if (step.type !== 'restart') await taken(step, { services: s, metallb: main, controller, objects: before });
    else {
      await controller.kill();
      controller = await main.start();
    }
    const { objects, how } = await agreed({ objects: before, step, look: s.list, settled });
    history.objects = objects;
    count(how);
    count(step.type);
    const own = 'name' in step ? step.name : '';
    for (const line of linesAfter(outcome(before), outcome(history.objects)))
      count(line.startsWith(`${own}: `) ? 'a change of its own' : 'a change of another');
  };
  try {
    for (const step of beginning) await take(step);
    for (let n = 1; n <= 36; n += 1) await take(n === 20 ? { type: 'restart' } : history.next());
  } catch (error) {
    console.error(`seed ${seed}`);
    throw error;
  } finally {
    for (const { kind, metadata } of history.objects)
      if (kind === 'IPAddressPool') await main.removePool(metadata.name ?? '');
  }
  const told = JSON.stringify([...met]);
  for (const [what, least] of [
    ['create', 5],
    ['annotate', 10],
    ['remove', 3],
    ['a change of its own', 10],
    ['a change of another', 4],
    ['first', 35],
  ] as const)
    assert.ok((met.get(what) ?? 0) >= least, `${what}: ${told}`);
  // A model that wakes nobody would be taken for a MetalLB that looks at all of them on its own.
  assert.ok((met.get('again') ?? 0) <= 1, told);
  console.log(`${((performance.now() - started) / 1000).toFixed(1)} s: ${told}`);
});

test('with --lb-class it serves that class alone, and without one those that have none', async () => {
  const s = await tenant();
  const other = await metalLb(server);
  await other.pool('classed', ['198.18.0.0/24'], true);
  const second = await other.start({ lbClass: 'example.com/second' });
  try {
    const of = (loadBalancerClass: string): { spec: { loadBalancerClass: string } } => ({
      spec: { loadBalancerClass },
    });
    await s.create('none');
    await s.create('third', of('example.com/third'));
    await s.create('second', of('example.com/second'));
    await s.has('second', '198.18.0.0');
    assert.match(await s.event('none', 'AllocationFailed'), 'no available IPs');
    await stays(s, 'third');
    await stays(s, 'none');
  } finally {
    await second.kill();
  }
});

test('pools that overlap, unnoticed by a webhook, stop every change; after a restart nothing is allocated at all', async () => {
  const s = await tenant();
  const [fine, late] = [await pool('203.0.113.96/30'), 'overlapping'];
  await s.create('before', from(fine));
  await s.has('before', '203.0.113.96');
  await main.pool(late, ['203.0.113.98/31']);
  await until('the pools to be refused', async () => (await controller.stale()) === true);
  await s.create('old-pool', from(fine));
  await s.has('old-pool', '203.0.113.97');
  await controller.kill();
  await s.create('after', pinned('198.19.0.222'));
  controller = await main.start();
  await until('the pools to be looked at', async () => (await controller.stale()) === true);
  assert.equal((await s.get('after')).ips, []);
  assert.equal((await s.get('before')).ips, ['203.0.113.96']);
  await main.removePool(late);
  await s.has('after', '198.19.0.222');
  await s.has('before', '203.0.113.96');
});

test('the webhook refuses pools that overlap, that are no ranges, or that are elsewhere', () =>
  withWebhook(main, server, async (enabled) => {
    const refused = (what: Promise<unknown>): Promise<string> =>
      what.then(
        () => 'accepted',
        (error: Error) => error.message,
      );
    const elsewhere = await metalLb(server);
    await main.pool('seen', ['203.0.113.104/30']);
    await controller.kill();
    controller = await main.start({ webhook: true });
    await enabled(controller);
    const overlaps = /403.*denied the request: CIDR .* overlaps with already defined CIDR/;
    assert.match(await refused(main.pool('wider', ['203.0.113.104/29'])), overlaps);
    assert.match(await refused(main.setAddresses('seen', ['198.19.0.0/25'])), overlaps);
    assert.match(await refused(main.pool('text', ['web'])), 'invalid CIDR "web"');
    assert.match(await refused(elsewhere.pool('x', ['203.0.113.112/30'])), 'must be created in');
    await main.pool('beside', ['203.0.113.112/30']);
  }));

test.run();
