import picocolors from 'picocolors';
import { formatDuration } from '../../constructs/lib/duration.ts';

/** How the quickstart speaks: numbered steps with their times, details below them. Everything goes to standard error. */
export interface Say {
  /** Runs one step, telling its name before and its time after. */
  step<T>(title: string, work: () => Promise<T>): Promise<T>;
  /** A line of detail. */
  note(line: string): void;
}

/** A voice that numbers its steps. `elapsed` answers milliseconds of a clock that never jumps. */
export function speak(write: (line: string) => void, elapsed: () => number): Say {
  let count = 0;
  return {
    async step(title, work) {
      const began = elapsed();
      write(`${picocolors.bold(`[${++count}]`)} ${title}`);
      const result = await work();
      write(picocolors.dim(`    done in ${formatDuration(Math.round((elapsed() - began) / 100) * 100)}`));
      return result;
    },
    note: (line) => write(picocolors.dim(`    ${line}`)),
  };
}
