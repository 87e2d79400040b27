/** The core as a worker of role `addresses`. */

import type { Registry } from 'prom-client';
import { addressesApiVersion, addressLeases } from '../../../constructs/api/addresses.ts';
import { managers } from '../../../constructs/api/constants.ts';
import { EventRecorder } from '../../kube/events.ts';
import { LedgerStore } from '../ledger.ts';
import type { LedgerKind } from '../objects.ts';
import type { LedgerEvent } from '../plan.ts';
import type { AddressWorker, AddressWorkerParts } from '../role.ts';
import { runLedger } from '../worker.ts';
import { coreControllers } from './controllers.ts';
import { coreMetrics } from './metrics.ts';

/** Who reports about which kind, as its Events say. */
const reporters: Readonly<Record<LedgerKind, string>> = {
  IPAddress: 'ipaddress-controller',
  IPAddressClaim: 'ipaddressclaim-controller',
  IPAddressClass: 'ipaddressclass-controller',
};

function recorders(parts: AddressWorkerParts): Readonly<Record<LedgerKind, EventRecorder>> {
  const { client, clock, uniqueId, identity } = parts;
  const recorder = (kind: LedgerKind): EventRecorder =>
    new EventRecorder({
      client,
      clock,
      uniqueId,
      reportingController: reporters[kind],
      reportingInstance: identity,
      fieldManager: managers.addresses,
    });
  return {
    IPAddress: recorder('IPAddress'),
    IPAddressClaim: recorder('IPAddressClaim'),
    IPAddressClass: recorder('IPAddressClass'),
  };
}

/** The core, reporting to a registry of its process. */
export function coreWorker(registry: Registry, now: () => number): AddressWorker {
  const metrics = coreMetrics(registry, now);
  return {
    name: 'core',
    lease: addressLeases.core,
    async run(parts, signal) {
      const events = recorders(parts);
      const all = Object.values(events);
      const telling = Promise.all(all.map((recorder) => recorder.run(signal)));
      const tell = (event: LedgerEvent): void => {
        metrics.told(event);
        const { about, type, reason, note } = event;
        const { kind, name, uid } = about;
        const namespace = about.kind === 'IPAddressClaim' ? { namespace: about.namespace } : {};
        const regarding = { apiVersion: addressesApiVersion, kind, ...namespace, name, uid };
        events[kind].record({ regarding, type, reason, action: 'Reconcile', note });
      };
      const onReady = (ledger: LedgerStore): void => {
        metrics.ready(ledger);
        parts.log('info', 'core: every kind is listed');
      };
      try {
        await runLedger(
          { ...parts, ledger: new LedgerStore(), controllers: coreControllers, tell, onReady, onPass: metrics.passed },
          signal,
        );
      } finally {
        metrics.end();
      }
      await telling;
      await Promise.all(all.map((recorder) => recorder.flush(1_000)));
    },
  };
}
