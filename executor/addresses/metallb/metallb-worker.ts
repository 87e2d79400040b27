/** The driver for MetalLB as a worker of role `addresses`. */
import type { Registry } from 'prom-client';
import { addressLeases } from '../../../constructs/api/addresses.ts';
import type { Selection } from '../../kube/verbs/list.ts';
import type { AddressWorker } from '../role.ts';
import { eventTeller } from '../tell-events.ts';
import { runLedger } from '../worker.ts';
import { metallbControllers } from './controllers.ts';
import { kept } from './kept.ts';
import { MetallbLedger } from './ledger.ts';
import { driverMetrics } from './metrics.ts';
import { type MetallbSettings, metallbVersion } from './names.ts';
import type { Told } from './tell.ts';
import type { AnyView } from './views.ts';

/** Who reports about which kind, as its Events say. */
const reporters = {
  IPAddress: 'iad-ipaddress-controller',
  IPAddressClaim: 'iad-claim-controller',
  IPAddressClass: 'iad-class-controller',
  Service: 'iad-service-controller',
};

const watched = ({ metallbNamespace: namespace }: MetallbSettings): Selection[] => [
  { apiVersion: 'v1', kind: 'Service' },
  { apiVersion: metallbVersion, kind: 'IPAddressPool', namespace },
  { apiVersion: metallbVersion, kind: 'L2Advertisement', namespace },
];

/** The driver, reporting to a registry of its process. */
export function metallbWorker(registry: Registry, now: () => number, settings: MetallbSettings): AddressWorker {
  const metrics = driverMetrics(registry, now);
  return {
    name: 'driver',
    lease: addressLeases.driver,
    async run(parts, signal) {
      const events = eventTeller<AnyView>(parts, reporters);
      const telling = events.run(signal);
      const tell = (event: Told): void => {
        metrics.told(event);
        events.tell(event);
      };
      const ledger = new MetallbLedger(settings, parts.shared.read);
      const onReady = (): void => {
        metrics.ready(ledger);
        parts.log('info', 'driver: every kind is listed');
      };
      const others = watched(settings);
      try {
        await runLedger(
          {
            ...parts,
            ledger,
            others,
            keep: kept,
            controllers: metallbControllers,
            tell,
            onReady,
            onPass: metrics.passed,
          },
          signal,
        );
      } finally {
        metrics.end();
      }
      await telling;
    },
  };
}
