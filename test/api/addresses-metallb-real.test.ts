// time limit: 120s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { objectsOf } from '../../constructs/lib/json.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { metallbWorker } from '../../executor/addresses/metallb/metallb-worker.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { install, ledgerPlace } from './addresses-bed.ts';
import { type Role, startRole } from './addresses-role.ts';
import { until } from './kubeBed.ts';
import { metalLb, metalLbServer, withWebhook } from './metallb-bed.ts';
import { pinKey, services } from './metallb-services.ts';

/** Core and driver with MetalLB's own controller, under a class of load balancers: from claims to addresses of Services. */

const lbClass = 'example.com/ledger';
const server = await metalLbServer();
const { admin } = server;
const metallb = await metalLb(server);
let controller = await metallb.start({ lbClass });
const tenant = await services(server);
const holdsNamespace = await freshNamespace(admin, 'holds');
const place = ledgerPlace(server, tenant.namespace);
let role: Role | undefined;

test.before(async () => {
  await install(server);
  const settings = {
    metallbNamespace: metallb.namespace,
    placeholderNamespace: holdsNamespace,
    lbClass,
    forcedRelease: 'deleted',
  } as const;
  role = startRole({
    server,
    workers: (registry) => [coreWorker(registry, Date.now), metallbWorker(registry, Date.now, settings)],
    leaseNamespace: tenant.namespace,
  });
});

test.after(async () => {
  await role?.stop();
  await controller.kill();
  await server.stop();
});

const makeClass = (name: string, addresses: readonly string[], reclaimPolicy = 'Retain'): Promise<unknown> =>
  place.create('IPAddressClass', name, {
    provisioner: 'metallb.drivers.local.sdn.cozystack.io',
    reclaimPolicy,
    parameters: { addresses: [...addresses] },
  });
const claim = (name: string, className: string, family = 'IPv4'): Promise<unknown> =>
  place.create('IPAddressClaim', name, { className, family });
const addressesOf = async (name: string): Promise<string[]> => {
  const { status } = (await place.get('IPAddressClaim', name)) ?? {};
  return status?.phase === 'Bound' ? objectsOf(status.addresses).map(({ address }) => String(address)) : [];
};
async function bound(name: string): Promise<string> {
  await until(`claim ${name} to be Bound`, async () => (await addressesOf(name)).length > 0);
  return (await addressesOf(name))[0] ?? '';
}
const phase = async (name: string): Promise<unknown> => (await place.get('IPAddress', name))?.status?.phase;
const nameOf = (ip: string): string => `ip-${ip.replaceAll('.', '-')}`;

/** Addresses that placeholders have. */
const held = async (): Promise<string[]> => {
  const { body } = await admin.expect('GET', `/api/v1/namespaces/${holdsNamespace}/services`);
  return objectsOf(body.items).flatMap((one) => {
    const { status } = one as { status?: { loadBalancer?: { ingress?: unknown } } };
    return objectsOf(status?.loadBalancer?.ingress).map(({ ip }) => String(ip));
  });
};
const isHeld = (ip: string) => async (): Promise<boolean> => (await held()).includes(ip);

const use = (name: string, claimName: string, spec = {}): Promise<void> =>
  tenant.create(name, {
    annotations: { [addressAnnotations.claim]: claimName },
    spec: { loadBalancerClass: lbClass, ports: [{ port: 80 }], ...spec },
  });

test('E1, E2, S4: an address outlives its Services; who pins it meanwhile waits in vain; who keeps it is told', async () => {
  await makeClass('public', ['203.0.113.0/29']);
  await claim('web', 'public');
  const ip = await bound('web');
  assert.is(ip, '203.0.113.0');
  await use('a', 'web');
  await tenant.has('a', ip);
  await until('nobody holds it any more', async () => !(await held()).includes(ip));
  await tenant.remove('a');
  await until('it is held again', isHeld(ip));
  await tenant.create('thief', { annotations: { [pinKey]: ip }, spec: { loadBalancerClass: lbClass } });
  assert.match(await tenant.event('thief', 'AllocationFailed'), 'address also in use by');
  assert.is(await phase(nameOf(ip)), 'Bound');
  await tenant.remove('thief');
  await use('b', 'web');
  await tenant.has('b', ip);
  // Without the annotation MetalLB leaves it the address: nobody else gets it, and it shows.
  await tenant.annotate('b', { [addressAnnotations.claim]: null });
  await until('b is in conflict', async () => (await phase(nameOf(ip))) === 'Conflict');
  await tenant.has('b', ip);
  await tenant.remove('b');
  await until('it is Bound and held', async () => (await phase(nameOf(ip))) === 'Bound' && (await isHeld(ip)()));
});

test('X1, X2: an address does not change hands while somebody waits for it with a pin: MetalLB would serve whoever waits', async () => {
  await claim('prey', 'public');
  const ip = await bound('prey');
  await until('it is held', isHeld(ip));
  await tenant.create('fox', { annotations: { [pinKey]: ip }, spec: { loadBalancerClass: lbClass } });
  await tenant.event('fox', 'AllocationFailed');
  await use('hen', 'prey');
  assert.match(await tenant.event('hen', 'AddressContested'), '/fox');
  assert.equal([(await tenant.get('fox')).ips, (await tenant.get('hen')).ips], [[], []]);
  assert.ok(await isHeld(ip)());
  assert.is(await phase(nameOf(ip)), 'Bound');
  await tenant.remove('fox');
  await tenant.has('hen', ip);
  assert.is(await phase(nameOf(ip)), 'Bound');
});

