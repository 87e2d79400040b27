import * as assert from 'uvu/assert';
import { addressAnnotations, addressFinalizers } from '../../constructs/api/addresses.ts';
import { metallbAnnotations, metallbLabels, metallbProvisioner } from '../../constructs/api/metallb.ts';
import { readIP } from '../../constructs/lib/ip.ts';
import { isObject, type JsonObject, objectOf, objectsOf } from '../../constructs/lib/json.ts';
import { driverFinalizer, noPool, placeholderLabels } from '../../executor/addresses/metallb/names.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { phaseOf, refOf } from './addresses-actors.ts';
import type { WorkerWrite } from './addresses-chaos.ts';
import { settings } from './addresses-metallb-bed.ts';
import { ingressOf } from './addresses-metallb-model.ts';
import type { ModelServer } from './addresses-model.ts';

/** Invariants of the driver by their ids, asked of every write of it and of every state of rest. */

const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';
const notes = ({ metadata }: KubeObject): Readonly<Record<string, string>> => metadata.annotations ?? {};
const pinOf = (service: KubeObject): string | undefined => notes(service)[metallbAnnotations.addresses];
const isPlaceholder = ({ metadata }: KubeObject): boolean =>
  metadata.namespace === settings.placeholderNamespace && metadata.labels?.[metallbLabels.placeholder] === 'true';
const addressOf = ({ metadata }: KubeObject): string | undefined => metadata.labels?.[placeholderLabels.address];
const conditionsBut = (object: KubeObject): JsonObject[] =>
  objectsOf(object.status?.conditions).filter(({ type }) => type !== 'Held');
const boundOf = (object: KubeObject): JsonObject | undefined =>
  objectsOf(object.status?.conditions).find(({ type }) => type === 'Bound');
const userOf = (object: KubeObject): string | undefined => {
  const user = object.status?.associatedTo;
  return isObject(user) ? `${user.namespace}/${user.name}` : undefined;
};
const isServed = (server: ModelServer, address: KubeObject): boolean =>
  server.get({ kind: 'IPAddressClass', name: String(address.spec?.className) })?.spec?.provisioner ===
  metallbProvisioner;
const isLeaving = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(addressFinalizers.address) !== true;
const claimOf = (server: ModelServer, address: KubeObject): KubeObject | undefined => {
  const { namespace, name, uid } = refOf(address);
  const claim =
    name === undefined
      ? undefined
      : server.get({ kind: 'IPAddressClaim', namespace: String(namespace), name: String(name) });
  return claim?.metadata.uid === uid ? claim : undefined;
};

/** I3, I4, I5, I10 of one write. */
export function checkDriverWrite(server: ModelServer, { what, before, after }: WorkerWrite): void {
  const object = after ?? before;
  if (object === undefined) return;
  const about = `${what} ${object.kind} ${nameOf(object)}`;
  if (object.kind === 'IPAddressClass' || object.kind === 'IPAddressClaim')
    throw new Error(`I4 ${about}: it is the core's and its owner's`);
  if (object.kind === 'IPAddress') {
    if (before === undefined) checkMade(about, after);
    else checkAddress(server, about, what, before, after);
  } else if (object.kind === 'Service') {
    if (isPlaceholder(object)) checkPlaceholder(server, about, what, before);
    else checkService(about, what, before, after);
  } else assert.ok(what === 'create' || what === 'patch', about);
}

function checkMade(about: string, after: KubeObject | undefined): void {
  assert.equal(after?.metadata.finalizers, [driverFinalizer], about);
  assert.ok(String(objectOf(after?.spec?.claimRef).uid ?? '') !== '', `${about}: made for a claim`);
}

function checkAddress(
  server: ModelServer,
  about: string,
  what: string,
  before: KubeObject,
  after: KubeObject | undefined,
): void {
  if (what === 'delete') {
    assert.is(boundOf(before)?.reason, 'PreBindingRefused', `I5 ${about}`);
    assert.ok(before.metadata.finalizers?.includes(driverFinalizer), `I5 ${about}: not made by us`);
    return;
  }
  if (what === 'patch') {
    const others = (one: KubeObject | undefined) =>
      (one?.metadata.finalizers ?? []).filter((name) => name !== driverFinalizer);
    assert.ok(isLeaving(before), `I4, D8 ${about}: torn down while it is protected`);
    if (after !== undefined) assert.equal(others(after), others(before), `I4 ${about}`);
    const user = server.list('Service').find((one) => `${one.metadata.namespace}/${nameOf(one)}` === userOf(before));
    const mine =
      user !== undefined &&
      notes(user)[metallbAnnotations.pinned] === 'true' &&
      pinOf(user)?.includes(String(before.spec?.address));
    assert.not.ok(mine === true, `H6 ${about}: ${userOf(before)} keeps the pin`);
    return;
  }
  if (after === undefined) return;
  assert.equal([after.spec, after.metadata.finalizers], [before.spec, before.metadata.finalizers], `I4 ${about}`);
  assert.equal(conditionsBut(after), conditionsBut(before), `I4 ${about}`);
  const [was, is] = [phaseOf(before), phaseOf(after)];
  if (was !== is)
    assert.ok(
      [was, is].some((one) => one === 'Conflict' || one === 'Lost'),
      `I4 ${about}: ${was} to ${is}`,
    );
}

