import { addressAnnotations as annotations, addressFinalizers as finalizers } from '../../constructs/api/addresses.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { Chaos } from './addresses-chaos.ts';
import { ledgerObject, type ModelServer, provisioner, teardown } from './addresses-model.ts';

/** Tenants, administrators and a driver, each doing at random what each may do. */

export const classNames = ['public', 'private', 'spare'] as const;
/** Small networks, so that they are exhausted now and then. */
export const networks: Readonly<Record<string, readonly string[]>> = {
  public: ['203.0.113.0/29', '2001:db8::/125'],
  private: ['203.0.113.8/29', '2001:db8::8/125'],
  spare: ['203.0.113.16/30'],
};
export const claimNames = Array.from({ length: 20 }, (_, n) => `c${n}`);

export interface Actor {
  readonly server: ModelServer;
  readonly random: () => number;
}

export const pick = <T>({ random }: Pick<Actor, 'random'>, list: readonly T[]): T | undefined =>
  list[Math.floor(random() * list.length)];

export const any = (
  actor: Actor,
  kind: string,
  test: (object: KubeObject) => boolean = () => true,
): KubeObject | undefined => pick(actor, actor.server.list(kind).filter(test));

export const refOf = (object: KubeObject): JsonObject => (isObject(object.spec?.claimRef) ? object.spec.claimRef : {});
export const phaseOf = (object: KubeObject): string => String(object.status?.phase ?? '');
const isDeleting = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;

export function editSpec({ server }: Actor, object: KubeObject | undefined, spec: JsonObject): void {
  if (object === undefined) return;
  const next = Object.fromEntries(
    Object.entries({ ...object.spec, ...spec }).filter(([, value]) => value !== undefined),
  );
  server.update({ ...object, spec: next });
}

export function annotate(
  { server }: Actor,
  object: KubeObject | undefined,
  key: string,
  value: string | undefined,
): void {
  if (object === undefined) return;
  const { [key]: _, ...others } = object.metadata.annotations ?? {};
  server.update({
    ...object,
    metadata: { ...object.metadata, annotations: { ...others, ...(value === undefined ? {} : { [key]: value }) } },
  });
}

export const remove = ({ server }: Actor, object: KubeObject | undefined): void => {
  if (object !== undefined) server.remove(object);
};

const setStatus = ({ server }: Actor, object: KubeObject | undefined, status: JsonObject): void => {
  if (object !== undefined) server.updateStatus(object, { ...object.status, ...status });
};

function freshIP(actor: Actor): string {
  const n = Math.floor(actor.random() * 24);
  return actor.random() < 0.7 ? `203.0.113.${n}` : `2001:db8::${n + 1}`;
}

function makeAddress(actor: Actor, text: string, spec: JsonObject, own: readonly string[]): void {
  const name = `ip-${text.replaceAll(/[.:]/g, '-')}${actor.random() < 0.05 ? '-twin' : ''}`;
  actor.server.create(
    ledgerObject(
      'IPAddress',
      name,
      {
        className: pick(actor, classNames) ?? 'public',
        address: text,
        reclaimPolicy: actor.random() < 0.7 ? 'Retain' : 'Delete',
        source: { fromClass: {} },
        ...spec,
      },
      own.length === 0 ? {} : { finalizers: [...own] },
    ),
  );
}

const makeClass = (actor: Actor): void => {
  const name = pick(actor, classNames) ?? 'public';
  const isDefault = actor.random() < 0.4 ? { annotations: { [annotations.defaultClass]: 'true' } } : {};
  const releaseDelay = pick(actor, [undefined, '0s', '5m', '1h']);
  const spec = {
    provisioner,
    reclaimPolicy: pick(actor, ['Retain', 'Delete']) ?? 'Retain',
    parameters: { addresses: [...(networks[name] ?? [])] },
    ...(releaseDelay === undefined ? {} : { releaseDelay }),
  };
  actor.server.create(ledgerObject('IPAddressClass', name, spec, isDefault));
};

function makeClaim(actor: Actor): void {
  const { random, server } = actor;
  const family = pick(actor, ['IPv4', 'IPv4', 'IPv6', 'Dual']) ?? 'IPv4';
  const wanted = family === 'Dual' || random() < 0.85 ? undefined : any(actor, 'IPAddress')?.metadata.name;
  const spec: JsonObject = { family };
  if (random() < 0.8) spec.className = pick(actor, classNames) ?? 'public';
  if (wanted !== undefined) spec.addressName = wanted;
  server.create(ledgerObject('IPAddressClaim', pick(actor, claimNames) ?? 'c0', spec));
}

export const tenant: readonly ((actor: Actor) => void)[] = [
  makeClaim,
  makeClaim,
  makeClaim,
  (actor) => remove(actor, any(actor, 'IPAddressClaim')),
  (actor) => editSpec(actor, any(actor, 'IPAddressClaim'), { className: pick(actor, classNames) ?? 'public' }),
  (actor) => annotate(actor, any(actor, 'IPAddressClaim'), annotations.provisioner, 'mine'),
  (actor) =>
    annotate(actor, any(actor, 'IPAddressClaim'), annotations.replaceLost, pick(actor, ['true', 'false', undefined])),
];

export const removeClass = (actor: Actor): void => {
  if (actor.random() < 0.3) remove(actor, any(actor, 'IPAddressClass'));
};

