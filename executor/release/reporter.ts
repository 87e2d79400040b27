/** Writes the status of one Release, when it says something new: at once at an edge, after a while for mere numbers. */
import { managers } from '../../constructs/api/constants.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import { type StatusOutcome, writeStatus } from '../kube/status.ts';
import type { KubeObject } from '../kube/types.ts';
import { Wake } from './wake.ts';

export interface ReporterOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** The Release as last seen. */
  readonly live: () => KubeObject | undefined;
  readonly build: (live: KubeObject) => JsonObject;
  /** How long numbers may wait to be written, and how long a failed write is waited for. */
  readonly quietMs: number;
  readonly retryMs: number;
  readonly onWritten?: (outcome: StatusOutcome) => void;
  readonly onError?: (error: unknown) => void;
}

const version = (object: KubeObject): bigint => {
  const text = object.metadata.resourceVersion ?? '';
  return /^\d+$/.test(text) ? BigInt(text) : -1n;
};

export class StatusReporter {
  readonly #options: ReporterOptions;
  readonly #wake: Wake;
  #written: KubeObject | undefined;
  #edge = '';
  #dirty = false;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#wake = new Wake(options.clock);
  }

  /** Says that the record changed. `edge` names its state; when that is new, the status is written at once. */
  changed(edge: string): void {
    this.#dirty = true;
    if (edge === this.#edge) return;
    this.#edge = edge;
    this.#wake.set();
  }

  /** Writes until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const failed = this.#dirty && !(await this.flush(signal));
      await this.#wake.wait(failed ? this.#options.retryMs : this.#options.quietMs, signal);
    }
  }

  /** Writes now. Answers whether the status says what the record says. */
  flush(signal: AbortSignal): Promise<boolean> {
    const run = this.#writing.then(() => this.#write(signal));
    this.#writing = run;
    return run;
  }

  /** Writes what was not written yet, once. */
  async lastWords(signal: AbortSignal): Promise<void> {
    if (this.#dirty) await this.flush(signal);
  }

  /** The newer of what was seen and what was written: the watch is behind our own writes for a moment. */
  #live(): KubeObject | undefined {
    const seen = this.#options.live();
    const written = this.#written;
    if (seen === undefined || written === undefined || seen.metadata.uid !== written.metadata.uid) return seen;
    return version(written) > version(seen) ? written : seen;
  }

  async #write(signal: AbortSignal): Promise<boolean> {
    const live = this.#live();
    if (live === undefined) return true;
    this.#dirty = false;
    const { client, build, onWritten } = this.#options;
    try {
      const outcome = await writeStatus(client, live, build, { fieldManager: managers.status, signal });
      onWritten?.(outcome);
      if (outcome.type === 'written') this.#written = outcome.object;
      if (outcome.type === 'written' || outcome.type === 'unchanged' || outcome.type === 'gone') return true;
    } catch (error) {
      // A status that can not be written stops no work: it is tried again.
      if (!signal.aborted) this.#options.onError?.(error);
    }
    this.#dirty = true;
    return false;
  }
}
