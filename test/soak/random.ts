import { systemClock } from '../../constructs/lib/clock.ts';
import { is } from '../api/slice-bed.ts';
import { seededRandom } from '../pure/virtualClock.ts';
import { act, type Chance, giveBack } from './actions.ts';
import { always, atRest, oneWriter } from './invariants.ts';
import { openWorld, type World } from './world.ts';

const firstOf = (prefix: string): Map<string, string> =>
  new Map(Array.from({ length: 10 }, (_, n) => [`${prefix}map-${n}`, `first-${n}`]));

/** Actions between two times at which everything must come to rest. */
const actionsARound = 12;
const restMs = 120_000;

/** Watches what must always hold, until told to end; remembers the first thing that did not. */
function watch(world: World): { readonly broken: () => unknown; end(): Promise<void> } {
  const stop = new AbortController();
  let broken: unknown;
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted && broken === undefined) {
      try {
        await always(world);
      } catch (error) {
        // An API server that is away answers nothing at all.
        if (error instanceof Error && error.name === 'Assertion') broken = error;
      }
      await systemClock.sleep(200, stop.signal).catch(() => undefined);
    }
  };
  const running = run();
  return {
    broken: () => broken,
    async end() {
      stop.abort();
      await running;
    },
  };
}

async function rest(world: World): Promise<void> {
  for (const replica of world.replicas) await replica.start();
  await giveBack(world);
  for (const { bed, digest } of world.models)
    await bed.untilStatus(
      'everything to be in place',
      (status) => status.raw.actual === digest && is(status, 'Ready', 'True'),
      restMs,
    );
  await settled(world);
  oneWriter(world);
  for (const replica of world.replicas) replica.forget();
}

/** Ready may be told from before the last edit: what is live has to become what was delivered as well. */
async function settled(world: World): Promise<void> {
  const deadline = performance.now() + restMs;
  for (;;) {
    try {
      await atRest(world);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await systemClock.sleep(250);
    }
  }
}

export interface RandomRun {
  readonly rounds: number;
  readonly actions: number;
}

/**
 * Edits, publishes, kills, conflicts and outages in an order that the seed decides, with invariants checked throughout.
 * @throws the first thing that did not hold, after the actions that led to it were told.
 */
export async function randomRun(minutes: number, seed: number, say: (line: string) => void): Promise<RandomRun> {
  const random = seededRandom(seed);
  const chance: Chance = {
    random,
    choose: (from) => from[Math.floor(random() * from.length)] ?? (from[0] as (typeof from)[number]),
  };
  const world = await openWorld(2);
  const end = performance.now() + minutes * 60_000;
  const done: string[] = [];
  let rounds = 0;
  const watching = watch(world);
  try {
    for (const model of world.models) await world.deliver(model, firstOf(model.prefix));
    for (const replica of world.replicas) await replica.start();
    await rest(world);
    while (performance.now() < end) {
      for (let n = 0; n < actionsARound; n += 1) {
        const what = await act(world, chance);
        done.push(`#${done.length + 1} ${what}`);
        await systemClock.sleep(Math.floor(random() * 1_500));
        if (watching.broken() !== undefined) throw watching.broken();
      }
      const began = performance.now();
      await rest(world);
      if (watching.broken() !== undefined) throw watching.broken();
      rounds += 1;
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      say(`round ${rounds}: at rest ${seconds} s after ${done.slice(-actionsARound).join('; ')}`);
    }
    return { rounds, actions: done.length };
  } catch (error) {
    say(`seed ${seed}; the last actions were:\n  ${done.slice(-2 * actionsARound).join('\n  ')}`);
    for (const replica of world.replicas) say(`${replica.name} said last:\n${replica.said}`);
    throw error;
  } finally {
    await watching.end();
    await world.close();
  }
}
