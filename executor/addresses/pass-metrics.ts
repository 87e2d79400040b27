/** What every worker of the ledger tells of its passes. */
import { Gauge, Histogram, type Registry } from 'prom-client';

export interface PassMetrics {
  /** Whether this process leads and has listed every kind. */
  ready(isReady: boolean): void;
  /** @param key key of a pass, which begins with the kind. */
  passed(key: string, failed: boolean, seconds: number): void;
}

/** @param controllers names of the controllers in metrics, by kind. */
export function passMetrics(
  registry: Registry,
  prefix: string,
  controllers: Readonly<Record<string, string>>,
): PassMetrics {
  const registers = [registry];
  const ready = new Gauge({
    name: `${prefix}_ready`,
    help: '1 while this process leads and has listed every kind',
    registers,
  });
  const passes = new Histogram({
    name: `${prefix}_pass_seconds`,
    help: 'passes by controller and result',
    labelNames: ['controller', 'result'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
    registers,
  });
  return {
    ready: (isReady) => ready.set(isReady ? 1 : 0),
    passed(key, failed, seconds) {
      const controller = controllers[key.slice(0, key.indexOf(' '))] ?? '';
      passes.observe({ controller, result: failed ? 'error' : 'success' }, seconds);
    },
  };
}
