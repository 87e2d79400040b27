import { randomUUID } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { EventRecorder } from '../../executor/kube/events.ts';
import { type KubeBed, kubeBed } from './kubeBed.ts';

const fieldManager = 'keelson';
let bed: KubeBed;

test.before(async () => {
  bed = await kubeBed('told');
});

test.after(() => bed?.close());

test('an Event about an object is stored, also about one without a namespace', async () => {
  const { client, namespace } = bed;
  const recorder = new EventRecorder({
    client,
    clock: systemClock,
    uniqueId: randomUUID,
    reportingController: 'keelson.dev/executor',
    reportingInstance: 'test',
    fieldManager,
  });
  const map = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'told', uid: randomUUID() };
  recorder.record({ regarding: map, type: 'Warning', reason: 'DriftFight', action: 'Apply', note: 'x'.repeat(5000) });
  recorder.record({ regarding: map, type: 'Warning', reason: 'DriftFight', action: 'Apply', note: 'x'.repeat(5000) });
  recorder.record({
    regarding: { apiVersion: 'v1', kind: 'Namespace', name: namespace },
    type: 'Normal',
    reason: 'Seen',
    action: 'Look',
    note: 'ok',
  });
  await recorder.flush(5000);
  assert.equal(recorder.counts, { sent: 3, dropped: 0, waiting: 0 });
  const stored = await client.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace });
  assert.equal(
    stored.type === 'listed' && stored.items.map((event) => (event.series as JsonObject | undefined)?.count).sort(),
    [2, undefined],
  );
});

test.run();
