import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { validateDocument } from '../../constructs/api/validate.ts';
import {
  type AdoptDecision,
  type AdoptPlan,
  type AdoptRequest,
  planAdoption,
} from '../../executor/addressbook/adopt/plan.ts';
import { associated, bothBound, claimSeen } from '../../executor/addressbook/adopt/settled.ts';
import { bookOf } from '../../executor/addressbook/book.ts';
import { readService } from '../../executor/addressbook/pins.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { addressObject, claimObject, classObject, serviceObject } from './addressbook-support.ts';

/** Which adoptions there are, and everything that is in the way of one. */

const pin = 'metallb.io/loadBalancerIPs';
const web = (parts: Parameters<typeof serviceObject>[1] = {}): KubeObject =>
  serviceObject('tenant-a/web', { pins: { [pin]: '203.0.113.7' }, has: ['203.0.113.7'], ...parts });
const range = classObject('public', ['203.0.113.0/29', '2001:db8::/126']);

function decide(objects: readonly KubeObject[], request: Partial<AdoptRequest> = {}): AdoptDecision {
  const services = objects.filter(({ kind }) => kind === 'Service').map(readService);
  return planAdoption({ book: bookOf(objects), services }, { namespace: 'tenant-a', service: 'web', ...request });
}

function planned(objects: readonly KubeObject[], request: Partial<AdoptRequest> = {}): AdoptPlan {
  const decision = decide(objects, request);
  if (decision.type === 'refused') throw new Error(JSON.stringify(decision.problems));
  return decision.plan;
}

function refusals(objects: readonly KubeObject[], request: Partial<AdoptRequest> = {}): string[] {
  const decision = decide(objects, request);
  assert.is(decision.type, 'refused');
  if (decision.type === 'plan') return [];
  for (const { remedy, object } of decision.problems) assert.ok(remedy !== undefined && object !== '', 'a remedy');
  return decision.problems.map(({ reason, message }) => `${reason}: ${message}`);
}

const states = ({ steps }: AdoptPlan): string =>
  steps.map(({ step, write, done }) => `${step} ${done ? 'done' : write}`).join(', ');

test('the claim names the address, the address names the claim, the Service names the claim', () => {
  const plan = planned([range, web()]);
  assert.is(states(plan), 'claim create, address create, service merge');
  const [claim, address, service] = plan.steps.map(({ object }) => object);
  assert.equal(claim?.spec, { className: 'public', family: 'IPv4', addressName: 'ip-203-0-113-7' });
  assert.equal([claim?.metadata.namespace, claim?.metadata.name], ['tenant-a', 'web']);
  assert.is(address?.metadata.name, 'ip-203-0-113-7');
  assert.equal(address?.spec, {
    address: '203.0.113.7',
    className: 'public',
    reclaimPolicy: 'Retain',
    claimRef: { namespace: 'tenant-a', name: 'web' },
    source: { fromClass: {} },
  });
  assert.equal(service?.metadata.annotations, { [addressAnnotations.claim]: 'web' });
  for (const object of [claim, address]) {
    assert.ok(object);
    assert.ok(validateDocument(object).ok, object.kind);
  }
  assert.equal(plan.warnings, []);
});

test('another family, another name for the claim, a pin under the older name', () => {
  const six = planned(
    [range, web({ pins: { 'metallb.universe.tf/loadBalancerIPs': '2001:DB8::2' }, has: ['2001:db8::2'] })],
    {
      claimName: 'six',
      className: 'public',
    },
  );
  const [claim, address, service] = six.steps.map(({ object }) => object);
  assert.equal(claim?.spec, { className: 'public', family: 'IPv6', addressName: 'ip-2001-db8--2' });
  assert.is(address?.spec?.address, '2001:db8::2');
  assert.equal(service?.metadata.annotations, { [addressAnnotations.claim]: 'six' });
  assert.match(six.warnings.join(), /older name/);
});

