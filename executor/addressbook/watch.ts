/** Keeps the ledger in view by list and watch, for those who only look: whoever looks costs the API server nothing. */
import { addressAnnotations, addressesApiVersion } from '../../constructs/api/addresses.ts';
import { type Clock, type Random, rest } from '../../constructs/lib/clock.ts';
import { objectOf, objectsOf } from '../../constructs/lib/json.ts';
import type { LedgerKind } from '../addresses/objects.ts';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, type ReflectorTimings } from '../kube/reflector.ts';
import type { KubeObject } from '../kube/types.ts';
import { bookOf } from './book.ts';
import { type LedgerSummary, summaryOf } from './summary.ts';

export interface BookWatchOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether there is a ledger to look at; asked now and then until there is, and then no more. */
  readonly wanted: () => boolean;
  readonly onProblem: (message: string) => void;
  readonly timings?: Partial<ReflectorTimings>;
  /** How often `wanted` is asked. */
  readonly askEveryMs?: number;
  /** A summary is made anew no more often than this: of a large ledger that takes a tenth of a second. */
  readonly restMs?: number;
}

const kinds: readonly LedgerKind[] = ['IPAddressClass', 'IPAddress', 'IPAddressClaim'];

/** Of what there is by the thousand only what a summary reads. */
export function slimAddress({ apiVersion, kind, metadata, spec, status }: KubeObject): KubeObject {
  const { namespace, name, uid, resourceVersion, deletionTimestamp, annotations } = metadata;
  const held = annotations?.[addressAnnotations.held];
  const { phase, className, associatedTo, conditions } = objectOf(status);
  const told = objectsOf(conditions).filter((one) => one.type === 'Bound');
  return JSON.parse(
    JSON.stringify({
      apiVersion,
      kind,
      metadata: {
        namespace,
        name,
        uid,
        resourceVersion,
        deletionTimestamp,
        annotations: held === undefined ? undefined : { [addressAnnotations.held]: held },
      },
      spec,
      status: { phase, className, associatedTo, conditions: told },
    }),
  ) as KubeObject;
}

export class BookWatch {
  readonly #options: BookWatchOptions;
  readonly #reflectors: readonly Reflector[];
  /** Counts changes: a summary is made once for each state, however many look at it. */
  #version = 0;
  #made: { readonly version: number; readonly at: number; readonly summary: LedgerSummary | undefined } | undefined;
  readonly #told = new Set<string>();

  constructor(options: BookWatchOptions) {
    this.#options = options;
    const { client, clock, random, timings } = options;
    this.#reflectors = kinds.map(
      (kind) =>
        new Reflector({
          client,
          clock,
          random,
          selection: { apiVersion: addressesApiVersion, kind },
          transform: slimAddress,
          handler: () => {
            this.#version += 1;
          },
          onProblem: ({ message }) => this.#problem(message),
          ...(timings === undefined ? {} : { timings }),
        }),
    );
  }

  /** What is wrong stays wrong for long, where an account may not look: it is told once. */
  #problem(message: string): void {
    if (this.#told.has(message) || this.#told.size >= 100) return;
    this.#told.add(message);
    this.#options.onProblem(message);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, wanted, askEveryMs = 10_000 } = this.#options;
    while (!wanted()) {
      await rest(clock, askEveryMs, signal);
      if (signal.aborted) return;
    }
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)));
  }

  /** Undefined where there is no ledger, and while it is not known or not heard of any more. */
  summary(): LedgerSummary | undefined {
    const health = this.#reflectors.map((reflector) => reflector.health());
    if (!health.every(({ synced, connected }) => synced && connected)) return undefined;
    const { clock, restMs = 2_000 } = this.#options;
    const at = clock.monotonic();
    const made = this.#made;
    if (made !== undefined && (made.version === this.#version || at - made.at < restMs)) return made.summary;
    const objects = this.#reflectors.flatMap((reflector) => [...reflector.objects.values()]);
    const summary = summaryOf(bookOf(objects));
    this.#made = { version: this.#version, at, summary };
    return summary;
  }
}
