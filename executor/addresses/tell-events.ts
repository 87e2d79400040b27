/** Events of a worker of the ledger: one recorder for each kind that they are about, under the name of its controller. */
import { managers } from '../../constructs/api/constants.ts';
import { EventRecorder } from '../kube/events.ts';
import type { View } from './objects.ts';
import type { LedgerEvent } from './plan.ts';
import type { AddressWorkerParts } from './role.ts';

export interface EventTeller<About extends View> {
  tell(event: LedgerEvent<About>): void;
  /** Sends what is told until the signal aborts, and then what is left. */
  run(signal: AbortSignal): Promise<void>;
}

const lastWordsMs = 1_000;

/** @param reporters who reports about which kind, as its Events say. */
export function eventTeller<About extends View>(
  { client, clock, uniqueId, identity }: AddressWorkerParts,
  reporters: Readonly<Record<string, string>>,
): EventTeller<About> {
  const recorders = new Map(
    Object.entries(reporters).map(([kind, reportingController]) => [
      kind,
      new EventRecorder({
        client,
        clock,
        uniqueId,
        reportingController,
        reportingInstance: identity,
        fieldManager: managers.addresses,
      }),
    ]),
  );
  return {
    tell({ about, type, reason, note }) {
      const { object, kind, name, uid, namespace } = about;
      const place = namespace === undefined ? {} : { namespace };
      const regarding = { apiVersion: object.apiVersion, kind, ...place, name, uid };
      recorders.get(kind)?.record({ regarding, type, reason, action: 'Reconcile', note });
    },
    async run(signal) {
      const all = [...recorders.values()];
      await Promise.all(all.map((recorder) => recorder.run(signal)));
      await Promise.all(all.map((recorder) => recorder.flush(lastWordsMs)));
    },
  };
}
