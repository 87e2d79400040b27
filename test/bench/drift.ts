/** A stranger changes a few values; how long until each is back. */
import { setTimeout as delay } from 'node:timers/promises';
import { isObject } from '../../constructs/lib/json.ts';
import type { Worker } from './contenders/types.ts';
import type { CorpusObject } from './corpus.ts';
import type { Place } from './place.ts';
import { type RequestCounts, readRequests, requestsBetween } from './requests.ts';
import { percentile } from './statistics.ts';

export interface DriftMeasured {
  readonly changed: number;
  /** How many came back within the limit. */
  readonly repaired: number;
  /** Seconds from the strange write to the repaired value, half of them and nineteen of twenty. */
  readonly medianSeconds: number;
  readonly p95Seconds: number;
  readonly requests: RequestCounts;
}

const limitMs = 30_000;
const pollMs = 20;

/** Changes one value in a hundredth of the objects, all of them ConfigMaps, and waits for what happens. */
export async function measureDrift(
  place: Place,
  worker: Worker,
  objects: readonly CorpusObject[],
): Promise<DriftMeasured> {
  const { admin } = place.server;
  const targets = objects
    .filter(({ object }) => object.kind === 'ConfigMap')
    .slice(0, Math.max(1, Math.round(objects.length / 100)))
    .map(({ object }) => (isObject(object.metadata) ? object.metadata : {}))
    .map(({ namespace, name }) => `/api/v1/namespaces/${String(namespace)}/configmaps/${String(name)}`);
  const deed = await worker.repair();
  await place.settle();
  const before = await readRequests(admin);
  const open = new Map<string, number>();
  for (const path of targets) {
    await admin.expect('PATCH', path, {
      body: { data: { level: 'altered' } },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'kubectl-edit' },
    });
    open.set(path, performance.now());
  }
  await deed?.begin();
  const seconds: number[] = [];
  const began = performance.now();
  // A program that ends by itself is waited for; the others go on.
  const ended = (): boolean => deed === undefined || deed.statusKey !== '' || deed.done(undefined);
  while ((!ended() || open.size > 0) && performance.now() - began < limitMs) {
    for (const [path, since] of open) {
      const { body } = await admin.expect('GET', path);
      if (body.data?.level === 'altered') continue;
      seconds.push((performance.now() - since) / 1_000);
      open.delete(path);
    }
    await delay(pollMs);
  }
  // What nobody brought back is brought back here, so that later checks are about something else.
  for (const path of open.keys())
    await admin.expect('PATCH', path, {
      body: { data: { level: 'info' } },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'kubectl-edit' },
    });
  const counted = requestsBetween(before, await readRequests(admin));
  // The looks of this very function are GETs, and so are few of the contenders' requests.
  const requests = Object.fromEntries(Object.entries(counted).filter(([key]) => !key.startsWith('GET')));
  return {
    changed: targets.length,
    repaired: seconds.length,
    medianSeconds: percentile(seconds, 0.5),
    p95Seconds: percentile(seconds, 0.95),
    requests,
  };
}