test('D25: a Service that turns to another claim moves, and what it had is held again', async () => {
  await claim('one', 'public');
  await claim('two', 'public');
  const [one, two] = [await bound('one'), await bound('two')];
  await use('turning', 'one');
  await tenant.has('turning', one);
  await tenant.annotate('turning', { [addressAnnotations.claim]: 'two' });
  await tenant.has('turning', two);
  await until(`${one} is held again`, isHeld(one));
});

test('S12: both families, for a Service that has both', async () => {
  await makeClass('both', ['203.0.113.8/30', '2001:db8:8::/126']);
  await claim('both', 'both', 'Dual');
  await bound('both');
  const ips = (await addressesOf('both')).sort();
  assert.equal(ips, ['2001:db8:8::', '203.0.113.8']);
  await use('both', 'both', { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] });
  await until('it has both', async () => (await tenant.get('both')).ips.sort().join() === ips.join());
  assert.is((await tenant.get('both')).annotations[pinKey], '203.0.113.8,2001:db8:8::');
  await until('nobody holds them', async () => !(await held()).some((ip) => ips.includes(ip)));
});

test('P11: a class that is used up keeps a claim waiting until an address is given back, which wakes it', async () => {
  await makeClass('scarce', ['203.0.113.12/31'], 'Delete');
  for (const name of ['s-0', 's-1']) {
    await claim(name, 'scarce');
    await bound(name);
  }
  await claim('s-2', 'scarce');
  const { items } = (await admin.expect('GET', `/api/v1/namespaces/${holdsNamespace}/events`)).body;
  await until('MetalLB has nothing left', async () => {
    const query = { fieldSelector: 'reason=AllocationFailed' };
    const { body } = await admin.expect('GET', `/api/v1/namespaces/${holdsNamespace}/events`, { query });
    return objectsOf(body.items).length > objectsOf(items).filter(({ reason }) => reason === 'AllocationFailed').length;
  });
  assert.equal(await addressesOf('s-2'), []);
  const given = (await addressesOf('s-0'))[0];
  await place.remove('IPAddressClaim', 's-0');
  assert.is(await bound('s-2'), given);
});

test('D24: an address under Delete is taken off its Service, and another claim gets it', async () => {
  await makeClass('brief', ['203.0.113.14/32'], 'Delete');
  await claim('brief', 'brief');
  const ip = await bound('brief');
  await use('brief', 'brief');
  await tenant.has('brief', ip);
  await claim('next', 'brief');
  await place.remove('IPAddressClaim', 'brief');
  assert.is(await bound('next'), ip);
  await tenant.has('brief');
  await until(`${ip} is held for the next claim`, isHeld(ip));
});

test('E8, D34: MetalLB is away while claims wait and a hold is lost: after it every claim has its own address', async () => {
  await makeClass('away', ['203.0.113.16/30']);
  for (const name of ['kept', 'lost', 'used']) await claim(name, 'away');
  const [kept, lost, used] = [await bound('kept'), await bound('lost'), await bound('used')];
  await use('used', 'used');
  await tenant.has('used', used);
  await until('the others are held', async () => (await isHeld(kept)()) && (await isHeld(lost)()));
  await controller.kill();
  // Its hold has to be given an address anew, and may come after a claim that wants any: there is one more, for two claims.
  const path = `/api/v1/namespaces/${holdsNamespace}/services`;
  const { body } = await admin.expect('GET', path);
  const hold = objectsOf(body.items).find(({ metadata }) =>
    JSON.stringify(metadata).includes(`"metallb.io/loadBalancerIPs":"${lost}"`),
  ) as { metadata: { name: string; uid: string } };
  await admin.expect('DELETE', `${path}/${hold.metadata.name}`);
  await until('there is a new hold', async () => {
    const { body: all } = await admin.expect('GET', path);
    const pins = objectsOf(all.items).map(({ metadata }) => JSON.stringify(metadata));
    return pins.some((one) => one.includes(`loadBalancerIPs":"${lost}"`) && !one.includes(hold.metadata.uid));
  });
  await claim('w-0', 'away');
  await claim('w-1', 'away');
  await until('both claims wait for MetalLB', async () => {
    const { body: all } = await admin.expect('GET', path);
    return (
      objectsOf(all.items).filter(({ metadata }) => /claim-name":"w-[01]"/.test(JSON.stringify(metadata))).length === 2
    );
  });
  controller = await metallb.start({ lbClass });
  await until('one of them is served', async () => {
    const got = [...(await addressesOf('w-0')), ...(await addressesOf('w-1'))];
    return got.length === 1 && ![kept, lost, used].includes(got[0] ?? '');
  });
  await until('what was lost is held again', isHeld(lost));
  assert.equal([await bound('kept'), await bound('lost'), await bound('used')], [kept, lost, used]);
  await tenant.has('used', used);
  assert.ok(await isHeld(kept)());
});

test('R6: a pool that MetalLB refuses is told on the class, and made once it can be', async () => {
  await withWebhook(metallb, server, async (enabled) => {
    await controller.kill();
    await metallb.pool('foreign', ['203.0.113.24/30']);
    controller = await metallb.start({ lbClass, webhook: true });
    await enabled(controller);
    await makeClass('over', ['203.0.113.24/29']);
    const events = `/apis/events.k8s.io/v1/events`;
    await until('the class is told', async () => {
      const { body } = await admin.expect('GET', events);
      return objectsOf(body.items).some(
        (one) => one.reason === 'PoolRefused' && String(one.note).includes('overlaps with already defined CIDR'),
      );
    });
    await metallb.removePool('foreign');
    await claim('over', 'over');
    assert.is(await bound('over'), '203.0.113.24');
  });
});

test.run();
