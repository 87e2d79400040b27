/** When objects come to be as they are waited for, as a watch of one's own tells it. */
import { systemClock } from '../../../constructs/lib/clock.ts';
import type { KubeClient } from '../../../executor/kube/client.ts';
import { Reflector } from '../../../executor/kube/reflector.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import type { Selection } from '../../../executor/kube/verbs/list.ts';

export interface Arrivals {
  /** When the object of the name was seen done, on the clock of `performance`; undefined: not within the limit. */
  when(name: string, limitMs: number): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** Watches a selection; returns once it was listed. */
export async function follow(
  client: KubeClient,
  selection: Selection,
  isDone: (object: KubeObject) => boolean,
): Promise<Arrivals> {
  const waiting = new Map<string, (at: number) => void>();
  const seen = new Map<string, number>();
  const stop = new AbortController();
  const listed = Promise.withResolvers<void>();
  const reflector = new Reflector({
    client,
    selection,
    clock: systemClock,
    random: Math.random,
    handler: (event) => {
      if (event.type === 'synced') return listed.resolve();
      const { name = '' } = event.object.metadata;
      if (event.type === 'deleted' || seen.has(name) || !isDone(event.object)) return undefined;
      const at = performance.now();
      seen.set(name, at);
      return waiting.get(name)?.(at);
    },
  });
  const running = reflector.run(stop.signal);
  await listed.promise;
  return {
    when(name, limitMs) {
      const known = seen.get(name);
      if (known !== undefined) return Promise.resolve(known);
      return new Promise((resolve) => {
        const late = setTimeout(() => resolve(undefined), limitMs);
        waiting.set(name, (at) => {
          clearTimeout(late);
          waiting.delete(name);
          resolve(at);
        });
      });
    },
    async stop() {
      stop.abort();
      await running;
    },
  };
}
