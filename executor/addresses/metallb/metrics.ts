/** Metrics of the driver. No address has a label of its own: who has which one, the ledger tells. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { MetallbLedger } from './ledger.ts';
import { isServed, networksOf } from './parameters.ts';
import type { Told } from './tell.ts';
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

/** Registers the metrics of the driver; once for a process, however many terms it leads. */
export function driverMetrics(registry: Registry): DriverMetrics {
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
  const ready = new Gauge({
    name: 'metallb_iad_ready',
    help: '1 while this process leads and has listed every kind',
    registers,
  });
  const passes = new Histogram({
    name: 'metallb_iad_pass_seconds',
    help: 'passes by controller and result',
    labelNames: ['controller', 'result'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
    registers,
  });
  const conflicts = new Counter({
    name: 'metallb_iad_conflicts_total',
    help: 'addresses that a Service was found to use without authority',
    registers,
  });
  return {
    ready(ledger) {
      counted = ledger;
      ready.set(1);
    },
    passed(key, failed, seconds) {
      const controller = controllers[key.slice(0, key.indexOf(' '))] ?? '';
      passes.observe({ controller, result: failed ? 'error' : 'success' }, seconds);
    },
    told({ reason }) {
      if (reason === 'AddressConflict') conflicts.inc();
    },
    end() {
      counted = undefined;
      holds.reset();
      capacity.reset();
      ready.set(0);
    },
  };
}
