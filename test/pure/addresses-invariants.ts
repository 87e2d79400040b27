import * as assert from 'uvu/assert';
import { addressAnnotations as annotations, addressFinalizers as finalizers } from '../../constructs/api/addresses.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { readIP } from '../../constructs/lib/ip.ts';
import { deepEqual, isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { phaseOf, refOf } from './addresses-actors.ts';
import type { Chaos, WorkerWrite } from './addresses-chaos.ts';
import type { ModelServer } from './addresses-model.ts';

/** Invariants of the ledger by their ids, asked of every write of the core and of every state. */

const conditionsOf = ({ status }: KubeObject): JsonObject[] =>
  Array.isArray(status?.conditions) ? status.conditions.filter(isObject) : [];
const bound = (object: KubeObject): JsonObject | undefined => conditionsOf(object).find(({ type }) => type === 'Bound');
const nameOf = (object: KubeObject): string => object.metadata.name ?? '';
const familyOf = (object: KubeObject): string => readIP(String(object.spec?.address))?.family ?? '';

const claimOf = (server: ModelServer, address: KubeObject): KubeObject | undefined => {
  const { namespace, name } = refOf(address);
  if (typeof name !== 'string') return undefined;
  return server.get({ kind: 'IPAddressClaim', namespace: String(namespace), name });
};

const mayReplace = (claim: KubeObject): boolean => claim.metadata.annotations?.[annotations.replaceLost] === 'true';

/** The live claim that has the address; one that is lost has none if the claim lets it be replaced. */
function holder(server: ModelServer, address: KubeObject): KubeObject | undefined {
  const claim = claimOf(server, address);
  const lives = claim !== undefined && claim.metadata.deletionTimestamp === undefined;
  if (lives && phaseOf(address) === 'Lost' && mayReplace(claim)) return undefined;
  return lives && refOf(address).uid === claim.metadata.uid && bound(address)?.status === 'True' ? claim : undefined;
}

const own = new Set<string>(Object.values(finalizers));

/** I3, I4, I5, I7, I8, of one write. */
export function checkWrite(server: ModelServer, now: number, { what, before, after }: WorkerWrite): void {
  if (before === undefined) throw new Error(`I3: the core made ${after?.kind}`);
  const about = `${what} ${before.kind} ${nameOf(before)}`;
  assert.ok(['IPAddressClass', 'IPAddress', 'IPAddressClaim'].includes(before.kind), `I3 ${about}`);
  const foreign = (object: KubeObject | undefined): string[] =>
    (object?.metadata.finalizers ?? []).filter((one) => !own.has(one));
  if (after !== undefined) assert.equal(foreign(after), foreign(before), `finalizers of others: ${about}`);
  if (before.kind === 'IPAddressClass') {
    assert.ok(what === 'patch' && deepEqual(before.spec, (after ?? before).spec), `I7 ${about}`);
    return;
  }
  if (before.kind !== 'IPAddress') {
    if (after !== undefined) assert.equal(after.spec, before.spec, `the spec of a claim is its owner's: ${about}`);
    return;
  }
  const held = holder(server, before);
  const reclaimed = what === 'delete' || (phaseOf(after ?? before) === 'Released' && phaseOf(before) !== 'Released');
  const named = claimOf(server, before);
  const lives = named !== undefined && named.metadata.deletionTimestamp === undefined;
  if (reclaimed && lives && phaseOf(before) !== 'Lost' && bound(before)?.reason !== 'Released')
    assert.is.not(refOf(before).uid, named.metadata.uid, `I5 ${about}: reclaimed under a live claim`);
  if (what === 'delete') assert.is(held, undefined, `I5 ${about}`);
  if (after === undefined) {
    assert.is(held, undefined, `I5 ${about}`);
    return;
  }
  checkAddress(server, now, about, before, after, held);
}

function checkAddress(
  server: ModelServer,
  now: number,
  about: string,
  before: KubeObject,
  after: KubeObject,
  held: KubeObject | undefined,
): void {
  const { claimRef: ref, ...spec } = before.spec ?? {};
  const { claimRef: next, ...rest } = after.spec ?? {};
  assert.equal(rest, spec, `I5, I7 ${about}: nothing of a spec but claimRef`);
  if (held !== undefined) assert.equal(next, ref, `I5 ${about}`);
  if (isObject(ref) && isObject(next)) {
    assert.equal([next.namespace, next.name], [ref.namespace, ref.name], `D13 ${about}`);
    assert.ok((ref.uid ?? '') === '' || ref.uid === next.uid, `D13 ${about}`);
  }
  if (isObject(ref) && next === undefined) checkReturn(server, now, about, before);
  const [was, is] = [phaseOf(before), phaseOf(after)];
  for (const phase of ['Conflict', 'Lost']) if (was === phase || is === phase) assert.is(is, was, `I4 ${about}`);
  assert.equal(after.status?.associatedTo, before.status?.associatedTo, `I4 ${about}`);
  if (is === 'Released' && was !== is) assert.ok(isObject(next), `I8 ${about}`);
}

/** I8: the core takes a claimRef away when the delay of the class is over, and for no other reason. */
function checkReturn(server: ModelServer, now: number, about: string, address: KubeObject): void {
  assert.is(phaseOf(address), 'Released', `I8 ${about}`);
  assert.is.not(address.metadata.annotations?.[annotations.held], 'true', `I8 ${about}`);
  assert.is(address.status?.associatedTo, undefined, `I8 ${about}`);
  const since = Date.parse(String(bound(address)?.lastTransitionTime));
  const delays = server.log
    .filter(({ object }) => object.kind === 'IPAddressClass' && nameOf(object) === address.spec?.className)
    .flatMap(({ object }) => (typeof object.spec?.releaseDelay === 'string' ? [object.spec.releaseDelay] : []));
  // The class may have changed while the write was on its way: it was over by one of its delays.
  assert.ok(
    delays.some((delay) => now - since >= parseDuration(delay)),
    `I8 ${about}: ${now - since} ms of ${delays.join(', ')}`,
  );
}

/** I2, of a state. */
export function checkState(server: ModelServer): void {
  const seen = new Map<string, string>();
  for (const address of server.list('IPAddress')) {
    const claim = holder(server, address);
    if (claim === undefined || phaseOf(address) === 'Lost') continue;
    const key = `${claim.metadata.uid} ${familyOf(address)}`;
    assert.is(seen.get(key), undefined, `I2 ${seen.get(key)} and ${nameOf(address)} for ${nameOf(claim)}`);
    seen.set(key, nameOf(address));
  }
}

const requested = (claim: KubeObject): string[] =>
  claim.spec?.family === 'Dual' ? ['IPv4', 'IPv6'] : [String(claim.spec?.family)];

/** I11 at rest: looking at everything twice writes and says nothing. */
export async function checkQuiet(chaos: Chaos): Promise<void> {
  // A process says once what holds; from then on only what changes.
  chaos.wakeAll();
  await chaos.settle();
  const [writes, events] = [chaos.writes, chaos.events];
  for (let n = 0; n < 2; n += 1) {
    chaos.wakeAll();
    await chaos.settle();
  }
  assert.equal([chaos.writes, chaos.events], [writes, events], 'I11');
}

/** At rest other processes find nothing to do: nothing was in memory alone. */
export async function checkSuccessors(chaos: Chaos): Promise<void> {
  const { writes } = chaos;
  chaos.restart();
  await chaos.settle();
  assert.is(chaos.writes, writes, 'another process writes');
}

/** What a claim shows; I1 says that it is what the ledger holds. */
export const shown = (claim: KubeObject): string[] =>
  Array.isArray(claim.status?.addresses) ? claim.status.addresses.filter(isObject).map((one) => String(one.name)) : [];

/** What holds when nothing is left to do. */
export function checkRest(server: ModelServer): void {
  checkState(server);
  const addresses = server.list('IPAddress');
  for (const claim of server.list('IPAddressClaim')) {
    const name = nameOf(claim);
    assert.is(claim.metadata.deletionTimestamp, undefined, `claim ${name} hangs`);
    // While a driver has the phase, the condition waits: what the claim shows is what it took.
    const isTaken = (one: KubeObject): boolean =>
      bound(one)?.status === 'True' ||
      (['Conflict', 'Lost'].includes(phaseOf(one)) &&
        bound(one)?.reason !== 'Released' &&
        shown(claim).includes(nameOf(one)));
    const has = addresses.filter((one) => refOf(one).uid === claim.metadata.uid && isTaken(one));
    assert.equal(shown(claim), has.map(nameOf).sort(), `I1 claim ${name}`);
    const covered = requested(claim).every((family) =>
      has.some((one) => familyOf(one) === family && phaseOf(one) !== 'Lost'),
    );
    assert.is(phaseOf(claim) === 'Bound', covered, `phase of claim ${name}`);
    checkServed(server, claim, has);
  }
  for (const address of addresses) checkAtRest(server, address);
  for (const found of server.list('IPAddressClass')) {
    if (found.metadata.deletionTimestamp === undefined) continue;
    assert.ok(
      addresses.some((one) => one.spec?.className === nameOf(found)),
      `class ${nameOf(found)} hangs`,
    );
  }
}

/** No claim waits beside a free address that fits. */
function checkServed(server: ModelServer, claim: KubeObject, has: readonly KubeObject[]): void {
  if (
    phaseOf(claim) !== 'Pending' ||
    conditionsOf(claim).find(({ type }) => type === 'ClassResolved')?.status !== 'True'
  )
    return;
  const missing = requested(claim).filter((family) => !has.some((one) => familyOf(one) === family));
  const wanted = claim.spec?.addressName;
  for (const address of server.list('IPAddress')) {
    const fits =
      phaseOf(address) === 'Available' &&
      address.spec?.claimRef === undefined &&
      address.metadata.deletionTimestamp === undefined &&
      address.spec?.className === claim.status?.className &&
      missing.includes(familyOf(address)) &&
      (wanted === undefined || wanted === '' || wanted === nameOf(address));
    assert.not.ok(fits, `claim ${nameOf(claim)} waits beside ${nameOf(address)}`);
  }
}

function checkAtRest(server: ModelServer, address: KubeObject): void {
  const name = nameOf(address);
  const phase = phaseOf(address);
  const drivers = phase === 'Conflict' || phase === 'Lost';
  const claim = claimOf(server, address);
  const uid = String(refOf(address).uid ?? '');
  if (address.metadata.deletionTimestamp !== undefined) {
    const waits = (address.metadata.finalizers ?? []).some((one) => !own.has(one));
    // A claim has a lost address until another one takes its place.
    const isLost = phase === 'Lost' && claim?.metadata.uid === uid;
    assert.ok(waits || isLost || holder(server, address) !== undefined, `address ${name} hangs`);
    return;
  }
  if (address.spec?.claimRef === undefined) {
    assert.ok(drivers || ['Available', 'Pending'].includes(phase), `free address ${name} is ${phase}`);
    return;
  }
  if (claim === undefined || (uid !== '' && uid !== claim.metadata.uid)) {
    assert.ok(drivers || phase === 'Released', `address ${name} of a claim that is gone is ${phase}`);
    assert.is(bound(address)?.reason, 'Released', `D10 address ${name}`);
    return;
  }
  if (bound(address)?.status === 'True') assert.ok(drivers || phase === 'Bound', `address ${name} is ${phase}`);
  else assert.ok(drivers || ['Pending', 'Released'].includes(phase), `refused address ${name} is ${phase}`);
}
