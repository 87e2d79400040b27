/** The ledger in its ConfigMaps: read whole, written under the version that was read, one shard per changed entry. */
import { annotations, configMapNames, labels, managers } from '../../constructs/api/constants.ts';
import {
  decodeLedger,
  encodeLedger,
  type Ledger,
  type LedgerEntry,
  ledgerKey,
  ledgerWriteOrder,
} from '../../constructs/api/ledger.ts';
import { readSpan, type SpanPosition, spanText } from '../../constructs/api/span.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';

interface Stored {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly text: string;
  readonly shards: string;
  readonly span: string;
}

/** A ledger that a person restored belongs to whatever it was restored with, and nothing of ours ever takes a field by force. */
const takeBack = `if it was restored, save it, delete it, and make it anew with \`kubectl apply --server-side --field-manager=${managers.objects}\``;

/** What decides whether a stored shard is the one that was to be written. */
const says = (object: KubeObject): string => JSON.stringify([storedOf(object).span, textOf(object)]);

const withSpan = (object: KubeObject, span: string): KubeObject => {
  if (span === '') return object;
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, [annotations.span]: span } } };
};

export interface LedgerTarget {
  readonly release: string;
  readonly namespace: string;
}

export type LedgerOpened =
  | { readonly ok: true; readonly store: LedgerStore }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const textOf = (object: KubeObject): string => {
  const data = isObject(object.data) ? object.data[ledgerKey] : undefined;
  return typeof data === 'string' ? data : '';
};

const storedOf = (object: KubeObject): Stored => ({
  uid: object.metadata.uid ?? '',
  resourceVersion: object.metadata.resourceVersion ?? '',
  text: textOf(object),
  shards: object.metadata.annotations?.[annotations.shards] ?? '',
  span: object.metadata.annotations?.[annotations.span] ?? '',
});

/** Reads the ledger of a release, uncached. One that can not be read whole is refused: nothing may be written then. */
export async function openLedger(client: KubeClient, target: LedgerTarget, signal: AbortSignal): Promise<LedgerOpened> {
  const selector = `${labels.holds}=ledger,${labels.release}=${target.release}`;
  const listed = await client.list(
    { apiVersion: 'v1', kind: 'ConfigMap', namespace: target.namespace, labelSelector: selector },
    { signal },
  );
  if (listed.type !== 'listed') return { ok: false, problems: [{ reason: 'ApiUnavailable', message: listed.message }] };
  const decoded = decodeLedger(
    listed.items.map((object) => ({
      metadata: { name: object.metadata.name ?? '', annotations: object.metadata.annotations },
      data: { [ledgerKey]: textOf(object) },
    })),
  );
  if (!decoded.ok) return { ok: false, problems: decoded.problems };
  const first = configMapNames.ledger(target.release, 0);
  const marked = listed.items.find(({ metadata }) => metadata.name === first)?.metadata.annotations;
  const span = readSpan(marked?.[annotations.span], `ConfigMap ${target.namespace}/${first}`);
  if (!span.ok) return { ok: false, problems: span.problems };
  const stored = new Map(listed.items.map((object) => [object.metadata.name ?? '', storedOf(object)]));
  return { ok: true, store: new LedgerStore(client, target, { ...decoded.value, span: span.value }, stored) };
}

/**
 * A release that was completed had a ledger, and its ConfigMaps are never given up. Without it every object would look
 * like a stranger's, and none that is to go would be known.
 */
export const lostLedger = ({ release, namespace }: LedgerTarget): Problem => ({
  reason: 'LedgerUnreadable',
  message: 'the ledger is gone, and payloads were completed with it',
  object: `ConfigMap ${namespace}/${configMapNames.ledger(release, 0)}`,
  remedy: 'restore its ConfigMaps from a backup of etcd; nothing is written without it. Delete none of the objects',
});

/** Made by {@link openLedger}. Changes are made in memory and stored by `flush`; flushes never overlap. */
export class LedgerStore {
  readonly #client: KubeClient;
  readonly #target: LedgerTarget;
  readonly #ledger: Map<string, LedgerEntry>;
  readonly #stored: Map<string, Stored>;
  #shards: number;
  /** Where the release is inside a one-way span; stored by the next `flush`. */
  span: SpanPosition | undefined;
  /** What was sent last to each ConfigMap, while no answer to it was seen. */
  readonly #cut = new Map<string, string>();
  #tail: Promise<unknown> = Promise.resolve();
  #broken: Problem | undefined;
  #beside = false;
  #besideAt = Number.NEGATIVE_INFINITY;

