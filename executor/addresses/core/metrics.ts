/** Metrics of the core. No address has a label of its own: who has which one, the ledger tells. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { LedgerStore } from '../ledger.ts';
import type { LedgerView } from '../objects.ts';
import { passMetrics } from '../pass-metrics.ts';
import type { LedgerEvent } from '../plan.ts';
import type { PassKey } from './wake.ts';

export interface CoreMetrics {
  /** Every kind was listed; from now on the ledger is counted at every scrape. */
  ready(ledger: LedgerStore): void;
  passed(key: PassKey, failed: boolean, seconds: number): void;
  told(event: LedgerEvent): void;
  /** The term is over: what was counted is of no term any more. */
  end(): void;
}

/** Names that the controllers had in metrics before. */
const controllers: Readonly<Record<string, string>> = {
  IPAddress: 'ipaddress',
  IPAddressClaim: 'ipaddressclaim',
  IPAddressClass: 'ipaddressclass',
};

/** Why a claim or address was reclaimed, by the Event that tells it. */
const reclaims: Readonly<Record<string, { readonly policy?: string; readonly path: string }>> = {
  AddressReleased: { policy: 'Retain', path: 'claim' },
  AddressDeleted: { policy: 'Delete', path: 'claim' },
  Reclaimed: { path: 'vanished' },
};

const classOf = (view: LedgerView): string => {
  if (view.kind === 'IPAddressClaim') return view.foundClass === '' ? view.className : view.foundClass;
  return view.kind === 'IPAddress' ? view.className : view.name;
};

/** Registers the metrics of the core; once for a process, however many terms it leads. */
export function coreMetrics(registry: Registry, now: () => number): CoreMetrics {
  const registers = [registry];
  let counted: LedgerStore | undefined;
  const addresses = new Gauge({
    name: 'address_controller_addresses',
    help: 'IPAddress objects by class, family and phase',
    labelNames: ['class', 'family', 'phase'],
    registers,
    collect() {
      this.reset();
      for (const view of counted?.every('IPAddress') ?? [])
        if (view.kind === 'IPAddress')
          this.inc({ class: view.className, family: view.ip?.family ?? '', phase: view.phase ?? 'Pending' });
    },
  });
  const claims = new Gauge({
    name: 'address_controller_claims',
    help: 'IPAddressClaim objects by class and phase; those of no class that there is under the empty one',
    labelNames: ['class', 'phase'],
    registers,
    collect() {
      this.reset();
      for (const view of counted?.every('IPAddressClaim') ?? [])
        if (view.kind === 'IPAddressClaim')
          this.inc({ class: counted?.class(classOf(view))?.name ?? '', phase: view.phase ?? 'Pending' });
    },
  });
  const passes = passMetrics(registry, 'address_controller', controllers);
  const binding = new Histogram({
    name: 'address_controller_claim_bind_seconds',
    help: 'from the creation of a claim to Bound, by class',
    labelNames: ['class'],
    buckets: [0.1, 0.5, 1, 5, 30, 120, 600],
    registers,
  });
  const reclaimed = new Counter({
    name: 'address_controller_reclaims_total',
    help: 'addresses whose claim went (path claim), or was found to be gone (path vanished)',
    labelNames: ['class', 'policy', 'path'],
    registers,
  });
  const refused = new Counter({
    name: 'address_controller_prebinding_refused_total',
    help: 'pre-bound addresses that their claim did not take',
    registers,
  });
  return {
    ready(ledger) {
      counted = ledger;
      passes.ready(true);
    },
    passed: passes.passed,
    told({ about, reason }) {
      const reclaim = reclaims[reason];
      const policy = reclaim?.policy ?? (about.kind === 'IPAddress' ? about.reclaimPolicy : '');
      if (reclaim !== undefined) reclaimed.inc({ class: classOf(about), policy, path: reclaim.path });
      if (reason === 'PreBindingRefused') refused.inc();
      if (reason !== 'Bound' || about.kind !== 'IPAddressClaim' || about.phase === 'Lost') return;
      const created = Date.parse(about.object.metadata.creationTimestamp ?? '');
      if (!Number.isNaN(created)) binding.observe({ class: classOf(about) }, Math.max(0, now() - created) / 1000);
    },
    end() {
      counted = undefined;
      addresses.reset();
      claims.reset();
      passes.ready(false);
    },
  };
}
