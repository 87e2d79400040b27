/** Runs pieces of work, at most `size` at a time. */
export interface Pool {
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function createPool(size: number): Pool {
  let free = size;
  const waiting: (() => void)[] = [];
  return {
    async run(work) {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => void waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        // The place goes to the next one directly, so that nobody comes in between.
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
