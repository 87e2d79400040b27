/** One contender in one fresh place: everything it is measured at, in order, and whether it did what it said. */
import { findDifferences } from './check.ts';
import type { Contender, Worker } from './contenders/types.ts';
import { type CorpusObject, halfOf } from './corpus.ts';
import { type DriftMeasured, measureDrift } from './drift.ts';
import { type Measured, measure, staysQuiet } from './measure.ts';
import { openPlace, type Place } from './place.ts';

export interface CheckedRun {
  readonly cold: Measured;
  readonly again?: Measured;
  readonly drift?: DriftMeasured;
  readonly half?: Measured;
  /** What was wrong; a run with any is no result. */
  readonly problems: readonly string[];
}

export interface RunInput {
  /** Not only cold. */
  readonly more: boolean;
  readonly progress: (line: string) => void;
}

const quietMs = 3_000;

export async function runOnce(
  contender: Contender,
  objects: readonly CorpusObject[],
  input: RunInput,
): Promise<CheckedRun> {
  const place = await openPlace(input.progress);
  try {
    const worker = await contender.open(place, objects);
    try {
      return await runIn(place, worker, objects, input);
    } finally {
      await worker.close();
    }
  } finally {
    await place.close();
  }
}

async function runIn(
  place: Place,
  worker: Worker,
  objects: readonly CorpusObject[],
  { more, progress }: RunInput,
): Promise<CheckedRun> {
  const problems: string[] = [];
  const check = async (what: string, wanted: readonly CorpusObject[]): Promise<void> => {
    const found = [...(await findDifferences(place.server.admin, wanted))];
    if (!(await staysQuiet(place, quietMs))) found.unshift('objects are written after it was done');
    for (const problem of found.slice(0, 5)) progress(`${what}: ${problem}`);
    problems.push(...found.map((problem) => `${what}: ${problem}`));
  };
  const cold = await measure(place, worker, await worker.cold(), objects.length);
  await check('cold', objects);
  if (!more) return { cold, problems };
  const again = await measure(place, worker, await worker.again(), objects.length);
  const drift = await measureDrift(place, worker, objects);
  const kept = halfOf(objects);
  const deed = await worker.keep(kept);
  if (deed === undefined) return { cold, again, drift, problems };
  const half = await measure(place, worker, deed, kept.length);
  await check('half', kept);
  return { cold, again, drift, half, problems };
}
