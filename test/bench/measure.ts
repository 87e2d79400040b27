/** One deed on the clock: how long, how many requests, what it cost whom. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Deed, Usage, Worker } from './contenders/types.ts';
import type { Place } from './place.ts';
import { type RequestCounts, readRequests, requestsBetween } from './requests.ts';

export interface Measured {
  /** Seconds until the last object was as wanted in etcd. */
  readonly storedSeconds: number;
  /** Seconds until the contender said that it was done. */
  readonly doneSeconds: number;
  readonly requests: RequestCounts;
  readonly client: Usage;
  readonly server: { readonly apiserverCpuSeconds: number; readonly etcdCpuSeconds: number };
  /** Share of the machine that others kept busy right before. */
  readonly busyBefore: number;
}

const pollMs = 20;
/** Every how many looks objects are counted: that asks etcd for a range of each kind and namespace, and costs whoever uses both cores. */
const countEvery = 5;
const limitMs = 180_000;

/**
 * Runs a deed. `wanted` is how many objects of the corpus have to be stored at its end; a deed that changes no number
 * counts as stored when it is done.
 * @throws when it does not end in time, or its contender says that it failed.
 */
export async function measure(place: Place, worker: Worker, deed: Deed, wanted: number): Promise<Measured> {
  const busyBefore = await place.settle();
  const requests = await readRequests(place.server.admin);
  const server = place.serverCpu();
  worker.usage();
  const already = (await place.etcd.stored()) === wanted;
  const began = performance.now();
  await deed.begin();
  const ended = await follow(place, deed, already ? undefined : wanted, began);
  const after = place.serverCpu();
  const client = worker.usage();
  const counted = requestsBetween(requests, await readRequests(place.server.admin));
  const end = await place.etcd.stored();
  if (end !== wanted) throw new Error(`at the end ${end} of ${wanted} objects are stored`);
  return {
    storedSeconds: (ended.stored ?? ended.done) / 1_000,
    doneSeconds: ended.done / 1_000,
    requests: counted,
    client,
    server: {
      apiserverCpuSeconds: after.apiserver - server.apiserver,
      etcdCpuSeconds: after.etcd - server.etcd,
    },
    busyBefore,
  };
}

/** Some say that they are done while what they deleted is still going: both times count, whichever comes first. */
async function follow(
  place: Place,
  deed: Deed,
  wanted: number | undefined,
  began: number,
): Promise<{ readonly done: number; readonly stored?: number }> {
  let done: number | undefined;
  let stored: number | undefined;
  for (let round = 0; ; round += 1) {
    const object = deed.statusKey === '' ? undefined : await place.etcd.object(deed.statusKey);
    const now = performance.now() - began;
    if (done === undefined && deed.done(object)) done = now;
    const counting = wanted !== undefined && stored === undefined && (done !== undefined || round % countEvery === 0);
    if (counting && (await place.etcd.stored()) === wanted) stored = now;
    if (done !== undefined && (wanted === undefined || stored !== undefined))
      return { done, ...(stored === undefined ? {} : { stored }) };
    if (now > limitMs) throw new Error(`not done after ${limitMs} ms: ${JSON.stringify(object)}`);
    await delay(pollMs);
  }
}

/** Whether nothing of the corpus is written while nobody asks for it. */
export async function staysQuiet(place: Place, forMs: number): Promise<boolean> {
  const before = await place.etcd.newestRevision();
  await delay(forMs);
  return before === (await place.etcd.newestRevision());
}
