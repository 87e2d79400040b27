/** Role `addresses`: its workers, each under a Lease of its own. Which workers there are is for the one who composes. */
import type { Registry } from 'prom-client';
import { managers } from '../../constructs/api/constants.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { createClient, type KubeClient } from '../kube/client.ts';
import type { CredentialSource } from '../kube/credentials.ts';
import type { ReflectorTimings } from '../kube/reflector.ts';
import { createTransport, type Transport } from '../kube/transport.ts';
import { guardedTransport } from '../lease/guarded.ts';
import { lead } from '../lease/leadership.ts';
import { Seat } from '../lease/seat.ts';
import { defaultLeaseTimings, type LeaseTimings } from '../lease/timings.ts';
import { executorMetrics } from '../telemetry/metrics.ts';
import { serveMetrics } from '../telemetry/server.ts';
import { SharedObjects } from './shared.ts';

export type AddressesLog = (
  level: 'info' | 'warn',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** What a worker is given for a term. */
export interface AddressWorkerParts {
  /** Writes only while the Lease is held. */
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly uniqueId: () => string;
  /** Name of this process for people. */
  readonly identity: string;
  readonly log: AddressesLog;
  /** Objects that other workers of this process know as well. */
  readonly shared: SharedObjects;
  readonly reflector?: Partial<ReflectorTimings>;
}

/** One worker of the role: the core, or a driver. The core knows no driver, and drivers know each other as little. */
export interface AddressWorker {
  readonly name: string;
  /** Name of its Lease: that of the controller which did the work before, so that never both do it. */
  readonly lease: string;
  /** Works until the signal aborts. */
  run(parts: AddressWorkerParts, signal: AbortSignal): Promise<void>;
}

export interface AddressesOptions {
  readonly credentials: CredentialSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly uniqueId: () => string;
  readonly identity: string;
  readonly workers: readonly AddressWorker[];
  /** What the workers report to. */
  readonly registry: Registry;
  /** Namespace of the Leases. Where controllers before ours may still run it is theirs: Leases exclude by name and namespace. */
  readonly leaseNamespace: string;
  readonly lease?: Partial<LeaseTimings>;
  readonly reflector?: Partial<ReflectorTimings>;
  /** Port of metrics on the loopback address; 0 takes a free one, absent serves none. */
  readonly metricsPort?: number;
  /** Wraps the transport; for tests that count, delay or lose requests. */
  readonly wrapTransport?: (transport: Transport) => Transport;
  readonly log?: AddressesLog;
  readonly onListening?: (port: number) => void;
}

/** Runs the role until the signal aborts; it returns after writers have stopped and the Leases are given up. */
export async function runAddresses(options: AddressesOptions, signal: AbortSignal): Promise<void> {
  const { log = () => undefined, metricsPort, registry } = options;
  const metrics = executorMetrics(registry);
  const transport = createTransport({ credentials: options.credentials });
  const send = options.wrapTransport?.(transport.send) ?? transport.send;
  const clientOver = (through: Transport): KubeClient =>
    createClient({
      transport: through,
      clock: options.clock,
      random: options.random,
      onAttempt: (attempt) => metrics.attempted(attempt),
    });
  const unserved = (error: unknown): undefined => {
    log('warn', `metrics are not served: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  };
  const server = metricsPort === undefined ? undefined : await serveMetrics(registry, metricsPort).catch(unserved);
  if (server !== undefined) options.onListening?.(server.port);
  const ended = new AbortController();
  const shared = new SharedObjects();
  const all = AbortSignal.any([signal, ended.signal]);
  try {
    // One worker that fails for good takes the process along: it is started anew as a whole.
    await Promise.all(
      options.workers.map((worker) =>
        leadWorker(worker, { options, log, clientOver, send, shared }, all).catch((error: unknown) => {
          ended.abort();
          throw error;
        }),
      ),
    );
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await server?.close();
    await transport.close();
  }
}

interface Shared {
  readonly options: AddressesOptions;
  readonly log: AddressesLog;
  readonly clientOver: (through: Transport) => KubeClient;
  readonly send: Transport;
  readonly shared: SharedObjects;
}

async function leadWorker(worker: AddressWorker, common: Shared, signal: AbortSignal): Promise<void> {
  const { options, log, clientOver, send, shared } = common;
  const { clock, random, uniqueId, identity, reflector } = options;
  const seat = new Seat(signal);
  await lead(
    {
      client: clientOver(send),
      clock,
      namespace: options.leaseNamespace,
      name: worker.lease,
      fieldManager: managers.addresses,
      timings: { ...defaultLeaseTimings, ...options.lease },
      identity,
      uniqueId,
      onEvent: (event) =>
        log(event.type === 'refused' ? 'warn' : 'info', `lease ${event.type}`, { worker: worker.name, ...event }),
      work: (lease) =>
        seat.during(() =>
          worker.run(
            {
              client: clientOver(guardedTransport(send, () => void lease.check())),
              clock,
              random,
              uniqueId,
              identity,
              log,
              shared,
              ...(reflector === undefined ? {} : { reflector }),
            },
            AbortSignal.any([signal, lease.signal]),
          ),
        ),
    },
    seat.signal,
  );
}
