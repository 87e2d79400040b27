/**
 * The executor for one column of the benchmark: dry runs are answered before they become requests, as if the server had found
 * every object new, so that their cost can be told apart. Nothing of the product can be started this way.
 */
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { kubeConfigCredentials } from '../../executor/kube/credentials.ts';
import { runExecutor } from '../../executor/run.ts';

const flag = (name: string): string => process.argv[process.argv.indexOf(name) + 1] ?? '';

const withoutDryRun = (client: KubeClient): KubeClient => ({
  ...client,
  apply: async (object, options) =>
    options.dryRun === true ? { type: 'created', object, warnings: [], retried: false } : client.apply(object, options),
});

const log = pino({ name: 'keelson-executor' });
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
await runExecutor(
  {
    credentials: kubeConfigCredentials({ clock: systemClock, file: flag('--kubeconfig') }),
    clock: systemClock,
    random: Math.random,
    uniqueId: () => randomUUID().slice(0, 13),
    identity: 'bench',
    namespace: flag('--namespace'),
    wrapClient: withoutDryRun,
    log: (level, message, fields) => log[level](fields ?? {}, message),
  },
  stop.signal,
);
