/** The core as a worker of role `addresses`. */

import type { Registry } from 'prom-client';
import { addressLeases } from '../../../constructs/api/addresses.ts';
import { LedgerStore } from '../ledger.ts';
import type { LedgerKind } from '../objects.ts';
import type { LedgerEvent } from '../plan.ts';
import type { AddressWorker } from '../role.ts';
import { eventTeller } from '../tell-events.ts';
import { runLedger } from '../worker.ts';
import { coreControllers } from './controllers.ts';
import { coreMetrics } from './metrics.ts';

/** Who reports about which kind, as its Events say. */
const reporters: Readonly<Record<LedgerKind, string>> = {
  IPAddress: 'ipaddress-controller',
  IPAddressClaim: 'ipaddressclaim-controller',
  IPAddressClass: 'ipaddressclass-controller',
};

/** The core, reporting to a registry of its process. */
export function coreWorker(registry: Registry, now: () => number): AddressWorker {
  const metrics = coreMetrics(registry, now);
  return {
    name: 'core',
    lease: addressLeases.core,
    async run(parts, signal) {
      const events = eventTeller(parts, reporters);
      const telling = events.run(signal);
      const tell = (event: LedgerEvent): void => {
        metrics.told(event);
        events.tell(event);
      };
      const onReady = (ledger: LedgerStore): void => {
        metrics.ready(ledger);
        parts.log('info', 'core: every kind is listed');
      };
      const ledger = new LedgerStore(parts.shared.read);
      try {
        await runLedger(
          { ...parts, ledger, controllers: coreControllers, tell, onReady, onPass: metrics.passed },
          signal,
        );
      } finally {
        metrics.end();
      }
      await telling;
    },
  };
}