test('the digest is that of what is adopted, and stays the same while it is carried out', () => {
  const { digest } = planned([range, web()]);
  const claim = claimObject('tenant-a/web', { className: 'public', addressName: 'ip-203-0-113-7' });
  const address = addressObject('ip-203-0-113-7', '203.0.113.7', { claim: 'tenant-a/web' });
  const bound = addressObject('ip-203-0-113-7', '203.0.113.7', { claim: 'tenant-a/web uid-web', phase: 'Conflict' });
  // A former claim of that name had it; who names the address gets it.
  const released = addressObject('ip-203-0-113-7', '203.0.113.7', { claim: 'tenant-a/web', phase: 'Released' });
  const annotated = web({ claim: 'web' });
  for (const [objects, wanted] of [
    [[web(), claim], 'claim done, address create, service merge'],
    [[web(), claim, address], 'claim done, address done, service merge'],
    [[web(), claim, bound], 'claim done, address done, service merge'],
    [[annotated, claim, bound], 'claim done, address done, service done'],
    [[web(), claim, released], 'claim done, address done, service merge'],
    // In another order, as a hand may have left it.
    [[annotated], 'claim create, address create, service done'],
    [[web(), address], 'claim create, address done, service merge'],
  ] as const) {
    const plan = planned([range, ...objects]);
    assert.is(states(plan), wanted);
    assert.is(plan.digest, digest, wanted);
  }
  for (const other of [
    planned([range, web({ uid: 'another' })]),
    planned([range, web()], { claimName: 'other' }),
    planned([range, web({ pins: { [pin]: '203.0.113.6' }, has: ['203.0.113.6'] })]),
  ])
    assert.is.not(other.digest, digest);
});

test('an address that is recorded and free is given to the claim, whatever it is called', () => {
  for (const phase of ['Available', 'Conflict', undefined] as const) {
    const parts = phase === undefined ? {} : { phase };
    const plan = planned([
      range,
      web(),
      addressObject('vip-web', '203.0.113.7', { ...parts, spec: { reclaimPolicy: 'Delete' } }),
    ]);
    assert.is(states(plan), 'claim create, address merge, service merge');
    assert.is(plan.addressName, 'vip-web');
    assert.is(plan.steps[0]?.object.spec?.addressName, 'vip-web');
    assert.equal(plan.steps[1]?.object.spec, { claimRef: { namespace: 'tenant-a', name: 'web' } });
    assert.match(plan.warnings.join(), /reclaimPolicy is Delete/);
  }
});

test('a Service that can not be adopted says why, and what to do', () => {
  for (const [service, wanted] of [
    [web({ pins: {} }), /^PinUnusable: it is not pinned to an address$/],
    [web({ pins: { [pin]: '203.0.113.6,2001:db8::2' } }), /^PinUnusable: it is pinned to 2 addresses$/],
    [web({ pins: { [pin]: '010.0.0.1' } }), /^PinUnusable: it is pinned to what is no address$/],
    [
      web({ field: '203.0.113.7' }),
      /^PinUnusable: it is pinned by metallb\.io\/loadBalancerIPs and by spec\.loadBalancerIP/,
    ],
    [web({ pins: {}, field: '203.0.113.7' }), /^PinUnusable: it is pinned by spec\.loadBalancerIP, beside which/],
    [web({ has: [] }), /^PinUnusable: it is pinned to 203\.0\.113\.7 and has no address$/],
    [web({ has: ['203.0.113.6'] }), /^PinUnusable: it is pinned to 203\.0\.113\.7 and has 203\.0\.113\.6$/],
    [web({ type: 'ClusterIP' }), /^ServiceNotAdoptable: it is not of type LoadBalancer$/],
    [web({ deleting: true }), /^ServiceNotAdoptable: it is being deleted$/],
    [web({ claim: 'other' }), /^ServiceNotAdoptable: it takes the addresses of claim other already$/],
    [web({ placeholder: true }), /^ServiceNotAdoptable: it holds an address for the driver$/],
  ] as const)
    assert.match(refusals([range, service]).join('\n'), wanted);
  const decision = decide([range, web({ pins: {} })]);
  assert.match(
    decision.type === 'refused' ? String(decision.problems[0]?.remedy) : '',
    /annotate service web metallb\.io\/loadBalancerIPs=203\.0\.113\.7$/,
  );
  const sharing = serviceObject('tenant-b/mail', { has: ['203.0.113.7'] });
  assert.match(refusals([range, web(), sharing]).join(), /shares 203\.0\.113\.7 with Service tenant-b\/mail/);
  const holding = serviceObject('metallb-iad-system/iad-x', { has: ['203.0.113.7'], placeholder: true });
  assert.is(planned([range, web(), holding]).steps.length, 3);
  assert.match(refusals([range]).join(), /^ServiceNotAdoptable: there is no such Service$/);
});

