/**
 * The executor for one column of the benchmark: dry runs are answered in this process as if the server had found every
 * object new, so that their cost can be told apart. Nothing of the product can be started this way.
 */
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { systemClock } from '../../constructs/lib/clock.ts';
import { kubeConfigCredentials } from '../../executor/kube/credentials.ts';
import type { Transport } from '../../executor/kube/transport.ts';
import { runExecutor } from '../../executor/run.ts';

const flag = (name: string): string => process.argv[process.argv.indexOf(name) + 1] ?? '';

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

const withoutDryRun =
  (inner: Transport): Transport =>
  async (request) =>
    request.query.dryRun === undefined
      ? inner(request)
      : { status: 201, headers: {}, body: once(request.body ?? '{}') };

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
    wrapTransport: withoutDryRun,
    log: (level, message, fields) => log[level](fields ?? {}, message),
  },
  stop.signal,
);
