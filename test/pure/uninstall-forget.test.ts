import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, labels } from '../../constructs/api/constants.ts';
import type { LedgerEntry, LedgerState } from '../../constructs/api/ledger.ts';
import { uninstallPlan } from '../../constructs/api/uninstall.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { openLedger } from '../../executor/apply/ledger-store.ts';
import { marksLeft } from '../../executor/apply/let-go.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { uninstall } from '../../executor/release/uninstall.ts';
import { digest, sha } from './executor-support.ts';
import { adopted, foreign, ownersModel, release, system } from './owners-model.ts';

const uid = '00000000-0000-4000-8000-000000000001';
const entryOf = (state: LedgerState): LedgerEntry => ({
  id: '/ConfigMap/kube-system/a',
  uid,
  state,
  sha256: sha('a'),
  phase: 'one',
  payload: digest('1'),
});

async function uninstalled(state: LedgerState, live: KubeObject, mode: 'orphan' | 'delete' = 'orphan') {
  const model = ownersModel([entryOf(state)], [live]);
  const { client } = model;
  const signal = AbortSignal.timeout(30_000);
  const opened = await openLedger(client, { release, namespace: system }, signal);
  assert.ok(opened.ok);
  const ledger = opened.store;
  const plan = uninstallPlan({ release, releaseUID: 'release-uid', mode, ledger: ledger.ledger });
  const nobody = { company: false, heirs: new Map<string, string>(), problems: [] };
  const outcome = await uninstall(
    {
      client,
      clock: systemClock,
      check: () => undefined,
      guard: () =>
        Promise.resolve({ granted: true, guard: { check: () => undefined, release: () => Promise.resolve() } }),
      claims: { heirs: () => Promise.resolve(nobody) },
      concurrency: 1,
      goneMs: 1_000,
      onProgress: () => undefined,
    },
    { release, releaseUID: 'release-uid', namespace: system, request: { mode, digest: plan.digest }, ledger, signal },
  );
  return { ...model, outcome, ledger, live: model.objects.get('/ConfigMap/kube-system/a') };
}

test('what the ledger takes for another’s, and bears what we applied, is let go: its owner would take it along', async () => {
  for (const state of ['adopting', 'unmanaged'] as const)
    for (const mode of ['orphan', 'delete'] as const) {
      const { outcome, live, ledger } = await uninstalled(state, adopted('a', uid), mode);
      assert.is(outcome.type, 'done');
      assert.is(live?.metadata.ownerReferences, undefined, `${state}, ${mode}`);
      assert.equal([live?.metadata.labels, live?.metadata.annotations], [{ app: 'ovn' }, {}]);
      assert.equal([live?.metadata.uid, live?.data], [uid, { value: 'kept' }]);
      assert.is(ledger.ledger.size, 0);
    }
});

test('what never became ours is forgotten and not written: untouched, another’s, or another object of that name', async () => {
  const hold = { [annotations.hold]: 'INC-1' };
  const untouched = foreign('a', uid);
  for (const [why, live] of [
    ['untouched', untouched],
    ['held, and nothing is to be done to it', { ...untouched, metadata: { ...untouched.metadata, annotations: hold } }],
    ['another release has it', adopted('a', uid, { labels: { [labels.release]: 'manifests-other' } })],
    ['another UID', adopted('a', '00000000-0000-4000-8000-000000000002')],
  ] as const) {
    const { outcome, writes, ledger } = await uninstalled('adopting', live);
    assert.equal([outcome.type, writes, ledger.ledger.size], ['done', [], 0], why);
  }
});

test('a hold on what bears our marks is a person’s word, and so is an owner that somebody else holds as well', async () => {
  const held = adopted('a', uid);
  const annotated = { ...held.metadata.annotations, [annotations.hold]: 'INC-1' };
  const stays = await uninstalled('adopting', { ...held, metadata: { ...held.metadata, annotations: annotated } });
  assert.equal([stays.outcome.type, stays.writes, stays.ledger.ledger.size], ['failed', [], 1]);
  const { ownerReferences = [] } = held.metadata;
  assert.equal(marksLeft({ ownerReferences }), ['metadata.ownerReferences']);
  assert.equal(marksLeft({ ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', uid: 'x' }] }), []);
});

test.run();
