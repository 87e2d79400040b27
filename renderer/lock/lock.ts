import { apiVersion } from '../../constructs/api/constants.ts';
import type { DeterminismProof, Lock, LockedImage } from '../../constructs/api/lock.ts';
import { formatImageRef, imageName, parseImageRef } from '../../constructs/lib/imageref.ts';
import { canonicalJson, type JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import { keyOf, type LockNeeds } from './collect.ts';

/** What of an existing lock is resolved again: an image by its reference or name, or a group of them. */
export type Update =
  | { readonly what: 'nothing' | 'chart' | 'probe' | 'executor' }
  | { readonly what: 'image'; readonly name: string };

export const parseUpdate = (text: string | undefined): Update => {
  if (text === undefined) return { what: 'nothing' };
  if (text === 'chart' || text === 'probe' || text === 'executor') return { what: text };
  return { what: 'image', name: text };
};

export interface LockChange {
  readonly what: 'chart' | 'image';
  readonly name: string;
  readonly from?: string;
  readonly to?: string;
}

export interface LockResult {
  readonly lock: Lock;
  /** The file; the same needs give the same bytes. */
  readonly bytes: Uint8Array;
  readonly changes: readonly LockChange[];
}

/** Resolves references; the renderer's own is given by whoever composes. */
export type Resolve = (texts: readonly string[]) => Promise<{ images: LockedImage[]; problems: readonly Problem[] }>;

/** Whether an update asks for an image that the lock holds already. */
function asksFor(update: Update, text: string, needs: LockNeeds): boolean {
  const { images } = needs.loaded.cluster.spec;
  switch (update.what) {
    case 'nothing':
      return false;
    case 'executor':
      return keyOf(text) === keyOf(images.executor);
    case 'probe':
      return needs.probeImages.has(keyOf(text));
    case 'chart':
      return needs.chartImages.has(keyOf(text));
    case 'image': {
      const ref = parseImageRef(text);
      if (ref === undefined) return false;
      const names = [text, keyOf(text), imageName(ref), formatImageRef(ref), ref.repository.split('/').at(-1)];
      return names.includes(update.name);
    }
  }
}

function updateProblem(update: Update, needs: LockNeeds): Problem | undefined {
  if (update.what === 'nothing' || needs.images.some((text) => asksFor(update, text, needs))) return undefined;
  const name = update.what === 'image' ? update.name : update.what;
  return {
    reason: 'UnknownLockEntry',
    message: `nothing that is locked is called ${name}`,
    remedy: `use chart, probe, executor, or one of ${needs.images.join(', ') || '(no images)'}`,
  };
}

/**
 * The lock of a cluster. What is locked stays as it is unless it is asked for: a tag that moved changes nothing by
 * itself. What is no longer used goes.
 * @param helm version of Helm that charts were rendered with; undefined when there are none.
 */
export async function makeLock(
  needs: LockNeeds,
  options: { readonly update: Update; readonly helm: string | undefined; readonly resolve: Resolve },
): Promise<{ ok: true; result: LockResult } | { ok: false; problems: readonly Problem[] }> {
  const wrong = updateProblem(options.update, needs);
  if (wrong !== undefined) return { ok: false, problems: [wrong] };
  const before = needs.loaded.lock;
  const known = new Map((before?.spec.images ?? []).map((image) => [keyOf(image.ref), image]));
  const wanted = needs.images.filter((text) => !known.has(keyOf(text)) || asksFor(options.update, text, needs));
  const resolved = wanted.length === 0 ? { images: [], problems: [] } : await options.resolve(wanted);
  if (resolved.problems.length > 0) return { ok: false, problems: resolved.problems };
  const fresh = new Map(resolved.images.map((image) => [keyOf(image.ref), image]));
  const images = needs.images.flatMap((text) => {
    const image = fresh.get(keyOf(text)) ?? known.get(keyOf(text));
    return image === undefined ? [] : [{ ...image, ref: text }];
  });
  const lock: Lock = {
    apiVersion,
    kind: 'Lock',
    metadata: { name: needs.loaded.cluster.metadata.name },
    spec: {
      tools: options.helm === undefined ? {} : { helm: options.helm },
      charts: [...needs.charts],
      images: images.sort((a, b) => (a.ref < b.ref ? -1 : 1)),
      determinism: unique(needs.determinism),
    },
  };
  const bytes = Buffer.from(dumpYaml(lock as unknown as JsonObject));
  return { ok: true, result: { lock, bytes, changes: changesOf(before, lock) } };
}

function unique(proofs: readonly DeterminismProof[]): DeterminismProof[] {
  const byText = new Map(proofs.map((proof) => [canonicalJson({ ...proof }), proof]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, proof]) => proof);
}

function changesOf(before: Lock | undefined, after: Lock): LockChange[] {
  const images = (lock: Lock | undefined) => new Map((lock?.spec.images ?? []).map((i) => [keyOf(i.ref), i.digest]));
  const charts = (lock: Lock | undefined) => new Map((lock?.spec.charts ?? []).map((c) => [c.source, c.digest]));
  return [...difference('chart', charts(before), charts(after)), ...difference('image', images(before), images(after))];
}

function difference(what: LockChange['what'], before: Map<string, string>, after: Map<string, string>): LockChange[] {
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  return names.flatMap((name) => {
    const [from, to] = [before.get(name), after.get(name)];
    if (from === to) return [];
    return [{ what, name, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }];
  });
}
