/** All runs of all contenders, one after the other, in an order that changes from round to round. */

import type { Contender, ContenderName } from './contenders/types.ts';
import { corpus, seededRandom } from './corpus.ts';
import type { BenchOptions } from './options.ts';
import { type CheckedRun, runOnce } from './run.ts';

export interface ApplyResults {
  /** Runs by contender, in the order of the rounds. */
  readonly runs: ReadonlyMap<ContenderName, readonly CheckedRun[]>;
  /** One cold run each with many objects. */
  readonly many: ReadonlyMap<ContenderName, CheckedRun>;
}

/** Rounds in which more than the cold run is measured: the rest moves less, and no target hangs on its third digit. */
const fullRounds = 3;

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

export async function runAll(
  options: BenchOptions,
  contenders: readonly Contender[],
  progress: (line: string) => void,
): Promise<ApplyResults> {
  const random = seededRandom(options.seed + 7);
  const objects = corpus(options.objects, options.seed);
  const runs = new Map<ContenderName, CheckedRun[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 1; round <= options.runs; round += 1)
    for (const contender of shuffled(contenders, random)) {
      const run = await runOnce(contender, objects, { more: round <= fullRounds, progress });
      runs.get(contender.name)?.push(run);
      progress(`round ${round}: ${contender.title}: ${run.cold.doneSeconds.toFixed(2)} s cold`);
    }
  const many = new Map<ContenderName, CheckedRun>();
  if (options.manyObjects > 0) {
    const bulk = corpus(options.manyObjects, options.seed);
    for (const contender of contenders.filter(({ name }) => name !== 'keelsonWithoutDryRun')) {
      const run = await runOnce(contender, bulk, { more: false, progress });
      many.set(contender.name, run);
      progress(`${options.manyObjects} objects: ${contender.title}: ${run.cold.doneSeconds.toFixed(2)} s cold`);
    }
  }
  return { runs, many };
}
