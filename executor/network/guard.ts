/** The right to write objects of an installation: its Lease, and for central the central Lease as well, in that order. */
import { leaseNames, managers } from '../../constructs/api/constants.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { acquireInOrder } from '../lease/operation.ts';
import type { LeaseTimings } from '../lease/timings.ts';
import type { GuardOutcome } from '../release/domain.ts';

export interface GuardOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Where the Leases are. */
  readonly namespace: string;
  readonly installationUID: string;
  /** Phase that is about to be written. */
  readonly phase: string;
  /** A name that no other acquisition has. */
  readonly holder: string;
  readonly timings: Partial<LeaseTimings> | undefined;
  /** How long to wait for another holder; then the worker tells who it is and comes again. */
  readonly limitMs: number;
}

/** Leases of a phase, in the order in which everybody takes them. */
export const leasesOf = (phase: string, uid: string): string[] =>
  phase === 'central' ? [leaseNames.installation(uid), leaseNames.central(uid)] : [leaseNames.installation(uid)];

/** Acquires the Leases of a phase. */
export async function guardPhase(options: GuardOptions): Promise<GuardOutcome> {
  const { client, clock, namespace, holder, timings, installationUID, phase } = options;
  const names = leasesOf(phase, installationUID);
  const outcome = await acquireInOrder(
    names.map((name) => ({
      client,
      clock,
      namespace,
      name,
      holder,
      fieldManager: managers.objects,
      ...(timings === undefined ? {} : { timings }),
    })),
    { signal: options.signal, limitMs: options.limitMs },
  );
  if (outcome.type === 'held') {
    const { leases } = outcome;
    return {
      granted: true,
      guard: {
        check: () => void leases.check(),
        signal: leases.signal,
        release: async () => void (await leases.release()),
      },
    };
  }
  const who = outcome.type === 'busy' ? `held by ${outcome.holder}: ${outcome.message}` : outcome.message;
  return {
    granted: false,
    problem: {
      reason: outcome.type === 'busy' ? 'LeaseHeld' : 'LeaseUnavailable',
      message: `phase ${phase} needs the Lease ${names.join(' and ')}: ${who}`,
      object: `Lease ${namespace}/${names[0] ?? ''}`,
    },
  };
}
