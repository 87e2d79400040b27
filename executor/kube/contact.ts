/** Whether the API server answers, as the requests of this process see it. */
import type { Clock } from '../../constructs/lib/clock.ts';
import type { AttemptInfo } from './call.ts';

/** `lost`: no answer for so long that what was seen before may be wrong. `back`: the first answer after that. */
export type ContactEvent = 'lost' | 'back';

/** Statuses with which a server, or a proxy before it, says that it can not answer now. */
const noAnswer = new Set([502, 503, 504]);

export interface ContactOptions {
  readonly clock: Clock;
  /** How long every request must have gone without an answer. */
  readonly silenceMs: number;
}

/** Told of every attempt; tells those who listen when the API server is lost, and when it is back. */
export class Contact {
  readonly #options: ContactOptions;
  readonly #listeners = new Set<(event: ContactEvent) => void>();
  #since: number | undefined;
  #returned: number | undefined;
  /** Present while nothing is answered; ends the wait for the silence to be long enough. */
  #silent: AbortController | undefined;

  constructor(options: ContactOptions) {
    this.#options = options;
    this.#since = options.clock.monotonic();
  }

  /** Since when it answers, on the monotonic clock; undefined while it is lost. */
  get since(): number | undefined {
    return this.#since;
  }

  /** When it came back from the last outage that this process saw; undefined when there was none. */
  get returned(): number | undefined {
    return this.#returned;
  }

  /** Listens until the answer is called. */
  listen(listener: (event: ContactEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  attempted({ status }: Pick<AttemptInfo, 'status'>): void {
    // A 500 may be about one object alone: it proves neither.
    if (status === 500) return;
    if (status === undefined || noAnswer.has(status)) this.#silence();
    else this.#answered();
  }

  /** Ends the wait of a silence; nothing of it is left then. */
  close(): void {
    this.#silent?.abort();
  }

  #silence(): void {
    if (this.#silent !== undefined || this.#since === undefined) return;
    const { clock, silenceMs } = this.#options;
    const silent = new AbortController();
    this.#silent = silent;
    clock.sleep(silenceMs, silent.signal).then(
      () => {
        this.#since = undefined;
        this.#tell('lost');
      },
      // An answer came, or the process ends.
      () => undefined,
    );
  }

  #answered(): void {
    this.#silent?.abort();
    this.#silent = undefined;
    if (this.#since !== undefined) return;
    this.#since = this.#options.clock.monotonic();
    this.#returned = this.#since;
    this.#tell('back');
  }

  #tell(event: ContactEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
