import { test } from 'uvu';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbLabels } from '../../constructs/api/metallb.ts';
import { isObject, type JsonObject, objectOf } from '../../constructs/lib/json.ts';
import type { LedgerRef } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import { metallbControllers } from '../../executor/addresses/metallb/controllers.ts';
import { MetallbLedger } from '../../executor/addresses/metallb/ledger.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import { isLedgerView } from '../../executor/addresses/objects.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { classSpec, collectGarbage, ingressOf, MetallbModel } from './addresses-metallb-model.ts';
import { ledgerObject } from './addresses-model.ts';
import { ModelBed } from './addresses-model-bed.ts';
import { ModelWorker } from './addresses-model-worker.ts';

export const settings: MetallbSettings = {
  metallbNamespace: 'metallb-system',
  placeholderNamespace: 'metallb-iad-system',
  forcedRelease: 'deleted',
};

/** Core, driver and MetalLB over one model: whoever has something to do does it, until nobody has. */
export class MetallbBed extends ModelBed {
  readonly settings: MetallbSettings;
  readonly metallb: MetallbModel;
  readonly core;
  readonly driver;
  /** Who takes part. */
  readonly runs = { core: true, driver: true, metallb: true };

  constructor(own: Partial<MetallbSettings> = {}, strict = true) {
    super(strict);
    this.settings = { ...settings, ...own };
    this.metallb = new MetallbModel(this.server, this.settings.metallbNamespace, this.settings.lbClass);
    const now = (): number => this.now;
    this.core = new ModelWorker(this.server, now, () => new LedgerStore(), coreControllers);
    this.driver = new ModelWorker(this.server, now, () => new MetallbLedger(this.settings), metallbControllers);
  }

  async settle(limit = 1_000): Promise<void> {
    for (let n = 0; n < limit; n += 1) {
      if (this.runs.driver && (await this.driver.step())) continue;
      if (this.runs.core && (await this.core.step())) continue;
      if (this.runs.metallb && this.metallb.step()) continue;
      if (collectGarbage(this.server)) continue;
      return;
    }
    throw new Error(`it does not settle: ${this.driver.writes.slice(-12).join(', ')}`);
  }

  class(
    addresses: readonly string[] = ['203.0.113.0/29', '2001:db8::/126'],
    more: Record<string, string> = {},
    name = 'public',
  ): void {
    this.make(ledgerObject('IPAddressClass', name, classSpec(addresses, more)));
  }

  claim(name = 'web', spec: JsonObject = {}): KubeObject {
    return this.make(ledgerObject('IPAddressClaim', name, { className: 'public', ...spec }));
  }

  address(name: string, address: string, spec: JsonObject = {}): KubeObject {
    return this.make(
      ledgerObject('IPAddress', name, { className: 'public', address, source: { fromClass: {} }, ...spec }),
    );
  }

