/** When the ledger is stored: beside other work, seldom, in an order where order matters, and never two stores at once. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import { type LedgerStore, openLedger } from '../../executor/apply/ledger-store.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { digest, entry, item, sha } from './executor-support.ts';
import { settled, VirtualClock } from './virtualClock.ts';

const target = { release: 'manifests-demo', namespace: 'keelson-system' };
const never = new AbortController().signal;

type Answer = 'stored' | 'stale' | 'aborted';

interface Bed {
  readonly client: KubeClient;
  /** Names of the ConfigMaps that are being written, in the order in which the writes began. */
  readonly writing: string[];
  /** Answers the oldest write: stored, refused because somebody else wrote, or aborted before it was sent. */
  answer(how?: Answer): Promise<void>;
  /** All writes that are under way never reach the server: whoever waits for them is gone. */
  drop(): void;
  /** All writes that are under way are aborted. */
  abort(): Promise<void>;
  /** Answers writes until none is left; how many there were. */
  answerAll(): Promise<number>;
}

function bed(): Bed {
  const stored = new Map<string, KubeObject>();
  const writing: string[] = [];
  const waiting: ((how: Answer) => void)[] = [];
  let version = 0;
  const client = {
    list: () => Promise.resolve({ type: 'listed', items: [...stored.values()], resourceVersion: '1' }),
    get: ({ name }: { name: string }) => {
      const object = stored.get(name);
      return Promise.resolve(object === undefined ? { type: 'absent' } : { type: 'found', object });
    },
    apply: (object: KubeObject) => {
      const name = object.metadata.name ?? '';
      writing.push(name);
      return new Promise((resolve, reject) => {
        waiting.push((how) => {
          writing.splice(writing.indexOf(name), 1);
          if (how === 'aborted') return reject(new Error('aborted'));
          if (how === 'stale')
            return resolve({ type: 'unavailable', message: 'another write', mayHaveHappened: false });
          version += 1;
          const metadata = { ...object.metadata, uid: name, resourceVersion: String(version) };
          const type = stored.has(name) ? 'configured' : 'created';
          stored.set(name, { ...object, metadata });
          return resolve({ type, object: stored.get(name), warnings: [], retried: false });
        });
      });
    },
  } as unknown as KubeClient;
  const answer = async (how: Answer = 'stored'): Promise<void> => {
    waiting.shift()?.(how);
    await settled();
  };
  return {
    client,
    writing,
    answer,
    drop() {
      waiting.length = 0;
      writing.length = 0;
    },
    async abort() {
      for (const each of waiting.splice(0)) each('aborted');
      await settled();
    },
    async answerAll() {
      let count = 0;
      for (await settled(); waiting.length > 0; count += 1) await answer();
      return count;
    },
  };
}

async function open({ client }: Bed): Promise<LedgerStore> {
  const opened = await openLedger(client, target, never);
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  return opened.store;
}

const entryOf = (n: number, uid: string): LedgerEntry => entry(item({ name: `object-${n}` }), { uid });

/** A store whose ledger fills four ConfigMaps, all of them written. */
async function fourShards(on: Bed): Promise<LedgerStore> {
  const store = await open(on);
  for (let n = 0; n < 2_000; n += 1) store.put({ ...entryOf(n, 'u'), sha256: sha('b'), payload: digest('2') });
  const flushed = store.flush(never);
  await settled();
  const ends = (): string[] => on.writing.map((name) => name.slice(-2)).sort();
  assert.equal(ends(), ['-0'], 'the first time an empty first one comes before all others');
  await on.answer();
  assert.equal(ends(), ['-1', '-2', '-3'], 'those that are new come side by side');
  for (let n = 0; n < 2; n += 1) await on.answer();
  assert.is(on.writing.length, 1);
  await on.answer();
  assert.equal(ends(), ['-0'], 'and the first one, which lets go of their ids, last');
  assert.is(await on.answerAll(), 1);
  assert.is(await flushed, undefined);
  return store;
}

