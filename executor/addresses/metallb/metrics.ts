/** Metrics of the driver. No address has a label of its own: who has which one, the ledger tells. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { passMetrics } from '../pass-metrics.ts';
import type { MetallbLedger } from './ledger.ts';
import { isServed, networksOf } from './parameters.ts';
import type { Told } from './tell.ts';
import { serviceKey } from './views.ts';
import type { DriverKey } from './wake.ts';

export interface DriverMetrics {
  /** Every kind was listed; from now on the ledger is counted at every scrape. */
  ready(ledger: MetallbLedger): void;
  passed(key: DriverKey, failed: boolean, seconds: number): void;
  told(event: Told): void;
  /** The term is over: what was counted is of no term any more. */
  end(): void;
}

/** Names that the controllers had in metrics before. */
const controllers: Readonly<Record<string, string>> = {
  IPAddress: 'iad-ipaddress',
  IPAddressClaim: 'iad-claim',
  IPAddressClass: 'iad-class',
  Service: 'iad-service',
};

/** Registers the metrics of the driver; once for a process, however many terms it leads. @param now milliseconds. */
export function driverMetrics(registry: Registry, now: () => number): DriverMetrics {
  const registers = [registry];
  let counted: MetallbLedger | undefined;
  const holds = new Gauge({
    name: 'metallb_iad_holds',
    help: 'placeholders by class and state (held, or pending: MetalLB has not given the address)',
    labelNames: ['class', 'state'],
    registers,
    collect() {
      this.reset();
      for (const view of counted?.every('Service') ?? []) {
        const address = view.kind === 'Service' ? view.placeholder?.address : undefined;
        if (view.kind !== 'Service' || address === undefined) continue;
        const state = view.ingress.length > 0 ? 'held' : 'pending';
        this.inc({ class: counted?.address(address)?.className ?? '', state });
      }
    },
  });
  const capacity = new Gauge({
    name: 'metallb_iad_pool_capacity',
    help: 'addresses in the networks of a class, by family',
    labelNames: ['class', 'family'],
    registers,
    collect() {
      this.reset();
      for (const found of counted?.classes() ?? []) {
        const read = isServed(found) ? networksOf(found) : undefined;
        for (const { family, first, last } of read?.ok === true ? read.networks : [])
          this.inc({ class: found.name, family }, Number(last - first + 1n));
      }
    },
  });
  const passes = passMetrics(registry, 'metallb_iad', controllers);
  const conflicts = new Counter({
    name: 'metallb_iad_conflicts_total',
    help: 'addresses that a Service was found to use without authority',
    registers,
  });
  const handOff = new Histogram({
    name: 'metallb_iad_handoff_seconds',
    help: 'from the pin of a Service, for which a hold was given up, to the address on it',
    buckets: [0.01, 0.05, 0.2, 1, 5, 30],
    registers,
  });
  /** When Services were pinned that do not have their addresses yet. */
  const asking = new Map<string, number>();
  const given = (key: string): void => {
    const since = asking.get(key);
    const service = counted?.service(key);
    if (since === undefined) return;
    if (service?.pinned.every((one) => service.ingress.includes(one)) === false) return;
    asking.delete(key);
    if (service !== undefined) handOff.observe(Math.max(0, now() - since) / 1000);
  };
  return {
    ready(ledger) {
      counted = ledger;
      passes.ready(true);
    },
    passed(key, failed, seconds) {
      passes.passed(key, failed, seconds);
      if (key.startsWith('Service ')) given(key.slice('Service '.length));
    },
    told({ reason, about }) {
      if (reason === 'AddressConflict') conflicts.inc();
      if (about.kind === 'Service' && reason === 'Associated' && about.ingress.length === 0)
        asking.set(serviceKey(about), now());
    },
    end() {
      counted = undefined;
      asking.clear();
      holds.reset();
      capacity.reset();
      passes.ready(false);
    },
  };
}
