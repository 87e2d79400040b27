/** The ledger with Services, pools and advertisements, and the indexes that the planners of the driver ask. */
import { poolName } from '../../../constructs/api/metallb.ts';
import type { IPAddress, IPFamily } from '../../../constructs/lib/ip.ts';
import type { KubeObject } from '../../kube/types.ts';
import { ExtendedLedger } from '../ledger.ts';
import { type AddressView, claimKey, keyParts, type LedgerView } from '../objects.ts';
import { ViewIndex } from '../view-index.ts';
import type { MetallbSettings } from './names.ts';
import { Networks } from './networks.ts';
import { type AnyView, type DriverView, type RenderedView, readDriverObject, type ServiceView } from './views.ts';

export class MetallbLedger extends ExtendedLedger<DriverView> {
  readonly settings: MetallbSettings;
  /** Placeholders by the IPAddress, and by the claim, that they are for. */
  readonly #byAddress = new ViewIndex<ServiceView>();
  readonly #byClaim = new ViewIndex<ServiceView>();
  /** Placeholders that wait for MetalLB to choose, by pool and family. */
  readonly #choosing = new ViewIndex<ServiceView>();
  /** Placeholders that have an address and were made for a claim, by pool. */
  readonly #chosen = new ViewIndex<ServiceView>();
  /** Services, placeholders among them, by the addresses that they have, and by those that they ask for. */
  readonly #byIngress = new ViewIndex<ServiceView>();
  readonly #asking = new ViewIndex<ServiceView>();
  /** Services of others by the claim that they name. */
  readonly #naming = new ViewIndex<ServiceView>();
  readonly #rendered = new Map<string, RenderedView>();
  /** Addresses by the Service that uses them. */
  readonly #usedBy = new ViewIndex<AddressView>();
  /** Of the classes as they are; undefined when one has changed. */
  #networks: Networks | undefined;

  constructor(settings: MetallbSettings, read?: (object: KubeObject) => LedgerView | undefined) {
    super(read);
    this.settings = settings;
  }

  service = (key: string): ServiceView | undefined => {
    const found = this.find({ kind: 'Service', ...keyParts(key) });
    return found?.kind === 'Service' ? found : undefined;
  };
  placeholdersOf = (address: string): ServiceView[] => [...this.#byAddress.get(address)];
  placeholdersFor = (claim: string): ServiceView[] => [...this.#byClaim.get(claim)];
  /** How many placeholders wait for MetalLB to choose an address of a family from the pool of a class. */
  choosing = (className: string, family: IPFamily): number => this.#choosing.size(`${poolName(className)} ${family}`);
  /** Placeholders to which MetalLB gave an address of the pool of a class that is not recorded yet. */
  unrecordedOf = (className: string): ServiceView[] =>
    [...this.#chosen.get(poolName(className))].filter((one) => this.isUnrecorded(one));
  isUnrecorded = ({ placeholder, ingress }: ServiceView): boolean =>
    placeholder?.claim !== undefined &&
    ingress.length > 0 &&
    (placeholder.address === undefined || this.address(placeholder.address) === undefined);
  holding = (ip: string): ServiceView[] => [...this.#byIngress.get(ip)];
  /** Services that ask for an address, or for any of a pool (`pool <name>`). */
  asking = (what: string): ServiceView[] => [...this.#asking.get(what)];
  naming = (claim: string): ServiceView[] => [...this.#naming.get(claim)];
  usedBy = (service: string): AddressView[] => [...this.#usedBy.get(service)];
  rendered = (kind: RenderedView['kind'], className: string): RenderedView | undefined =>
    this.#rendered.get(`${kind} ${poolName(className)}`);

  /** The class that an address would be of, by its networks. */
  classAt(ip: IPAddress): string | undefined {
    this.#networks ??= new Networks(this.classes());
    return this.#networks.classAt(ip);
  }

  protected override readOther(object: KubeObject): DriverView | undefined {
    return readDriverObject(object, this.settings);
  }

  protected override linkOther(view: AnyView): void {
    if (view.kind === 'IPAddressClass') this.#networks = undefined;
    if (view.kind === 'Service') for (const [index, key] of this.#places(view)) index.add(key, view.key, view);
    if (view.kind === 'IPAddressPool' || view.kind === 'L2Advertisement')
      this.#rendered.set(`${view.kind} ${view.name}`, view);
    if (view.kind === 'IPAddress') for (const key of userOf(view)) this.#usedBy.add(key, view.name, view);
  }

  protected override unlinkOther(view: AnyView): void {
    if (view.kind === 'IPAddressClass') this.#networks = undefined;
    if (view.kind === 'Service') for (const [index, key] of this.#places(view)) index.remove(key, view.key);
    if (view.kind === 'IPAddressPool' || view.kind === 'L2Advertisement')
      this.#rendered.delete(`${view.kind} ${view.name}`);
    if (view.kind === 'IPAddress') for (const key of userOf(view)) this.#usedBy.remove(key, view.name);
  }

  #places(view: ServiceView): [ViewIndex<ServiceView>, string][] {
    const { placeholder, ingress, asks, claim, pool, families } = view;
    const shared = [
      ...ingress.map((ip): [ViewIndex<ServiceView>, string] => [this.#byIngress, ip]),
      ...asks.map((what): [ViewIndex<ServiceView>, string] => [this.#asking, what]),
    ];
    if (placeholder === undefined) return claim === undefined ? shared : [...shared, [this.#naming, claim]];
    const places: [ViewIndex<ServiceView>, string][] = shared;
    if (placeholder.address !== undefined) places.push([this.#byAddress, placeholder.address]);
    else if (ingress.length === 0) places.push([this.#choosing, `${pool} ${families.join()}`]);
    if (placeholder.claim !== undefined) places.push([this.#byClaim, placeholder.claim]);
    if (placeholder.claim !== undefined && ingress.length > 0) places.push([this.#chosen, pool]);
    return places;
  }
}

const userOf = ({ associatedTo }: AddressView): string[] =>
  associatedTo?.kind === 'Service' ? [claimKey(associatedTo)] : [];