test('ConfigMaps whose ids can not move are written side by side, and only those that changed', async () => {
  const on = bed();
  const store = await fourShards(on);
  for (let n = 0; n < 100; n += 1) store.put(entryOf(n, 'v'));
  const flushed = store.flush(never);
  await settled();
  assert.is(on.writing.length, 4);
  await on.answerAll();
  assert.is(await flushed, undefined);
  store.put(entryOf(5, 'w'));
  const again = store.flush(never);
  await settled();
  assert.is(on.writing.length, 1);
  await on.answerAll();
  assert.is(await again, undefined);
  assert.equal([...(await open(on)).ledger.values()].find(({ id }) => id.endsWith('/object-5'))?.uid, 'w');
});

test('wherever the first store of a large ledger is cut off, what there is of it can be read, and is completed', async () => {
  for (let answered = 0; answered <= 5; answered += 1) {
    const on = bed();
    const store = await open(on);
    for (let n = 0; n < 2_000; n += 1) store.put({ ...entryOf(n, 'u'), sha256: sha('b'), payload: digest('2') });
    void store.flush(never);
    await settled();
    for (let n = 0; n < answered; n += 1) await on.answer();
    // What the first process had under way is lost with it.
    on.drop();
    const next = await open(on);
    for (let n = 0; n < 2_000; n += 1) next.put({ ...entryOf(n, 'u'), sha256: sha('b'), payload: digest('2') });
    const flushed = next.flush(never);
    await settled();
    await on.answerAll();
    assert.is(await flushed, undefined);
    assert.is((await open(on)).ledger.size, 2_000);
  }
});

test('so is what a store leaves that was aborted, tried again, and cut off then', async () => {
  for (let before = 0; before <= 4; before += 1) {
    for (let after = 0; after <= 4; after += 1) {
      const on = bed();
      const store = await open(on);
      for (let n = 0; n < 2_000; n += 1) store.put({ ...entryOf(n, 'u'), sha256: sha('b'), payload: digest('2') });
      const aborted = store.flush(never).then(
        () => 'stored',
        () => 'aborted',
      );
      await settled();
      for (let n = 0; n < before; n += 1) await on.answer();
      await on.abort();
      assert.is(await aborted, 'aborted');
      void store.flush(never);
      await settled();
      for (let n = 0; n < after; n += 1) await on.answer();
      const left = await openLedger(on.client, target, never);
      assert.ok(left.ok, `aborted after ${before} writes, and cut off after ${after} more`);
    }
  }
});

test('beside other work one store at a time, with a pause behind it', async () => {
  const on = bed();
  const clock = new VirtualClock();
  const store = await open(on);
  const put = (n: number): void => {
    store.put(entryOf(n, 'u'));
    store.flushBeside(clock, 1_000, never);
  };
  put(1);
  await settled();
  put(2);
  await settled();
  assert.is(on.writing.length, 1, 'the second waits for the first');
  assert.is(await on.answerAll(), 1);
  put(3);
  assert.is(await on.answerAll(), 0, 'within the pause');
  await clock.advance(1_000);
  put(4);
  assert.is(await on.answerAll(), 1);
  assert.is((await open(on)).ledger.size, 4);
  // Nothing new: nothing to write.
  await clock.advance(1_000);
  store.flushBeside(clock, 1_000, never);
  assert.is(await on.answerAll(), 0);
});

test('what went wrong beside is told by the next store that somebody waits for, and ends the use of this one', async () => {
  const on = bed();
  const store = await fourShards(on);
  store.put(entryOf(1, 'v'));
  store.flushBeside(new VirtualClock(), 0, never);
  await settled();
  await on.answer('stale');
  store.put(entryOf(2, 'v'));
  const problem = await store.flush(never);
  assert.is(problem?.reason, 'ApiUnavailable');
  assert.is(on.writing.length, 0, 'nothing is written any more');
  assert.is((await store.flush(never))?.reason, 'ApiUnavailable');
});

test.run();
