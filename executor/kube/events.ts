/** Events for people: few, short, never twice the same, never the reason that work waits. */
import type { Clock } from '../../constructs/lib/clock.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { boundedName } from '../../constructs/lib/names.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { KubeClient } from './client.ts';
import { microTime } from './microtime.ts';
import type { ObjectRef } from './types.ts';
import type { EventObject } from './verbs/create.ts';

/** The object that an Event is about. */
export interface EventTarget extends ObjectRef {
  readonly uid?: string;
}

export interface EventInput {
  readonly regarding: EventTarget;
  readonly type: 'Normal' | 'Warning';
  /** A word in UpperCamelCase, at most 128 characters. */
  readonly reason: string;
  /** What was done or tried, a word in UpperCamelCase, at most 128 characters. */
  readonly action: string;
  /** For people; cut at 1024 bytes, redacted. */
  readonly note: string;
  readonly related?: EventTarget;
  /** For programs that read Events. */
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** A fresh lower-case word for each Event's name. */
  readonly uniqueId: () => string;
  /** `keelson.dev/executor` and the pod's name. */
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly fieldManager: string;
  /** Repetitions of an Event within this time become one further Event that tells their number. Default 10 min. */
  readonly aggregateMs?: number;
  /** Events per object: how many at once, and the time in which one more is earned. Default 25, one per 5 min. */
  readonly burst?: number;
  readonly refillMs?: number;
  /** Events that wait to be sent; more are dropped. Default 200. */
  readonly capacity?: number;
}

interface Repeated {
  readonly input: EventInput;
  readonly since: number;
  count: number;
  last: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

export const longestNoteBytes = 1024;
const rememberedKeys = 4096;

/** At most `max` bytes of UTF-8, never half a character; a cut text ends in an ellipsis. */
export function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  const ellipsis = '…';
  let bytes = Buffer.byteLength(ellipsis);
  let out = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > max) break;
    out += character;
  }
  return out + ellipsis;
}

function reference({ apiVersion, kind, namespace, name, uid }: EventTarget): { [key: string]: string } {
  return {
    apiVersion,
    kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
  };
}

/**
 * Records Events through `events.k8s.io/v1`. The first of its kind is sent at once; the same again (object, reason, note)
 * within `aggregateMs` is counted, and told as one Event with a series when that time is over.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #seen = new Map<string, Repeated>();
  readonly #buckets = new Map<string, Bucket>();
  readonly #queue: EventObject[] = [];
  #sent = 0;
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** How many Events were sent, and how many given up: rate limit, full queue, or a refusal. */
  get counts(): { readonly sent: number; readonly dropped: number; readonly waiting: number } {
    return { sent: this.#sent, dropped: this.#dropped, waiting: this.#queue.length };
  }

  /** Takes an Event to be sent by {@link EventRecorder.run}. Never waits and never throws. */
  record(raw: EventInput): void {
    const input = { ...raw, note: cutBytes(redact(raw.note), longestNoteBytes) };
    const now = this.#options.clock.monotonic();
    this.#expire(now);
    const key = sha256Hex(
      JSON.stringify([reference(input.regarding), input.type, input.reason, input.action, input.note]),
    );
    const known = this.#seen.get(key);
    if (known !== undefined) {
      known.count += 1;
      known.last = this.#options.clock.now();
      return;
    }
    if (this.#seen.size >= rememberedKeys) this.#forgetOldest();
    this.#seen.set(key, { input, since: now, count: 0, last: this.#options.clock.now() });
    this.#enqueue(input, undefined);
  }

  /** Sends what was recorded until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#expire(this.#options.clock.monotonic());
      await this.#drain(signal);
      try {
        await this.#options.clock.sleep(250, signal);
      } catch {
        return;
      }
    }
  }

  /** Sends what waits, counted repetitions included, for at most `limitMs`: the last words of a process. */
  async flush(limitMs: number, signal?: AbortSignal): Promise<void> {
    this.#expire(Number.POSITIVE_INFINITY);
    const limit = AbortSignal.timeout(limitMs);
    await this.#drain(signal === undefined ? limit : AbortSignal.any([signal, limit]));
  }

  #expire(now: number): void {
    const { aggregateMs = 600_000 } = this.#options;
    for (const [key, entry] of this.#seen) {
      // Entries are in the order of their time.
      if (now - entry.since < aggregateMs) return;
      this.#seen.delete(key);
      this.#tellRepeats(entry);
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#seen;
    if (oldest === undefined) return;
    this.#seen.delete(oldest[0]);
    this.#tellRepeats(oldest[1]);
  }

  #tellRepeats({ input, count, last }: Repeated): void {
    if (count === 0) return;
    // The API wants a series of two or more: the first, already told, counts as one of them.
    this.#enqueue(input, { count: count + 1, lastObservedTime: microTime(last) });
  }

  #allowed(input: EventInput): boolean {
    const { burst = 25, refillMs = 300_000, clock } = this.#options;
    const now = clock.monotonic();
    const key = JSON.stringify(reference(input.regarding));
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) / refillMs);
    bucket.at = now;
    // The latest used stand last, so that the oldest can go.
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > rememberedKeys) this.#buckets.delete(this.#buckets.keys().next().value ?? '');
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  #enqueue(input: EventInput, series: { count: number; lastObservedTime: string } | undefined): void {
    const { capacity = 200 } = this.#options;
    if (this.#queue.length >= capacity || !this.#allowed(input)) this.#dropped += 1;
    else this.#queue.push(this.#eventOf(input, series));
  }

  #eventOf(input: EventInput, series: { count: number; lastObservedTime: string } | undefined): EventObject {
    const { clock, uniqueId, reportingController, reportingInstance } = this.#options;
    const { regarding, related } = input;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: {
        name: `${boundedName([regarding.name], 200).replace(/[-.]+$/, '')}.${uniqueId()}`,
        // Events about cluster-scoped objects live in `default`: the API server insists.
        namespace: regarding.namespace ?? 'default',
        ...(input.annotations === undefined ? {} : { annotations: { ...input.annotations } }),
      },
      eventTime: microTime(clock.now()),
      type: input.type,
      reason: input.reason,
      action: input.action,
      note: input.note,
      reportingController,
      reportingInstance: cutBytes(reportingInstance, 128),
      regarding: reference(regarding),
      ...(related === undefined ? {} : { related: reference(related) }),
      ...(series === undefined ? {} : { series }),
    };
  }

  async #drain(signal: AbortSignal): Promise<void> {
    const { client, fieldManager } = this.#options;
    for (let next = this.#queue[0]; next !== undefined && !signal.aborted; next = this.#queue[0]) {
      let kept = false;
      try {
        const outcome = await client.create(next, { fieldManager, signal, attempts: 2, timeoutMs: 5_000 });
        // A dead server is waited for; what it refuses is given up.
        kept = outcome.type === 'unavailable';
        if (outcome.type === 'created' || outcome.type === 'exists') this.#sent += 1;
        else if (!kept) this.#dropped += 1;
      } catch {
        kept = true;
      }
      if (kept) return;
      this.#queue.shift();
    }
  }
}
