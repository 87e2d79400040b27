/**
 * When the wait for the Lease ends: with the process's signal, but not while a term runs. A term ends by itself, and keeps
 * the Lease until its writers have stopped.
 */
export class Seat {
  readonly #outer: AbortSignal;
  readonly #end = new AbortController();
  #taken = false;

  constructor(outer: AbortSignal) {
    this.#outer = outer;
    if (outer.aborted) this.#end.abort();
    outer.addEventListener('abort', () => this.#leave(), { once: true });
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  async during(work: () => Promise<void>): Promise<void> {
    this.#taken = true;
    try {
      await work();
    } finally {
      this.#taken = false;
      // A term that lost its Lease on the way out must not lead to another.
      if (this.#outer.aborted) this.#end.abort();
    }
  }

  #leave(): void {
    if (!this.#taken) this.#end.abort();
  }
}
