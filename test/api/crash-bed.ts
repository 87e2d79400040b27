/** An executor on a slice bed that dies at one request after the other. */
import * as assert from 'uvu/assert';
import { type CrashPoint, crashTransport } from '../faults/crash.ts';
import type { KubeRequest } from '../faults/request.ts';
import type { SliceBed } from './slice-bed.ts';

export interface Crash {
  readonly nth: number;
  readonly at: CrashPoint;
  readonly match: (request: KubeRequest) => boolean;
}

/** Lets an executor die at one request; answers how many there were, and whether it died. */
export async function dieAt(
  bed: SliceBed,
  crash: Crash,
  done: () => Promise<void>,
): Promise<{ count: number; died: boolean }> {
  let transport: ReturnType<typeof crashTransport> | undefined;
  const executor = bed.executor({
    wrap: (inner) => {
      transport = crashTransport(inner, crash);
      return transport.transport;
    },
  });
  const crashed = new Promise<void>((resolve) => {
    if (transport?.crashed.aborted) resolve();
    transport?.crashed.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.race([crashed, done()]);
  // A process that died closes nothing; what it holds is not given back.
  await executor.stop().catch(() => undefined);
  // The Lease of the dead is taken away instead of waited for; that it expires is proven with the Leases.
  await bed.server.admin.request(
    'DELETE',
    `/apis/coordination.k8s.io/v1/namespaces/${bed.system}/leases/keelson-executor`,
  );
  return { count: transport?.count() ?? 0, died: transport?.crashed.aborted === true };
}

/** Dies at every request in turn until there is no further one; as many were tested as were counted. */
export async function everyN(
  what: string,
  scenario: (crash: Crash) => Promise<{ count: number; died: boolean }>,
  match: Crash['match'],
  at: CrashPoint,
  width = 6,
): Promise<number> {
  for (let from = 1; ; from += width) {
    const tries = Array.from({ length: width }, (_, n) => scenario({ nth: from + n, at, match }));
    const results = await Promise.all(tries);
    const spared = results.findIndex(({ died }) => !died);
    if (spared < 0) continue;
    const tested = from + spared - 1;
    const { count } = results[spared] ?? { count: -1 };
    console.log(`${what}, ${at}: ${tested} tested = ${count} writes counted`);
    assert.is(tested, count);
    return tested;
  }
}
