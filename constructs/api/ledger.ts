import { z } from 'zod';
import { type Digest, digestOf, sha256Hex } from '../lib/digest.ts';
import { canonicalJson, type JsonValue } from '../lib/json.ts';
import type { Problem } from '../lib/problems.ts';
import { type ReleaseConfigMap, releaseMetadata } from './configmap.ts';
import { annotations, configMapNames, ledgerFormatVersion, limits } from './constants.ts';
import { digest, dnsLabel, objectUID, requiredText, text, timestamp } from './fields.ts';
import { readShape, type Shaped } from './shape.ts';

/**
 * The ledger: every object id that a release means to have or has, with the UID it was seen under. An id enters it
 * before the first write and leaves it only when the object is known to be gone.
 */

/**
 * `adopting`: it existed before us and is being taken over; until that is done nothing of ours may delete it or set its
 * values.
 */
const ledgerStates = ['intended', 'applied', 'pruning', 'unmanaged', 'adopting'] as const;
export type LedgerState = (typeof ledgerStates)[number];

export const ledgerEntry = z.strictObject({
  id: requiredText(700),
  /** Absent until the object was seen. */
  uid: objectUID().optional(),
  state: z.enum(ledgerStates),
  /** Hex sha256 of the object as the payload lists it. */
  sha256: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/),
  phase: dnsLabel(),
  /** Content digest of the payload that last named the object. */
  payload: digest(),
  /** The payload asked to leave it in place: it is never removed, whatever its live annotations say by then. */
  keep: z.literal(true).optional(),
  /** Why it could not be removed: reason, how often that was tried, and since when (RFC 3339). */
  refused: z
    .strictObject({ reason: requiredText(128), message: text(512), attempts: z.int().min(1), since: timestamp() })
    .optional(),
});
export type LedgerEntry = z.infer<typeof ledgerEntry>;
export type Ledger = ReadonlyMap<string, LedgerEntry>;

const ledgerChunk = z.array(ledgerEntry).max(limits.objects * 2);

/** Entries in the order of their ids. */
const sortedEntries = (ledger: Ledger): LedgerEntry[] =>
  [...ledger.values()].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));

/** Digest over all entries. */
export const ledgerDigest = (ledger: Ledger): Digest => digestOf(sortedEntries(ledger) as unknown as JsonValue);

export interface LedgerConfigMap extends ReleaseConfigMap {
  readonly data: Readonly<Record<string, string>>;
}

/** Key of the one member of `data`. */
export const ledgerKey = 'entries.json';

/** One entry as it is stored, and the number that decides over its shard. */
interface Part {
  readonly place: number;
  readonly text: string;
}

/**
 * Entries in order. The shard of a part among `shards`, a power of two, is the rest of its number: doubling moves an id from n
 * to n or to n + shards, nowhere else.
 */
const partsOf = (ledger: Ledger): Part[] =>
  sortedEntries(ledger).map((entry) => ({
    place: Number.parseInt(sha256Hex(entry.id).slice(0, 8), 16),
    text: canonicalJson(entry as unknown as JsonValue),
  }));

const marks = (shards: number): Record<string, string> => ({
  [annotations.shards]: String(shards),
  [annotations.ledgerFormat]: String(ledgerFormatVersion),
});

const shardTexts = (parts: readonly Part[], shards: number): string[] => {
  const texts: string[][] = Array.from({ length: shards }, () => []);
  for (const { place, text } of parts) texts[place % shards]?.push(text);
  return texts.map((each) => `[${each.join(',')}]`);
};

/**
 * The ledger as ConfigMaps, by shard number. The number of shards is a power of two, never below `minShards`, and the
 * smallest that keeps each below 128 KiB. An id stays in its shard as long as the number does, so that one changed
 * entry is one write.
 *
 * Shards must be written from the highest number down ({@link ledgerWriteOrder}) and none is ever given up: when the
 * number grows, ids move only upwards, so that a crash between two writes leaves an id in two shards and never in none.
 */
export function encodeLedger(
  ledger: Ledger,
  target: { release: string; namespace: string; minShards?: number },
): LedgerConfigMap[] {
  const parts = partsOf(ledger);
  let shards = Math.max(1, target.minShards ?? 1);
  let texts = shardTexts(parts, shards);
  while (texts.some((each) => Buffer.byteLength(each) > limits.chunkBytes)) {
    shards *= 2;
    texts = shardTexts(parts, shards);
  }
  return texts.map((each, n) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...releaseMetadata('ledger', target, configMapNames.ledger(target.release, n)),
      annotations: marks(shards),
    },
    data: { [ledgerKey]: each },
  }));
}

/**
 * The order in which the ConfigMaps must be written so that a crash in between loses nothing.
 * @param existing number of shards that {@link decodeLedger} reported; 0 when there is no ledger yet.
 */
