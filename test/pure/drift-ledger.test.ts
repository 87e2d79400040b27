import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { defaultDriftOptions } from '../../executor/apply/drift/keeper.ts';
import type { LedgerStore } from '../../executor/apply/ledger-store.ts';
import { createClient } from '../../executor/kube/client.ts';
import type { DomainSession, SealedDomain } from '../../executor/release/domain.ts';
import type { EnforceInput } from '../../executor/release/enforce.ts';
import { Keeping } from '../../executor/release/keeping.ts';
import type { WorkerDeps } from '../../executor/release/worker-options.ts';
import { entry, item, ledgerOf, release } from './executor-support.ts';
import { discoveryAnswer, scriptedTransport } from './fakeTransport.ts';
import { listOf, Stream } from './kube-reflector-support.ts';
import { seededRandom, settled, VirtualClock } from './virtualClock.ts';

test('nothing is set back by a ledger that was given up for another', async () => {
  const clock = new VirtualClock();
  const of = item();
  const { transport } = scriptedTransport(
    (request) =>
      discoveryAnswer(request.path) ??
      (request.query.watch === 'true' ? { status: 200, stream: new Stream().body(request.signal) } : listOf(5)),
  );
  let asked = 0;
  const session = { bind: () => ({ value: undefined }) } as unknown as DomainSession;
  const domain = {
    name: 'manifests',
    prepare: () => {
      asked += 1;
      return Promise.resolve({ session, problems: [{ reason: 'NotNow', message: 'no' }] });
    },
  } as unknown as SealedDomain;
  let due = 0;
  const keeping = new Keeping(
    {
      client: createClient({ transport, clock, random: seededRandom(1) }),
      clock,
      random: () => 0.5,
      release,
      drift: defaultDriftOptions,
      domains: [domain],
      onProblem: () => undefined,
    } as unknown as WorkerDeps,
    {
      due: () => {
        due += 1;
      },
      again: () => undefined,
      told: () => undefined,
    },
  );
  const stored = (): LedgerStore => ({ ledger: ledgerOf(entry(of)) }) as unknown as LedgerStore;
  const content = { release: { domain: 'manifests' }, phases: [] };
  const followed = {
    release,
    spec: { overrides: [], suspendPhases: [] },
    loaded: { items: [of], payload: { index: { content } } },
    ledger: stored(),
    quiesced: false,
  } as unknown as EnforceInput;
  const stop = new AbortController();
  const running = keeping.run(stop.signal);
  keeping.follow(followed, session, { narrow: new Set() } as unknown as Parameters<Keeping['follow']>[2]);
  keeping.watch();
  await settled();
  await settled();
  assert.ok(due > 0, 'it is missed');
  await keeping.mend({ ...followed, ledger: stored() });
  assert.is(asked, 0);
  await keeping.mend(followed);
  assert.is(asked, 1);
  stop.abort();
  await running;
});

test.run();
