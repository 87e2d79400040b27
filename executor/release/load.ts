/** Gets hold of a payload: the executor's own copy where it is good, else what its source holds. */
import { annotations } from '../../constructs/api/constants.ts';
import type { Payload } from '../../constructs/api/payload-codec.ts';
import type { AcceptanceStep } from '../../constructs/api/release.ts';
import { isDigest } from '../../constructs/lib/digest.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Item, itemsOf } from '../apply/items.ts';
import type { Fetched, SourceRevision } from '../source/source.ts';
import { readTrustSecret } from '../source/trust.ts';
import { type Verified, verifyArchive } from '../source/verify.ts';
import type { Acceptance, AcceptDeps, AcceptInput } from './acceptance.ts';
import { retryOfAll } from './retry.ts';

/** A payload that was verified and is at hand. */
export interface Loaded {
  readonly payload: Payload;
  readonly archive: Uint8Array;
  readonly items: readonly Item[];
  readonly unverified?: string;
  readonly fromRetained: boolean;
  readonly revision?: SourceRevision;
}

export type LoadDeps = Pick<
  AcceptDeps,
  'client' | 'namespace' | 'source' | 'retained' | 'allowUnsigned' | 'onStep' | 'onRevision'
>;

export interface LoadInput extends Pick<AcceptInput, 'release' | 'digest' | 'pinned' | 'pin' | 'signal' | 'spec'> {
  /**
   * The payload was accepted before and is enforced: it stays so when the key that signed it is no longer trusted, and a
   * copy that is damaged is made anew. Called before that is written. @throws when this process may not write.
   */
  readonly accepted?: () => void;
}

export type LoadOutcome =
  | { readonly ok: true; readonly loaded: Loaded }
  | { readonly ok: false; readonly refused: Acceptance };

const refuse = (step: AcceptanceStep, problems: readonly Problem[]): LoadOutcome => ({
  ok: false,
  refused: { type: 'refused', step, problems, retry: retryOfAll(problems) },
});

const notRetained = (pin: string): Problem => ({
  reason: 'PinNotRetained',
  message: isDigest(pin)
    ? `payload ${pin} is not among the retained copies`
    : `annotation ${annotations.pin} says ${JSON.stringify(pin.slice(0, 100))}, which is not the digest of a payload`,
  remedy: 'pin a digest of status.history that is still retained, or remove the annotation keelson.dev/pin',
});

type Archive = Extract<Fetched, { type: 'archive' }>;

/** Bytes and what verification made of them; or what is wrong with either. */
type Looked =
  | { readonly ok: true; readonly archive: Archive; readonly verified: Extract<Verified, { ok: true }> }
  | { readonly ok: false; readonly archive?: Archive; readonly problems: readonly Problem[] };

type Look = (fetched: Fetched, acceptedBefore?: boolean) => Promise<Looked>;

/** Fetches and verifies a payload: from the retained copies where there is a good one, else from its source. */
export async function loadPayload(deps: LoadDeps, input: LoadInput): Promise<LoadOutcome> {
  const wanted = { release: input.release, digest: input.digest };
  deps.onStep('Fetch');
  const [kept, trust] = await Promise.all([
    deps.retained.fetch(wanted, input.signal),
    readTrustSecret(deps.client, deps.namespace, input.signal),
  ]);
  if (kept.type === 'unavailable') return refuse('Fetch', [kept.problem]);
  if (kept.type === 'incomplete' && input.pinned) return refuse('Fetch', [notRetained(input.pin ?? input.digest)]);
  if (trust.type === 'unavailable') return refuse('Verify', [trust.problem]);
  const look: Look = async (archive, acceptedBefore = false) => {
    if (archive.type !== 'archive')
      return { ok: false, problems: 'problems' in archive ? archive.problems : [archive.problem] };
    deps.onStep('Verify');
    const policy = { trust: trust.trust, allowUnsigned: deps.allowUnsigned, acceptedBefore };
    const verified = await verifyArchive(archive.archive, wanted, policy);
    return verified.ok
      ? { ok: true, archive, verified }
      : { ok: false, archive, problems: [...verified.problems, ...trust.problems] };
  };
  const own = await look(kept);
  return own.ok ? { ok: true, loaded: loadedFrom(own, true) } : loadAnew(deps, input, look, kept, own);
}

/** The own copy is not there, or is no good: what the source holds counts, and a payload that is enforced stays so. */
async function loadAnew(
  deps: LoadDeps,
  input: LoadInput,
  look: Look,
  kept: Fetched,
  own: Extract<Looked, { ok: false }>,
): Promise<LoadOutcome> {
  const { release, digest, spec, signal } = input;
  const source = await deps.source.fetch({ release, digest, from: spec.source }, signal, deps.onRevision);
  const fresh = await look(source);
  if (fresh.ok) {
    const loaded = loadedFrom(fresh, false);
    await mend(deps, input, loaded);
    return { ok: true, loaded };
  }
  const enforced = input.accepted === undefined ? own : await look(kept, true);
  if (enforced.ok) return { ok: true, loaded: loadedFrom(enforced, true) };
  if (kept.type === 'incomplete') return refuse(fresh.archive === undefined ? 'Fetch' : 'Verify', fresh.problems);
  // That nothing has come is no news about a payload whose own copy is refused.
  const more = source.type === 'incomplete' ? [] : fresh.problems;
  return refuse('Verify', [...own.problems, ...more]);
}

function loadedFrom({ archive: from, verified }: Extract<Looked, { ok: true }>, fromRetained: boolean): Loaded {
  const { payload, unverified } = verified;
  const { archive, revision, originRevision } = from;
  const origin = originRevision === undefined ? {} : { originRevision };
  return {
    payload,
    archive,
    items: itemsOf(payload),
    fromRetained,
    ...(unverified === undefined ? {} : { unverified }),
    ...(revision === undefined ? {} : { revision: { revision, ...origin } }),
  };
}

/** Makes the copy of an enforced payload anew. When that fails it is tried again at the next start; the payload is at hand. */
async function mend(deps: LoadDeps, { release, digest, accepted, signal }: LoadInput, loaded: Loaded): Promise<void> {
  if (accepted === undefined) return;
  accepted();
  await deps.retained.save({ release, digest, ...loaded.revision }, loaded.archive, signal);
}