  /** A Service of a tenant; `claim` is what it is annotated with. */
  service(
    name: string,
    {
      claim,
      pin,
      spec,
      labels,
    }: { claim?: string; pin?: string; spec?: JsonObject; labels?: Record<string, string> } = {},
  ): KubeObject {
    const annotations = {
      ...(claim === undefined ? {} : { [addressAnnotations.claim]: claim }),
      ...(pin === undefined ? {} : { 'metallb.io/loadBalancerIPs': pin }),
    };
    return this.make({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name,
        namespace: 'tenant-a',
        ...(labels === undefined ? {} : { labels }),
        ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      },
      spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [{ port: 80 }], ...spec },
    });
  }

  ref(kind: string, name: string): LedgerRef {
    if (kind === 'IPAddressClaim' || kind === 'Service') return { kind, namespace: 'tenant-a', name };
    if (kind === 'IPAddressPool' || kind === 'L2Advertisement')
      return { kind, namespace: this.settings.metallbNamespace, name };
    return { kind, name };
  }

  /** Names of placeholders. */
  holds(): string[] {
    return this.placeholders()
      .map(({ metadata }) => metadata.name ?? '')
      .sort();
  }

  placeholders(): KubeObject[] {
    return this.server
      .list('Service')
      .filter(
        ({ metadata }) =>
          metadata.namespace === this.settings.placeholderNamespace &&
          metadata.labels?.[metallbLabels.placeholder] === 'true',
      );
  }

  placeholder(name: string): KubeObject {
    const found = this.server.get({ kind: 'Service', namespace: this.settings.placeholderNamespace, name });
    if (found === undefined) throw new Error(`no placeholder ${name}: ${this.holds().join(', ')}`);
    return found;
  }

  ingress(name: string): string[] {
    return ingressOf(this.live('Service', name));
  }

  pin(name: string): string | undefined {
    return this.live('Service', name).metadata.annotations?.['metallb.io/loadBalancerIPs'];
  }

  marked(name: string): boolean {
    return (
      this.live('Service', name).metadata.annotations?.['metallb.drivers.local.sdn.cozystack.io/pinned'] === 'true'
    );
  }

  user(address: string): string | undefined {
    const user = this.live('IPAddress', address).status?.associatedTo;
    return isObject(user) ? `${user.namespace}/${user.name}` : undefined;
  }

  /** `<status>/<reason>` of a condition of an address. */
  condition(name: string, type: string): string {
    const found = this.conditionOf('IPAddress', name, type);
    return found === undefined ? '' : `${found.status}/${found.reason}`;
  }

  /** The Service names another claim, or none. */
  names(service: string, claim: string | undefined): void {
    this.annotate('Service', service, addressAnnotations.claim, claim);
  }

  claimRef(name: string): JsonObject {
    return objectOf(this.live('IPAddress', name).spec?.claimRef);
  }

  /** Looking at everything again, twice, writes and says nothing. */
  async quiet(): Promise<void> {
    const isOwn = ({ kind }: KubeObject): boolean => kind === 'IPAddressPool' || kind === 'L2Advertisement';
    await this.driver.quiet(this.server.list().filter((one) => !isOwn(one)));
  }

  /** I9: one placeholder pinned to each address that nobody uses, none for the others. */
  checkHolds(): void {
    for (const object of this.server.list('IPAddress')) {
      const view = this.driver.ledger.address(object.metadata.name ?? '');
      if (view === undefined || !isLedgerView(view) || view.deleting || view.ip === undefined) continue;
      const found = this.server.list('IPAddressClass').find(({ metadata }) => metadata.name === view.className);
      if (objectOf(found?.spec).provisioner !== 'metallb.drivers.local.sdn.cozystack.io') continue;
      const ip = view.ip.text;
      const holds = this.placeholders().filter(
        ({ metadata }) => metadata.annotations?.['metallb.io/loadBalancerIPs'] === ip,
      );
      const wanted = view.associatedTo === undefined ? 1 : 0;
      if (holds.length !== wanted) throw new Error(`I9 ${view.name}: ${holds.length} holds, wanted ${wanted}`);
    }
  }
}

/** A test on a bed of its own; after it everything comes to rest, and nothing is left to write or to say. */
export const scenario = (
  name: string,
  run: (bed: MetallbBed) => Promise<void>,
  own: Partial<MetallbSettings> = {},
): void => {
  test(name, async () => {
    const bed = new MetallbBed(own);
    await run(bed);
    await bed.settle();
    bed.checkHolds();
    await bed.quiet();
  });
};

export const one = 'ip-203-0-113-0';
export const ip = '203.0.113.0';

/** Claim `web` has the first address of class `public`. */
export async function provisioned(
  bed: MetallbBed,
  claim: JsonObject = {},
  classMore: Record<string, string> = {},
): Promise<KubeObject> {
  bed.class(undefined, classMore);
  const made = bed.claim('web', claim);
  await bed.settle();
  return made;
}

/** Service `a` uses the address of claim `web`. */
export async function associated(bed: MetallbBed, classMore: Record<string, string> = {}): Promise<void> {
  await provisioned(bed, {}, classMore);
  bed.service('a', { claim: 'web' });
  await bed.settle();
}

/** A free address that a person made, with its hold. */
export async function stock(bed: MetallbBed, name = one, address = ip): Promise<void> {
  bed.class();
  bed.address(name, address);
  await bed.settle();
}
