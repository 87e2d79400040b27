// time limit: 180s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type CrashPoint, crashTransport } from '../faults/crash.ts';
import { FaultPlan } from '../faults/plan.ts';
import type { KubeRequest } from '../faults/request.ts';
import { faultTransport } from '../faults/transport.ts';
import { type SliceBed, withBed } from './slice-bed.ts';
import { inPlace, inside, mapValue, spanPayload, want, writtenMaps } from './spans-bed.ts';

/** Writes whose order is fixed. Leases and Events are written beside the work, statuses by their own clock. */
const counted = ({ mutating, resource, subresource }: KubeRequest): boolean =>
  mutating && resource !== 'leases' && resource !== 'events' && subresource !== 'status';

interface Death {
  readonly count: number;
  readonly died: boolean;
  /** Whether the one that died was inside the span by what is stored. */
  readonly inside: boolean;
}

const isInside = async (bed: SliceBed): Promise<boolean> => {
  const ledger = await bed.get(`/api/v1/namespaces/${bed.system}/configmaps/keelson-ledger-${bed.names.release}-0`);
  return JSON.stringify(ledger?.metadata ?? {}).includes('keelson.dev/span');
};

/** From A to B an executor dies at one write; when it is gone, C is asked for. Answers how that went. */
async function change(nth: number, at: CrashPoint): Promise<Death> {
  let death: Death | undefined;
  await withBed(async (bed) => {
    const reached = new FaultPlan();
    const a = await spanPayload(bed, { value: 'A' });
    await want(bed, a);
    const first = bed.executor();
    await inPlace(bed, a);
    await first.stop();
    const b = await spanPayload(bed, { value: 'B' });
    await want(bed, b);
    let crash: ReturnType<typeof crashTransport> | undefined;
    const dying = bed.executor({
      wrap: (inner) => {
        crash = crashTransport(faultTransport(inner, reached), { nth, at, match: counted });
        return crash.transport;
      },
    });
    const { promise: crashed, resolve } = Promise.withResolvers<void>();
    crash?.crashed.addEventListener('abort', () => resolve(), { once: true });
    await Promise.race([crashed, inPlace(bed, b)]);
    await dying.stop().catch(() => undefined);
    // The Lease of the dead is taken away instead of waited for.
    await bed.server.admin.request(
      'DELETE',
      `/apis/coordination.k8s.io/v1/namespaces/${bed.system}/leases/keelson-executor`,
    );
    death = { count: crash?.count() ?? 0, died: crash?.crashed.aborted === true, inside: await isInside(bed) };
    const c = await spanPayload(bed, { value: 'C' });
    await want(bed, c);
    const next = bed.executor({ wrap: (inner) => faultTransport(inner, reached) });
    await inPlace(bed, c);
    await next.stop();
    assertOneWay(writtenMaps(reached, bed.system), death, `${at} of write ${nth}`);
    for (const name of ['a', 'b', 'c', 'd']) assert.is(await mapValue(bed, name), 'C');
    assert.not.ok(await isInside(bed));
  });
  if (death === undefined) throw new Error('nothing was tried');
  return death;
}

/** Once anything of B's span was written, all of it was, before anything of C. */
function assertOneWay(written: readonly string[], { inside: stored }: Death, what: string): void {
  const firstC = written.findIndex((each) => each.endsWith('=C'));
  const before = new Set(written.slice(0, firstC < 0 ? written.length : firstC));
  const begun = inside.some((name) => before.has(`${name}=B`));
  if (begun || stored) for (const name of inside) assert.ok(before.has(`${name}=B`), `${what}: ${written.join(' ')}`);
  assert.not.ok(
    written.slice(firstC).some((each) => each.endsWith('=B')),
    `${what}: ${written.join(' ')}`,
  );
}

test('a death after any write of a change leaves no span half done, whatever is wanted next', async () => {
  // What the next process finds is the same whether the one before died after a write, after its reply or before the next.
  const width = 5;
  let deaths = 0;
  let insides = 0;
  for (let from = 1, more = true; more; from += width) {
    const results = await Promise.all(Array.from({ length: width }, (_, n) => change(from + n, 'afterEffect')));
    const died = results.filter((result) => result.died);
    deaths += died.length;
    insides += died.filter((result) => result.inside).length;
    const spared = results.find((result) => !result.died);
    if (spared === undefined) continue;
    more = false;
    console.log(`${deaths} tested = ${spared.count} writes counted, ${insides} of them inside the span`);
    assert.is(deaths, spared.count);
  }
  assert.ok(insides >= 2, `only ${insides} deaths were inside the span`);
});

test.run();
