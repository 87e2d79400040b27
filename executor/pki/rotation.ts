import type { KeyPair } from './certificates.ts';

/**
 * Authorities and their succession. A new one is believed for a while before it signs, and an old one is believed until
 * all that it signed has expired: at no moment does anybody hold a certificate that somebody else does not believe.
 *
 * ```
 * steady ──(asked for, or a third of its life is left)──► introduced ──(spread)──► promoted ──(expired)──► steady
 *  trusts 1                                                trusts 2, old signs      trusts 2, new signs
 * ```
 */

/** An authority with what has to be known of it; times in milliseconds since 1970. */
export interface Authority extends KeyPair {
  /** Fingerprint of the certificate: sha256 in lower-case hexadecimal. */
  readonly id: string;
  readonly from: number;
  readonly to: number;
}

/** An authority that is only believed: nobody has its key any more. */
export type FormerAuthority = Omit<Authority, 'key'> & { readonly key?: string };

export interface Succession {
  readonly current: Authority;
  /** Introduced: believed, and not signing yet. */
  readonly next?: Authority;
  /** Promoted: the one before, still believed. */
  readonly previous?: FormerAuthority;
  /** When `next` was introduced, or `previous` stopped signing. */
  readonly since?: number;
  /** The request for a rotation that was answered last. */
  readonly answered?: string;
}

export type Stage = 'steady' | 'introduced' | 'promoted';

export const stageOf = ({ next, previous }: Succession): Stage =>
  next !== undefined ? 'introduced' : previous !== undefined ? 'promoted' : 'steady';

export interface RotationTimings {
  /** How long an authority is valid. */
  readonly lifeMs: number;
  /** How long a new authority is believed before it signs: probes read it from a file that a kubelet refreshes. */
  readonly spreadMs: number;
  /** How long an old authority is believed after it signed last: a certificate's life, and some more. */
  readonly retireMs: number;
}

export type RotationStep =
  | { readonly type: 'none' }
  | { readonly type: 'introduce'; readonly why: 'asked' | 'ageing' }
  | { readonly type: 'promote' }
  | { readonly type: 'retire' };

/** What is to be done now. `asked` names a request for a rotation, of which there may be one at a time. */
export function rotationStep(
  succession: Succession,
  asked: string | undefined,
  now: number,
  timings: RotationTimings,
): RotationStep {
  const { current, since = 0, answered } = succession;
  const elapsed = now - since;
  switch (stageOf(succession)) {
    case 'introduced':
      return elapsed >= timings.spreadMs ? { type: 'promote' } : { type: 'none' };
    case 'promoted':
      return elapsed >= timings.retireMs ? { type: 'retire' } : { type: 'none' };
    case 'steady':
      if (asked !== undefined && asked !== answered) return { type: 'introduce', why: 'asked' };
      if (now >= current.to - (current.to - current.from) / 3) return { type: 'introduce', why: 'ageing' };
      return { type: 'none' };
  }
}

/** The succession after a step. `fresh` is the authority that is introduced. */
export function afterStep(
  succession: Succession,
  step: RotationStep,
  now: number,
  fresh: { readonly authority: Authority; readonly asked: string | undefined } | undefined,
): Succession {
  const { current, next, answered } = succession;
  const kept = answered === undefined ? {} : { answered };
  switch (step.type) {
    case 'none':
      return succession;
    case 'introduce':
      if (fresh === undefined) throw new TypeError('there is no authority to introduce');
      return {
        current,
        next: fresh.authority,
        since: now,
        ...(fresh.asked === undefined ? kept : { answered: fresh.asked }),
      };
    case 'promote':
      if (next === undefined) throw new TypeError('there is no authority to promote');
      return { current: next, previous: current, since: now, ...kept };
    case 'retire':
      return { current, ...kept };
  }
}

/** Everybody who is believed, the one that signs first. */
export const trusted = ({ current, next, previous }: Succession): readonly FormerAuthority[] => [
  current,
  ...(next === undefined ? [] : [next]),
  ...(previous === undefined ? [] : [previous]),
];

/** Whoever can sign for the executor when it dials: probes that read an old file believe the old one only. */
export const signers = (succession: Succession): readonly Authority[] =>
  trusted(succession).flatMap(({ key, ...rest }) => (key === undefined ? [] : [{ ...rest, key }]));

/**
 * Whether a certificate is to be replaced: a third of its life is over, so that two thirds are left for an executor that
 * is away; or another authority signs by now.
 */
export function renewalDue(
  certificate: { readonly from: number; readonly to: number },
  signedByCurrent: boolean,
  now: number,
): boolean {
  return !signedByCurrent || now >= certificate.from + (certificate.to - certificate.from) / 3;
}
