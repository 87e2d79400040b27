/** Our own records in somebody else's hand: nothing is forced, and what to do is told. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openLedger } from '../../executor/apply/ledger-store.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { storeReport } from '../../executor/release/reports.ts';
import { entry, item, sha } from './executor-support.ts';

const { signal } = new AbortController();

const client = {
  list: async () => ({ type: 'listed', items: [], resourceVersion: '1' }),
  get: async () => ({ type: 'absent' }),
  apply: async () => ({ type: 'conflict', managers: [], message: 'conflict with "kubectl-create"' }),
} as unknown as KubeClient;

test('a ledger that was restored by another hand names the way to take it back', async () => {
  const opened = await openLedger(client, { release: 'r', namespace: 'n' }, signal);
  assert.ok(opened.ok);
  if (!opened.ok) return;
  const one = item({ name: 'a' });
  opened.store.put(entry(one, { sha256: sha('1') }));
  const problem = await opened.store.flush(signal);
  assert.is(problem?.reason, 'LedgerNotWritten');
  assert.match(
    problem?.remedy ?? '',
    /delete it, and make it anew with `kubectl apply --server-side --field-manager=keelson`/,
  );
});

test('a plan or a report that somebody edited may be deleted', async () => {
  const report = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'keelson-plan-r', namespace: 'n' } };
  const [problem] = await storeReport(client, report, signal);
  assert.equal(
    [problem?.reason, problem?.object, problem?.remedy],
    ['ReportNotWritten', 'ConfigMap keelson-plan-r', 'delete it: it is written anew'],
  );
});

test.run();