export const admin: readonly ((actor: Actor) => void)[] = [
  makeClass,
  removeClass,
  (actor) =>
    editSpec(actor, any(actor, 'IPAddressClass'), { releaseDelay: pick(actor, ['0s', '1m', '2h', undefined]) }),
  (actor) =>
    annotate(actor, any(actor, 'IPAddressClass'), annotations.defaultClass, pick(actor, ['true', 'yes', undefined])),
  (actor) => makeAddress(actor, freshIP(actor), {}, []),
  (actor) => {
    // Adoption: the claim is there, or not yet.
    const claim = any(actor, 'IPAddressClaim');
    const name = claim?.metadata.name ?? pick(actor, claimNames) ?? 'c0';
    makeAddress(actor, freshIP(actor), { claimRef: { namespace: 'tenant-a', name } }, []);
  },
  (actor) => remove(actor, any(actor, 'IPAddress')),
  (actor) =>
    editSpec(
      actor,
      any(actor, 'IPAddress', (one) => phaseOf(one) === 'Released'),
      { claimRef: undefined },
    ),
  (actor) => {
    if (actor.random() < 0.2) editSpec(actor, any(actor, 'IPAddress'), { claimRef: undefined });
  },
  (actor) => {
    const address = any(actor, 'IPAddress', (one) => phaseOf(one) === 'Released');
    if (address !== undefined) editSpec(actor, address, { claimRef: { ...refOf(address), uid: '' } });
  },
  (actor) => annotate(actor, any(actor, 'IPAddress'), annotations.held, pick(actor, ['true', 'false', undefined])),
  (actor) => {
    // The finalizer of a claim is torn off.
    const claim = actor.random() < 0.2 ? any(actor, 'IPAddressClaim', isDeleting) : undefined;
    if (claim !== undefined) actor.server.update({ ...claim, metadata: { ...claim.metadata, finalizers: [] } });
  },
];

/** For a claim that waits: an address of the next family that nothing covers, with the UID of the claim. */
function provide(actor: Actor): void {
  const claim = any(
    actor,
    'IPAddressClaim',
    (one) =>
      one.metadata.annotations?.[annotations.provisioner] === provisioner &&
      !isDeleting(one) &&
      ['', 'Pending'].includes(phaseOf(one)) &&
      one.spec?.addressName === undefined,
  );
  if (claim === undefined) return;
  const { uid = '', name = '' } = claim.metadata;
  const className = String(claim.status?.className ?? claim.spec?.className ?? '');
  const family = claim.spec?.family === 'Dual' ? pick(actor, ['IPv4', 'IPv6']) : claim.spec?.family;
  const text = freshIP(actor);
  // Now and then the driver has not seen yet what the core matched.
  const covered =
    actor.random() < 0.8 &&
    actor.server
      .list('IPAddress')
      .some((one) => refOf(one).uid === uid && String(one.spec?.address).includes(':') === (family === 'IPv6'));
  if (covered || className === '' || text.includes(':') !== (family === 'IPv6')) return;
  makeAddress(actor, text, { className, claimRef: { namespace: 'tenant-a', name, uid } }, [teardown]);
}

const driver: readonly ((actor: Actor) => void)[] = [
  provide,
  provide,
  provide,
  teardownOne,
  (actor) => teardownOne(actor),
  (actor) =>
    setStatus(
      actor,
      any(actor, 'IPAddress', (one) => phaseOf(one) === 'Bound'),
      { phase: 'Conflict' },
    ),
  (actor) =>
    setStatus(
      actor,
      any(actor, 'IPAddress', (one) => phaseOf(one) === 'Bound'),
      { phase: 'Lost' },
    ),
  recover,
  recover,
  (actor) =>
    setStatus(
      actor,
      any(actor, 'IPAddress', (one) => phaseOf(one) === 'Bound'),
      {
        associatedTo: { kind: 'Service', namespace: 'tenant-a', name: 's' },
      },
    ),
  detach,
  detach,
];

/** What a driver made it takes down when nobody protects it any more. */
function teardownOne(actor: Actor): void {
  const address = any(
    actor,
    'IPAddress',
    (one) => isDeleting(one) && one.metadata.finalizers?.includes(finalizers.address) !== true,
  );
  if (address === undefined) return;
  const left = (address.metadata.finalizers ?? []).filter((one) => one !== teardown);
  actor.server.update({ ...address, metadata: { ...address.metadata, finalizers: left } });
}

function recover(actor: Actor): void {
  const address = any(actor, 'IPAddress', (one) => ['Conflict', 'Lost'].includes(phaseOf(one)));
  if (address === undefined) return;
  setStatus(actor, address, { phase: address.spec?.claimRef === undefined ? 'Available' : 'Bound' });
}

function detach(actor: Actor): void {
  const address = any(actor, 'IPAddress', (one) => one.status?.associatedTo !== undefined);
  if (address === undefined) return;
  const { associatedTo: _, ...status } = address.status ?? {};
  actor.server.updateStatus(address, status);
}

/** Somebody does something. */
export function act(
  actor: Actor,
  groups: readonly (readonly ((actor: Actor) => void)[])[] = [tenant, admin, driver],
): void {
  const group = pick(actor, groups) ?? tenant;
  pick(actor, group)?.(actor);
}

/** What a driver owes before everything can be quiet: it hands back, detaches and tears down. */
export async function driverFinishes(chaos: Chaos): Promise<void> {
  const actor: Actor = { server: chaos.server, random: () => 0 };
  const open = (test: (object: KubeObject) => boolean): boolean => chaos.server.list('IPAddress').some(test);
  for (let n = 0; n < 1000; n += 1) {
    if (open((one) => ['Conflict', 'Lost'].includes(phaseOf(one)))) recover(actor);
    else if (open((one) => one.status?.associatedTo !== undefined)) detach(actor);
    else if (open((one) => isDeleting(one) && !(one.metadata.finalizers ?? []).includes(finalizers.address)))
      teardownOne(actor);
    else return;
    await chaos.settle();
  }
  throw new Error('the driver does not come to an end');
}