  constructor(
    client: KubeClient,
    target: LedgerTarget,
    decoded: { ledger: Map<string, LedgerEntry>; shards: number; span: SpanPosition | undefined },
    stored: Map<string, Stored>,
  ) {
    this.#client = client;
    this.#target = target;
    this.#ledger = decoded.ledger;
    this.#shards = decoded.shards;
    this.span = decoded.span;
    this.#stored = stored;
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  /** Number of ConfigMaps that hold it. */
  get configMaps(): number {
    return this.#stored.size;
  }

  put(entry: LedgerEntry): void {
    this.#ledger.set(entry.id, entry);
  }

  remove(id: string): void {
    this.#ledger.delete(id);
  }

  /**
   * Stores what changed. Answers the problem that kept it from being stored; after one the store is of no more use and
   * must be opened again, since another writer may have been at work.
   */
  flush(signal: AbortSignal): Promise<Problem | undefined> {
    const run = this.#tail.then(() => this.#write(signal));
    this.#tail = run.catch(() => undefined);
    return run;
  }

  /**
   * Stores what changed beside other work: at most one such write at a time, and none within `quietMs` of the one before. What
   * goes wrong is told by the next {@link flush}.
   */
  flushBeside(clock: Clock, quietMs: number, signal: AbortSignal): void {
    if (this.#beside || clock.monotonic() - this.#besideAt < quietMs) return;
    this.#beside = true;
    const settle = (): void => {
      this.#beside = false;
      this.#besideAt = clock.monotonic();
    };
    // An abort is met by whoever writes objects, too.
    this.flush(signal).then(settle, settle);
  }

  async #write(signal: AbortSignal): Promise<Problem | undefined> {
    if (this.#broken !== undefined) return this.#broken;
    const existing = this.#shards;
    const wanted = encodeLedger(this.#ledger, { ...this.#target, minShards: existing });
    const changes: Step[] = [];
    const added: Step[] = [];
    // While no id can move, and no span begins or ends, the order of the writes means nothing.
    let unordered = wanted.length === existing;
    this.#shards = wanted.length;
    const first = configMapNames.ledger(this.#target.release, 0);
    // An id that moves to a new shard is there before it leaves the old one, and what a crash leaves can be read. New shards
    // hold nothing that is not elsewhere until all of them are there, so that their own order means nothing.
    // While none is stored it still is the first time, also when an earlier store was cut off before its first answer.
    for (const configMap of ledgerWriteOrder(wanted, this.#stored.size === 0 ? 0 : existing)) {
      const { name } = configMap.metadata;
      const known = this.#stored.get(name);
      const shards = configMap.metadata.annotations[annotations.shards] ?? '';
      const span = name === first && this.span !== undefined ? spanText(this.span) : '';
      if (known?.text === configMap.data[ledgerKey] && known?.shards === shards && known?.span === span) continue;
      if (known === undefined && this.#ledger.size === 0) continue;
      unordered &&= known?.shards === shards && known.span === span;
      const object = withSpan(configMap as unknown as KubeObject, span);
      // The first shard is written twice when there was none: what is known of it then is the answer to the first write.
      const step: Step = () => this.#writeShard(object, this.#stored.get(name), signal);
      if (known !== undefined || name === first) changes.push(step);
      else if (added.push(step) === 1) changes.push(() => firstOf(added));
    }
    this.#broken = unordered ? await firstOf(changes) : await inOrder(changes);
    return this.#broken;
  }

  async #writeShard(object: KubeObject, known: Stored | undefined, signal: AbortSignal): Promise<Problem | undefined> {
    const name = object.metadata.name ?? '';
    const cut = this.#cut.get(name);
    this.#cut.set(name, says(object));
    const outcome = await this.#client.apply(object, {
      fieldManager: managers.objects,
      // What it says is known; it need not come back.
      metadataOnly: true,
      signal,
      ...(known === undefined ? {} : { uid: known.uid, resourceVersion: known.resourceVersion }),
    });
    this.#cut.delete(name);
    const done =
      outcome.type === 'created' ||
      ((known !== undefined || ('retried' in outcome && outcome.retried)) && outcome.type === 'configured');
    if (done && 'object' in outcome) {
      this.#stored.set(name, { ...storedOf(outcome.object), text: textOf(object) });
      return undefined;
    }
    // A reply that was lost shows as a conflict with our own write: what is stored decides.
    const live = await this.#client.get(
      { apiVersion: 'v1', kind: 'ConfigMap', namespace: this.#target.namespace, name },
      { signal },
    );
    if (live.type === 'found' && says(live.object) === says(object)) {
      this.#stored.set(name, storedOf(live.object));
      return undefined;
    }
    // One that newer work cut off took effect after all: it is ours, and only its version was not known.
    if (live.type === 'found' && cut !== undefined && says(live.object) === cut)
      return this.#writeShard(object, storedOf(live.object), signal);
    const message =
      'message' in outcome ? outcome.message : 'it exists already, and was not there when the ledger was read';
    return {
      reason: outcome.type === 'unavailable' ? 'ApiUnavailable' : 'LedgerNotWritten',
      message,
      object: `ConfigMap ${this.#target.namespace}/${name}`,
      ...(outcome.type === 'conflict' ? { remedy: takeBack } : {}),
    };
  }
}

type Step = () => Promise<Problem | undefined>;

/** One after the other, up to the first problem. */
async function inOrder(work: readonly Step[]): Promise<Problem | undefined> {
  for (const step of work) {
    const problem = await step();
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** All at once; every one ends before this does. */
async function firstOf(work: readonly Step[]): Promise<Problem | undefined> {
  const results = await Promise.allSettled(work.map((step) => step()));
  const thrown = results.find((result) => result.status === 'rejected');
  if (thrown !== undefined) throw thrown.reason;
  return results.flatMap((result) => (result.status === 'fulfilled' ? (result.value ?? []) : []))[0];
}