/** A reservation is not given up while the ledger has it and nobody uses it. */
function checkPlaceholder(server: ModelServer, about: string, what: string, before: KubeObject | undefined): void {
  if (what !== 'delete' || before === undefined || addressOf(before) === undefined) return;
  const address = server.get({ kind: 'IPAddress', name: addressOf(before) ?? '' });
  if (address === undefined || isLeaving(address) || !isServed(server, address)) return;
  const ip = readIP(String(address.spec?.address))?.text ?? '';
  const twins = server.list('IPAddress').filter((one) => readIP(String(one.spec?.address))?.text === ip);
  if (twins.length > 1 || !ingressOf(before).includes(ip)) return;
  assert.ok(userOf(address), `I9 ${about}: it held ${ip}`);
}

/** I10: of a Service of a tenant the pin and its mark are written, and those by hand are not touched. */
function checkService(
  about: string,
  what: string,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): void {
  assert.is(what, 'patch', about);
  if (before === undefined || after === undefined) return;
  assert.equal(
    [after.spec, after.status, after.metadata.labels],
    [before.spec, before.status, before.metadata.labels],
    about,
  );
  const ours = [
    metallbAnnotations.addresses,
    metallbAnnotations.pinned,
    'metallb.io/address-pool',
    'metallb.drivers.local.sdn.cozystack.io/releasing',
  ];
  const rest = (one: KubeObject) => Object.entries(notes(one)).filter(([key]) => !ours.includes(key));
  assert.equal(rest(after), rest(before), about);
  const pinned = pinOf(before);
  if (pinned !== undefined && pinned !== pinOf(after))
    assert.is(notes(before)[metallbAnnotations.pinned], 'true', `I10 ${about}: a pin by hand`);
  const [pool, next] = [notes(before)['metallb.io/address-pool'], notes(after)['metallb.io/address-pool']];
  if (pool !== next) assert.ok([pool, next].includes(noPool), `${about}: ${pool} to ${next}`);
}

/** I9, and what is true of associations and conflicts, when nothing is left to do. */
export function checkDriverRest(server: ModelServer): void {
  const services = server.list('Service');
  const placeholders = services.filter(isPlaceholder);
  const addresses = server.list('IPAddress');
  for (const address of addresses) {
    const name = nameOf(address);
    const ip = readIP(String(address.spec?.address))?.text;
    const twins = addresses.filter((one) => readIP(String(one.spec?.address))?.text === ip);
    if (isLeaving(address))
      assert.ok(
        !isServed(server, address) || address.metadata.finalizers?.includes(driverFinalizer) !== true,
        `${name} hangs`,
      );
    if (!isServed(server, address) || isLeaving(address) || ip === undefined || twins.length > 1) continue;
    const holds = placeholders.filter((one) => addressOf(one) === name);
    assert.is(holds.length, userOf(address) === undefined ? 1 : 0, `I9 ${name}: ${holds.map(nameOf).join()}`);
    if (holds[0] !== undefined) assert.is(pinOf(holds[0]), ip, `I9 ${name}`);
    checkUse(server, address, ip);
    checkConflict(services, address, ip);
  }
  for (const one of placeholders) checkNeeded(server, one);
  for (const one of services) if (!isPlaceholder(one)) checkGiven(server, one);
  for (const claim of server.list('IPAddressClaim')) checkServed(server, claim);
}

/** Who the ledger says uses an address asks for it, and has the right to. */
function checkUse(server: ModelServer, address: KubeObject, ip: string): void {
  const user = userOf(address);
  if (user === undefined) return;
  const [namespace = '', name = ''] = user.split('/');
  const service = server.get({ kind: 'Service', namespace, name });
  if (service === undefined) throw new Error(`${nameOf(address)}: ${user} is gone`);
  const claim = claimOf(server, address);
  assert.is(notes(service)[addressAnnotations.claim], claim?.metadata.name, `D25, D26 ${nameOf(address)} and ${user}`);
  assert.is(service.spec?.type, 'LoadBalancer', `D28 ${user}`);
  if (claim?.status?.phase === 'Bound')
    assert.ok(pinOf(service)?.split(',').includes(ip), `${user} is not pinned to ${ip}`);
}

function checkConflict(services: readonly KubeObject[], address: KubeObject, ip: string): void {
  const thieves = services.filter(
    (one) =>
      !isPlaceholder(one) &&
      ingressOf(one).includes(ip) &&
      `${one.metadata.namespace}/${nameOf(one)}` !== userOf(address),
  );
  if (phaseOf(address) === 'Lost') return;
  assert.is(
    phaseOf(address) === 'Conflict',
    thieves.length > 0,
    `X1, X2 ${nameOf(address)}: ${thieves.map(nameOf).join()}`,
  );
}

