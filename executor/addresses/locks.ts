/** Locks by name within a process. */
export class Locks {
  readonly #tails = new Map<string, Promise<void>>();

  /** Does work while nobody else has any of the names. They are taken in one order, so that two never wait for each other. */
  async hold<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    const free: (() => void)[] = [];
    for (const name of [...new Set(names)].sort()) free.push(await this.#take(name));
    try {
      return await work();
    } finally {
      for (const release of free) release();
    }
  }

  async #take(name: string): Promise<() => void> {
    const before = this.#tails.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tails.set(name, promise);
    await before;
    return () => {
      if (this.#tails.get(name) === promise) this.#tails.delete(name);
      resolve();
    };
  }
}
