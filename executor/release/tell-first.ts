/** The end of the first whole pass of a payload: its status, then the watch over what it wrote. */
import { rest } from '../../constructs/lib/clock.ts';
import type { Keeping } from './keeping.ts';
import type { WorkerDeps } from './worker-options.ts';

/** How long what comes after the end of a pass waits for the status that tells of it. */
const tellLimitMs = 1_000;

/** What people and programs wait for goes before whole lists and clean-up, which nobody waits for. Never rejects. */
export async function tellFirst(
  { clock, told }: Pick<WorkerDeps, 'clock' | 'told'>,
  keeping: Pick<Keeping, 'watch'>,
  signal: AbortSignal,
): Promise<void> {
  if (told !== undefined) {
    const over = new AbortController();
    void told().finally(() => over.abort());
    await rest(clock, tellLimitMs, AbortSignal.any([signal, over.signal]));
  }
  keeping.watch();
}