export function ledgerWriteOrder(configMaps: readonly LedgerConfigMap[], existing: number): LedgerConfigMap[] {
  const order = configMaps.toReversed();
  const zero = configMaps[0];
  if (existing > 0 || configMaps.length < 2 || zero === undefined) return order;
  // An empty first shard makes every state of the first write readable.
  const metadata = { ...zero.metadata, annotations: marks(1) };
  return [{ ...zero, metadata, data: { [ledgerKey]: '[]' } }, ...order];
}

export interface ReadLedger {
  readonly ledger: Map<string, LedgerEntry>;
  /** Number of shards, to be passed on as `minShards`; 0 when there are none yet. */
  readonly shards: number;
  /** False after a crash while the number grew: all shards must be written before any entry is removed. */
  readonly settled: boolean;
}

export interface ReadLedgerConfigMap {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> | undefined };
  readonly data?: Readonly<Record<string, string>> | undefined;
}

/**
 * The ledger from its ConfigMaps, in any order. An id that a crash left in two shards is taken from the one written
 * under the larger number of shards. A damaged ledger is refused whole: acting on a part of it could lose an object.
 */
export function decodeLedger(configMaps: readonly ReadLedgerConfigMap[]): Shaped<ReadLedger> {
  const problems = tooNew(configMaps);
  if (problems.length > 0) return { ok: false, problems };
  const chosen = new Map<string, { entry: LedgerEntry; shards: number }>();
  const written = new Map<number, number>();
  let most = 0;
  for (const configMap of configMaps) {
    const object = `ConfigMap ${configMap.metadata.name}`;
    const shards = Number(configMap.metadata.annotations?.[annotations.shards]);
    if (!Number.isInteger(shards) || shards < 1 || (shards & (shards - 1)) !== 0) {
      problems.push(unreadable(object, `annotation ${annotations.shards} is not a power of two`));
      continue;
    }
    most = Math.max(most, shards);
    written.set(Number(configMap.metadata.name.replace(/^.*-/, '')), shards);
    const entries = readEntries(configMap.data?.[ledgerKey], object);
    if (!entries.ok) problems.push(...entries.problems);
    else
      for (const entry of entries.value)
        if ((chosen.get(entry.id)?.shards ?? 0) < shards) chosen.set(entry.id, { entry, shards });
  }
  for (const n of missingShards(written, most))
    problems.push(
      unreadable(
        `ConfigMap ${(configMaps[0]?.metadata.name ?? '').replace(/[0-9]+$/, String(n))}`,
        `the shard is missing, one of ${most}`,
      ),
    );
  if (problems.length > 0) return { ok: false, problems };
  const ledger = new Map([...chosen].map(([id, { entry }]) => [id, entry]));
  return {
    ok: true,
    value: { ledger, shards: most, settled: [...written.values()].every((shards) => shards === most) },
  };
}

/** Shards whose ids are in no other: neither written themselves, nor still part of one written before the number grew. */
function missingShards(written: ReadonlyMap<number, number>, shards: number): number[] {
  const covered = (n: number): boolean => {
    if (written.has(n)) return true;
    for (let fewer = shards / 2; fewer >= 1; fewer /= 2) {
      const before = written.get(n % fewer);
      if (before !== undefined && before <= fewer) return true;
    }
    return false;
  };
  return Array.from({ length: shards }, (_, n) => n).filter((n) => !covered(n));
}

const unreadable = (object: string, message: string): Problem => ({
  reason: 'LedgerUnreadable',
  message,
  object,
  remedy: 'restore the ConfigMap from a backup of etcd; the executor writes nothing until it can read the ledger',
});

/** A ledger of a format that is newer than this executor; it may say what this one would not understand. */
function tooNew(configMaps: readonly ReadLedgerConfigMap[]): Problem[] {
  return configMaps.flatMap(({ metadata }) => {
    const format = Number(metadata.annotations?.[annotations.ledgerFormat] ?? 0);
    if (format <= ledgerFormatVersion) return [];
    return [
      {
        reason: 'ExecutorTooOld',
        message: `the ledger has format ${format}; this executor reads up to ${ledgerFormatVersion}, and writes nothing`,
        object: `ConfigMap ${metadata.name}`,
        path: `metadata.annotations[${annotations.ledgerFormat}]`,
        remedy: 'upgrade the executor again: deliver unit 10-system of the newer commit',
      },
    ];
  });
}

function readEntries(raw: string | undefined, object: string): Shaped<LedgerEntry[]> {
  if (raw === undefined) return { ok: false, problems: [unreadable(object, `data has no ${ledgerKey}`)] };
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    return { ok: false, problems: [unreadable(object, `${ledgerKey} is not JSON`)] };
  }
  return readShape(ledgerChunk, value, { reason: 'LedgerUnreadable', object });
}
