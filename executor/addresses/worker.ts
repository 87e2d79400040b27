/** A worker of the ledger: watches its kinds, and lets an engine carry out what its controllers plan. */
import { addressesApiVersion } from '../../constructs/api/addresses.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { Reflector, type ReflectorTimings } from '../kube/reflector.ts';
import type { Selection } from '../kube/verbs/list.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { clientLedgerApi, type Keep, ownParts } from './client-api.ts';
import { type Controllers, type EngineLedger, LedgerEngine } from './engine.ts';
import { ledgerKinds, type View } from './objects.ts';
import type { LedgerEvent } from './plan.ts';
import { SharedObjects } from './shared.ts';

export interface LedgerWorkerOptions<Key extends string, Any extends View, Known extends EngineLedger<Any>> {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Empty. */
  readonly ledger: Known;
  /** Kinds that are watched besides those of the ledger. */
  readonly others?: readonly Selection[];
  readonly controllers: Controllers<Key, Any, Known>;
  readonly tell: (event: LedgerEvent<Any>) => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
  /** What is kept of an object; by default all that the ledger is about. */
  readonly keep?: Keep;
  readonly shared?: SharedObjects;
  readonly reflector?: Partial<ReflectorTimings>;
  /** Told of each pass: its key, and whether it failed. */
  readonly onPass?: (key: Key, failed: boolean, seconds: number) => void;
  /** Told once every kind was listed; nothing is planned before. */
  readonly onReady?: (ledger: Known) => void;
}

const own: readonly Selection[] = ledgerKinds.map((kind) => ({ apiVersion: addressesApiVersion, kind }));

/** Whole lists without a doubt, which are the most that a ledger asks of an API server: as often as the controllers before did. */
const relistMs = 10 * 3_600_000;

/** Passes at once. Those that concern each other wait for each other all the same. */
const workers = 8;

/** Runs until the signal aborts; then no pass is under way. */
export async function runLedger<Key extends string, Any extends View, Known extends EngineLedger<Any>>(
  options: LedgerWorkerOptions<Key, Any, Known>,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, random, controllers, tell, log, shared = new SharedObjects() } = options;
  const keep: Keep = (object) => shared.same((options.keep ?? ownParts)(object));
  const queue = new WorkQueue({
    clock,
    random,
    onError: (key, error) => log('warn', `${key}: ${error instanceof Error ? error.message : String(error)}`),
  });
  const engine = new LedgerEngine<Key, Any, Known>({
    api: clientLedgerApi(client, keep),
    ledger: options.ledger,
    controllers,
    now: () => clock.now(),
    wake: (key) => queue.add(key),
    offer: (key) => {
      if (queue.failures(key) === 0) queue.add(key);
    },
    tell,
    onProblem: (key, message) => log('warn', `${key}: ${message}`),
  });
  const kinds = [...own, ...(options.others ?? [])];
  const listed = new Set<string>();
  const { promise: allListed, resolve } = Promise.withResolvers<void>();
  const reflectors = kinds.map((selection) => {
    const { kind } = selection;
    const reflector: Reflector = new Reflector({
      client,
      clock,
      random,
      selection,
      transform: keep,
      timings: { relistMs, ...options.reflector },
      onProblem: ({ message }) => log('warn', message),
      onListed: () => {
        // A whole list is the last word about what there is; what we have of our own writes is told by the watch again.
        for (const { object } of [...engine.ledger.every(kind)])
          if (!reflector.objects.has(`${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`))
            engine.deleted(object);
      },
      handler: (event) => {
        if (event.type === 'synced') {
          listed.add(kind);
          if (listed.size === kinds.length) resolve();
        } else if (event.type === 'deleted') {
          shared.drop(event.object);
          engine.deleted(event.object);
        } else engine.seen(event.object);
      },
    });
    return reflector;
  });
  const stopped = new Promise<void>((over) => signal.addEventListener('abort', () => over(), { once: true }));
  const work = async (): Promise<void> => {
    await Promise.race([allListed, stopped]);
    if (signal.aborted) return;
    options.onReady?.(engine.ledger);
    await queue.run(workers, (key, stop) => timed(key as Key, stop), signal);
  };
  const timed = async (key: Key, stop: AbortSignal): ReturnType<LedgerEngine<Key, Any, Known>['pass']> => {
    const started = clock.monotonic();
    let failed = true;
    try {
      const result = await engine.pass(key, stop);
      failed = result.type === 'failed';
      return result;
    } finally {
      options.onPass?.(key, failed, (clock.monotonic() - started) / 1000);
    }
  };
  await Promise.all([...reflectors.map((reflector) => reflector.run(signal)), work()]);
}