/** Every placeholder is for an address, or for a claim that waits. */
function checkNeeded(server: ModelServer, one: KubeObject): void {
  const address = addressOf(one);
  if (address !== undefined) {
    assert.ok(
      server.get({ kind: 'IPAddress', name: address }),
      `placeholder ${nameOf(one)} of ${address}, which is gone`,
    );
    return;
  }
  const claims = server.list('IPAddressClaim').filter(({ metadata }) => nameOf(one).startsWith(`iad-${metadata.uid}-`));
  assert.ok(
    claims.some((claim) => phaseOf(claim) !== 'Bound'),
    `placeholder ${nameOf(one)} is for nobody`,
  );
}

/** A Service that names a Bound claim and can take its addresses has them, unless another one does. */
function checkGiven(server: ModelServer, service: KubeObject): void {
  const key = `${service.metadata.namespace}/${nameOf(service)}`;
  const name = notes(service)[addressAnnotations.claim];
  const claim = name === undefined ? undefined : server.get({ kind: 'IPAddressClaim', namespace: 'tenant-a', name });
  if (claim?.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp !== undefined) return;
  const has = server.list('IPAddress').filter((one) => refOf(one).uid === claim.metadata.uid);
  const ips = has.map((one) => readIP(String(one.spec?.address))?.text ?? '');
  const families = ips.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4'));
  const wanted = Array.isArray(service.spec?.ipFamilies) ? service.spec.ipFamilies.map(String) : [];
  const fits = wanted.length === families.length && families.every((one) => wanted.includes(one));
  const pin = pinOf(service)?.split(',').sort().join();
  const isFree =
    pin === undefined || pin === [...ips].sort().join() || notes(service)[metallbAnnotations.pinned] === 'true';
  const others = has.some((one) => userOf(one) !== undefined && userOf(one) !== key);
  const asks = (one: KubeObject): boolean =>
    !isPlaceholder(one) &&
    one !== service &&
    one.spec?.type === 'LoadBalancer' &&
    notes(one)[addressAnnotations.claim] !== name &&
    ips.some((ip) => pinOf(one)?.split(',').includes(ip));
  if (server.list('Service').some(asks)) return;
  if (!fits || !isFree || others || !has.every((one) => isServed(server, one) && !isLeaving(one))) return;
  if (service.spec?.type !== 'LoadBalancer' || notes(service)['metallb.io/address-pool'] !== undefined) return;
  assert.equal(
    has.map(userOf),
    has.map(() => key),
    `S1 ${key} waits for ${ips.join()}`,
  );
}

/** No claim waits beside an address that MetalLB would give. */
function checkServed(server: ModelServer, claim: KubeObject): void {
  const { className, phase } = claim.status ?? {};
  if (phase !== 'Pending' || claim.spec?.addressName !== undefined) return;
  if (notes(claim)[addressAnnotations.provisioner] !== metallbProvisioner) return;
  const found = server.get({ kind: 'IPAddressClass', name: String(className) });
  const resolved = objectsOf(claim.status?.conditions).find(({ type }) => type === 'ClassResolved')?.status === 'True';
  const pool = server.get({ kind: 'IPAddressPool', namespace: settings.metallbNamespace, name: `iad-${className}` });
  if (found === undefined || found.metadata.deletionTimestamp !== undefined || !resolved || pool === undefined) return;
  const has = server
    .list('IPAddress')
    .filter(
      (one) => refOf(one).name === nameOf(claim) && ['', claim.metadata.uid].includes(String(refOf(one).uid ?? '')),
    )
    .map((one) => (String(one.spec?.address).includes(':') ? 'IPv6' : 'IPv4'));
  const wanted = claim.spec?.family === 'Dual' ? ['IPv4', 'IPv6'] : [String(claim.spec?.family)];
  for (const family of wanted.filter((one) => !has.includes(one as 'IPv4'))) {
    const given = new Set(server.list('Service').flatMap(ingressOf));
    const left = addressesOf(pool, family).filter((ip) => !given.has(ip));
    assert.equal(left, [], `claim ${nameOf(claim)} waits for ${family} beside ${left.join()}`);
  }
}

function addressesOf(pool: KubeObject, family: string): string[] {
  const networks = Array.isArray(pool.spec?.addresses) ? pool.spec.addresses.map(String) : [];
  return networks.flatMap((network) => {
    const [base = '', bits = ''] = network.split('/');
    const start = readIP(base);
    if (start === undefined || start.family !== family) return [];
    const count = 2 ** ((family === 'IPv4' ? 32 : 128) - Number(bits));
    const prefix = family === 'IPv4' ? '203.0.113.' : '2001:db8::';
    const offset = Number(start.value & 0xffn);
    return Array.from(
      { length: count },
      (_, n) => readIP(`${prefix}${family === 'IPv4' ? offset + n : (offset + n).toString(16)}`)?.text ?? '',
    );
  });
}
