/**
 * What it takes to bring the Services of MetalLB under the ledger: a class for each pool, for Git, and for each Service what has
 * to be done in which order. Pure, and only a proposal: nothing of it is written.
 */
import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import { metallbProvisioner, poolName } from '../../../constructs/api/metallb.ts';
import { blocksOverlap, holdsIP, type IPAddress } from '../../../constructs/lib/ip.ts';
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { ClassView } from '../../addresses/objects.ts';
import { type Book, rangesOf } from '../book.ts';
import { type BalancedService, fieldPin, hasAddress, serviceName } from '../pins.ts';
import { networksOf } from '../ranges.ts';
import type { Pool } from './pools.ts';

export interface MigrationFacts {
  readonly book: Book;
  readonly pools: readonly Pool[];
  /** Every Service of type LoadBalancer. */
  readonly services: readonly BalancedService[];
}

export interface MigrationStep {
  readonly namespace: string;
  readonly service: string;
  readonly address: string;
  readonly className: string;
  /** How the Service has to be pinned first; absent: it is. */
  readonly pin?: JsonObject;
}

export interface ClassProposal {
  readonly className: string;
  readonly pool: { readonly namespace: string; readonly name: string };
  /** The class, for Git. */
  readonly document: JsonObject;
  /** What will be different, in words for people. */
  readonly notes: readonly string[];
}

export interface LeftAlone {
  /** What it is about: a Service or a pool. */
  readonly object: string;
  readonly why: string;
}

export interface Migration {
  readonly classes: readonly ClassProposal[];
  readonly steps: readonly MigrationStep[];
  /** What nothing is proposed for. */
  readonly left: readonly LeftAlone[];
  /** Services that name a claim already. */
  readonly done: number;
}

const documentOf = (name: string, pool: Pool): JsonObject => ({
  apiVersion: addressesApiVersion,
  kind: 'IPAddressClass',
  metadata: { name },
  spec: {
    provisioner: metallbProvisioner,
    reclaimPolicy: 'Retain',
    parameters: { addresses: pool.blocks.flatMap(networksOf) },
  },
});

const poolText = ({ namespace, name }: Pool): string => `IPAddressPool ${namespace}/${name}`;

/** Why no class can be proposed for a pool. */
function poolObjection(pool: Pool, classes: readonly ClassView[]): string | undefined {
  if (pool.unread.length > 0) return `its range ${JSON.stringify(pool.unread[0])} can not be read`;
  if (pool.blocks.length === 0) return 'it has no range';
  if (classes.some(({ name }) => name === pool.name)) return `a class ${pool.name} is there already, with other ranges`;
  const rival = classes.find((one) => rangesOf(one).blocks.some((a) => pool.blocks.some((b) => blocksOverlap(a, b))));
  return rival === undefined ? undefined : `class ${rival.name} has some of its addresses, and not all`;
}

/** Pools that the driver has made of classes, or that a class covers. */
const isCovered = (pool: Pool, classes: readonly ClassView[]): boolean =>
  classes.some(
    (one) =>
      pool.name === poolName(one.name) ||
      (pool.blocks.length > 0 &&
        pool.blocks.every(({ family, first, last }) =>
          rangesOf(one).blocks.some((own) => own.family === family && own.first <= first && last <= own.last),
        )),
  );

interface Home {
  readonly className: string;
}

/** The class that an address comes under: one that is there, or one that is proposed. */
function homeOf(ip: IPAddress, classes: readonly ClassView[], pools: readonly Pool[]): Home | undefined {
  const found = classes.find((one) => rangesOf(one).blocks.some((block) => holdsIP(block, ip)));
  const pool = pools.find(({ blocks }) => blocks.some((block) => holdsIP(block, ip)));
  return found !== undefined ? { className: found.name } : pool === undefined ? undefined : { className: pool.name };
}

const pinKey = 'metallb.io/loadBalancerIPs';

/** The one address of a Service, and what pins it to it where nothing does that a driver can keep. */
function addressOf(service: BalancedService): { ip: IPAddress; pin?: JsonObject } | { why: string } | undefined {
  const { pin, has } = service;
  const held = has.map(({ text }) => text).join(', ') || 'no address';
  switch (pin.type) {
    case 'one': {
      if (!hasAddress(service, pin.ip)) return { why: `it is pinned to ${pin.ip.text} and has ${held}` };
      if (pin.where !== fieldPin) return { ip: pin.ip };
      const annotations = { [pinKey]: pin.ip.text };
      return { ip: pin.ip, pin: { metadata: { annotations }, spec: { loadBalancerIP: null } } };
    }
    case 'several':
      return { why: `it is pinned to ${pin.ips.length} addresses` };
    case 'unusable':
      return { why: `it ${pin.why}` };
    case 'none': {
      const [ip, ...more] = has;
      if (ip === undefined) return undefined;
      if (more.length > 0) return { why: `it has ${held}, and a claim that names an address has no second one` };
      return { ip, pin: { metadata: { annotations: { [pinKey]: ip.text } } } };
    }
  }
}

export function proposeMigration({ book, pools, services }: MigrationFacts): Migration {
  const classes = book.classes.filter(({ provisioner, deleting }) => provisioner === metallbProvisioner && !deleting);
  const open = pools.filter((pool) => !isCovered(pool, classes));
  const judged = open.map((pool) => ({ pool, why: poolObjection(pool, classes) }));
  const usable = judged.flatMap(({ pool, why }) => (why === undefined ? [pool] : []));
  const left: LeftAlone[] = judged.flatMap(({ pool, why }) =>
    why === undefined ? [] : [{ object: poolText(pool), why }],
  );
  const steps: MigrationStep[] = [];
  const own = services.filter(
    ({ placeholder, isLoadBalancer, deleting }) => isLoadBalancer && !placeholder && !deleting,
  );
  for (const service of own.filter(({ claim }) => claim === undefined)) {
    const found = addressOf(service);
    if (found === undefined) continue;
    const { namespace, name } = service;
    const object = serviceName(service);
    if ('why' in found) {
      left.push({ object, why: found.why });
      continue;
    }
    const home = homeOf(found.ip, classes, usable);
    const sharers = own.filter((one) => one.uid !== service.uid && hasAddress(one, found.ip));
    // An address that is of no pool of MetalLB's was given by somebody else.
    if (home === undefined && service.pin.type === 'none') continue;
    if (home === undefined)
      left.push({ object, why: `${found.ip.text} is in no class and in no pool that could be one` });
    else if (sharers.length > 0)
      left.push({ object, why: `it shares ${found.ip.text} with ${sharers.map(serviceName).join(', ')}` });
    else {
      const pin = found.pin === undefined ? {} : { pin: found.pin };
      steps.push({ namespace, service: name, address: found.ip.text, className: home.className, ...pin });
    }
  }
  return {
    classes: usable.map((pool) => ({
      className: pool.name,
      pool: { namespace: pool.namespace, name: pool.name },
      document: documentOf(pool.name, pool),
      notes: pool.notes,
    })),
    steps: steps.toSorted((a, b) => (`${a.namespace}/${a.service}` < `${b.namespace}/${b.service}` ? -1 : 1)),
    left: left.toSorted((a, b) => (a.object < b.object ? -1 : 1)),
    done: own.filter(({ claim }) => claim !== undefined).length,
  };
}