test('the class must be one of the driver whose ranges hold the address', () => {
  const other = classObject('other', ['198.51.100.0/24'], { provisioner: 'other.example' });
  const twin = classObject('twin', ['203.0.113.0/24']);
  const elsewhere = classObject('elsewhere', ['198.51.100.0/24']);
  const leaving: KubeObject = { ...range, metadata: { ...range.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  for (const [objects, className, wanted] of [
    [
      [elsewhere, other],
      undefined,
      /203\.0\.113\.7 is in the ranges of no class of the driver for MetalLB \(elsewhere\)/,
    ],
    [[], undefined, /of no class of the driver for MetalLB \(none yet\)/],
    [[range, twin], undefined, /in the ranges of several classes: public, twin/],
    [[range], 'nothing', /there is no such class/],
    [[range, other], 'other', /it is of other\.example, which pins no Services/],
    [[range, elsewhere], 'elsewhere', /203\.0\.113\.7 is not in its ranges \(198\.51\.100\.0\/24\)/],
    [[leaving], 'public', /it is being deleted/],
    [[leaving], undefined, /of no class/],
  ] as const)
    assert.match(
      refusals([web(), ...objects], className === undefined ? {} : { className }).join('\n'),
      new RegExp(`^ClassUnusable: .*${wanted.source}`),
    );
  assert.is(planned([range, twin, web()], { className: 'twin' }).className, 'twin');
});

test("an address or a claim that is somebody else's is left alone", () => {
  const at = (parts: Parameters<typeof addressObject>[2], name = 'ip-203-0-113-7', ip = '203.0.113.7'): KubeObject =>
    addressObject(name, ip, parts);
  const claim = claimObject('tenant-a/web', { className: 'public', addressName: 'ip-203-0-113-7' });
  for (const [objects, wanted] of [
    [[at({ claim: 'tenant-b/web u', phase: 'Bound' })], /AddressTaken: it belongs to claim tenant-b\/web/],
    [[at({ phase: 'Lost' })], /AddressTaken: it is Lost/],
    [
      [at({ claim: 'tenant-a/web old', phase: 'Released' })],
      /AddressTaken: it belonged to a claim tenant-a\/web that is gone/,
    ],
    [
      [claim, at({ claim: 'tenant-a/web old', phase: 'Released' })],
      /AddressTaken: it belonged to a claim tenant-a\/web that is gone/,
    ],
    [[at({ className: 'inner', phase: 'Available' })], /AddressTaken: it is of class inner/],
    [[at({ phase: 'Available', service: 'tenant-b/mail' })], /AddressTaken: Service tenant-b\/mail uses it/],
    [[at({}, 'ip-203-0-113-7', '203.0.113.99')], /AddressTaken: its address is 203\.0\.113\.99, not 203\.0\.113\.7/],
    [
      [at({ phase: 'Available' }), at({ phase: 'Pending' }, 'twin')],
      /AddressTaken: 203\.0\.113\.7 is recorded as ip-203-0-113-7 too/,
    ],
    [
      [claimObject('tenant-a/web', { className: 'inner', addressName: 'ip-203-0-113-7' })],
      /ClaimTaken: it is of class inner/,
    ],
    [[claimObject('tenant-a/web')], /ClaimTaken: it names no address/],
    [
      [claimObject('tenant-a/web', { className: 'public', family: 'IPv6', addressName: 'ip-203-0-113-7' })],
      /ClaimTaken: it asks for IPv6/,
    ],
    [
      [
        claimObject(
          'tenant-a/web',
          { className: 'public' },
          { phase: 'Bound', addresses: [{ name: 'ip-203-0-113-2', address: '203.0.113.2' }] },
        ),
      ],
      /ClaimTaken: it names no address\nClaimTaken: it has 203\.0\.113\.2/,
    ],
  ] as const)
    assert.match(refusals([range, web(), ...objects]).join('\n'), wanted);
});

test('everything that is in the way is told at once', () => {
  const found = refusals([
    range,
    web({ claim: 'other', deleting: true, has: ['203.0.113.6'] }),
    addressObject('ip-203-0-113-7', '203.0.113.7', { claim: 'tenant-b/mail u', phase: 'Bound' }),
    claimObject('tenant-a/web', { className: 'inner' }),
  ]);
  assert.equal(
    found.map((one) => one.split(':')[0]),
    ['PinUnusable', 'ServiceNotAdoptable', 'ServiceNotAdoptable', 'AddressTaken', 'ClaimTaken', 'ClaimTaken'],
  );
});

const misses = (missing: string | undefined, wanted: RegExp): void =>
  assert.match(missing ?? 'nothing is missing', wanted);

test('each step is waited for by what it is for', () => {
  const view = (object: KubeObject) => bookOf([object]);
  const [bare] = view(claimObject('tenant-a/web')).claims;
  const seen = claimObject('tenant-a/web');
  const [protectedClaim] = view({
    ...seen,
    metadata: { ...seen.metadata, finalizers: ['local.sdn.cozystack.io/claim-protection'] },
  }).claims;
  misses(claimSeen(undefined), /not there/);
  misses(claimSeen(bare), /no core has looked/);
  assert.is(claimSeen(protectedClaim), undefined);
  const [claim] = view(
    claimObject(
      'tenant-a/web',
      {},
      { phase: 'Bound', addresses: [{ name: 'ip-203-0-113-7', address: '203.0.113.7' }] },
    ),
  ).claims;
  const address = (parts: Parameters<typeof addressObject>[2]) =>
    view(addressObject('ip-203-0-113-7', '203.0.113.7', parts)).addresses[0];
  const taken = { claim: 'tenant-a/web uid-web' };
  assert.is(bothBound(claim, address({ ...taken, phase: 'Bound' })), undefined);
  assert.is(bothBound(claim, address({ ...taken, phase: 'Conflict' })), undefined);
  misses(bothBound(claim, undefined), /the address is not there/);
  misses(bothBound(undefined, address({})), /the claim is not there/);
  misses(
    bothBound(claim, address({ ...taken, phase: 'Pending', bound: ['False', 'PreBindingRefused', 0] })),
    /PreBindingRefused/,
  );
  misses(bothBound(claim, address({ claim: 'tenant-a/web', phase: 'Bound' })), /the claim is Bound, the address Bound/);
  misses(bothBound(bare, address({ ...taken, phase: 'Bound' })), /the claim is Pending/);
  const ip = claim === undefined ? undefined : address({})?.ip;
  assert.ok(ip);
  const service = readService(web());
  misses(associated(address({ phase: 'Bound' }), service, ip), /no driver has recorded/);
  misses(associated(address({ phase: 'Bound', service: 'tenant-b/mail' }), service, ip), /tenant-b\/mail is recorded/);
  misses(associated(address({ phase: 'Conflict', service: 'tenant-a/web' }), service, ip), /is Conflict/);
  misses(
    associated(address({ phase: 'Bound', service: 'tenant-a/web' }), readService(web({ has: [] })), ip),
    /has not 203/,
  );
  misses(associated(undefined, service, ip), /the address is not there/);
  assert.is(associated(address({ phase: 'Bound', service: 'tenant-a/web' }), service, ip), undefined);
});

test.run();
