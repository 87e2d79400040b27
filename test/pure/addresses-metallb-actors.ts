import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbAnnotations } from '../../constructs/api/metallb.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type Actor, annotate, any, claimNames, editSpec, networks, pick, remove } from './addresses-actors.ts';

/** Tenants with Services, administrators with pools, and people with hands. */

const serviceNames = Array.from({ length: 8 }, (_, n) => `s${n}`);
const tenants = (object: KubeObject): boolean => object.metadata.namespace === 'tenant-a';
const anyService = (actor: Actor): KubeObject | undefined => any(actor, 'Service', tenants);
const someIP = ({ random }: Actor): string => {
  const n = Math.floor(random() * 20);
  return random() < 0.8 ? `203.0.113.${n}` : `2001:db8::${n + 1}`;
};

/** A claim that is there mostly. */
const claimed = (actor: Actor): string =>
  (actor.random() < 0.9 ? any(actor, 'IPAddressClaim')?.metadata.name : undefined) ?? pick(actor, claimNames) ?? 'c0';

function makeService(actor: Actor): void {
  const annotations: Record<string, string> = {};
  if (actor.random() < 0.7) annotations[addressAnnotations.claim] = claimed(actor);
  if (actor.random() < 0.15) annotations[metallbAnnotations.addresses] = someIP(actor);
  const spec: JsonObject = {
    type: actor.random() < 0.95 ? 'LoadBalancer' : 'ClusterIP',
    ipFamilies: pick(actor, [['IPv4'], ['IPv4'], ['IPv4'], ['IPv6'], ['IPv4', 'IPv6']]) ?? ['IPv4'],
    ports: [{ port: 80 }],
  };
  const metadata = { name: pick(actor, serviceNames) ?? 's0', namespace: 'tenant-a', annotations };
  actor.server.create({ apiVersion: 'v1', kind: 'Service', metadata, spec });
}

export const serviceActs: readonly ((actor: Actor) => void)[] = [
  makeService,
  makeService,
  makeService,
  (actor) => remove(actor, anyService(actor)),
  (actor) =>
    annotate(actor, anyService(actor), addressAnnotations.claim, actor.random() < 0.3 ? undefined : claimed(actor)),
  (actor) =>
    annotate(actor, anyService(actor), addressAnnotations.claim, actor.random() < 0.3 ? undefined : claimed(actor)),
  (actor) => {
    if (actor.random() < 0.3)
      annotate(actor, anyService(actor), metallbAnnotations.addresses, pick(actor, [undefined, someIP(actor)]));
  },
  (actor) => {
    if (actor.random() < 0.2)
      annotate(actor, anyService(actor), metallbAnnotations.pinned, pick(actor, [undefined, 'true']));
  },
  (actor) => {
    if (actor.random() < 0.2)
      annotate(actor, anyService(actor), 'metallb.io/address-pool', pick(actor, [undefined, 'iad-public', 'other']));
  },
  (actor) => {
    if (actor.random() < 0.3)
      editSpec(actor, anyService(actor), {
        type: pick(actor, ['LoadBalancer', 'LoadBalancer', 'ClusterIP']) ?? 'LoadBalancer',
      });
  },
  // People who touch what is the driver's.
  (actor) => {
    if (actor.random() < 0.3)
      remove(
        actor,
        any(actor, 'Service', (one) => !tenants(one)),
      );
  },
  (actor) => {
    if (actor.random() < 0.2)
      editSpec(actor, any(actor, 'IPAddressPool'), { addresses: ['203.0.113.0/30'], autoAssign: true });
  },
  (actor) => {
    const found = actor.random() < 0.2 ? any(actor, 'IPAddressClass') : undefined;
    const whole = networks[found?.metadata.name ?? ''] ?? [];
    editSpec(actor, found, { parameters: { addresses: actor.random() < 0.7 ? [...whole] : ['203.0.113.20/30'] } });
  },
];
