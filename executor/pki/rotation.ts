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
  /** `invalid`: the newest one is not valid at this time. It was made while a clock was wrong, or nobody was there for long. */
  | { readonly type: 'introduce'; readonly why: 'asked' | 'ageing' | 'invalid' }
  | { readonly type: 'promote' }
  | { readonly type: 'retire' }
  /** The stage began in what is the future by now: a clock was ahead. Its time counts from now on. */
  | { readonly type: 'recount' };

const isValid = ({ from, to }: FormerAuthority, now: number): boolean => from <= now && now < to;

/** What is to be done now. `asked` names a request for a rotation, of which there may be one at a time. */
export function rotationStep(
  succession: Succession,
  asked: string | undefined,
  now: number,
  timings: RotationTimings,
): RotationStep {
  const { current, next, since = 0, answered } = succession;
  // An authority is valid from a little before it was made: a clock that was merely corrected does not come here.
  if (!isValid(next ?? current, now)) return { type: 'introduce', why: 'invalid' };
  const elapsed = now - since;
  if (stageOf(succession) !== 'steady' && -elapsed > timings.spreadMs) return { type: 'recount' };
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
  const { current, next, previous, answered } = succession;
  const kept = answered === undefined ? {} : { answered };
  switch (step.type) {
    case 'none':
      return succession;
    case 'introduce':
      if (fresh === undefined) throw new TypeError('there is no authority to introduce');
      return {
        current,
        next: fresh.authority,
        // There is one where the current one can not sign: then it is the one that does.
        ...(previous === undefined ? {} : { previous }),
        since: now,
        ...(fresh.asked === undefined ? kept : { answered: fresh.asked }),
      };
    case 'promote':
      if (next === undefined) throw new TypeError('there is no authority to promote');
      return { current: next, previous: current, since: now, ...kept };
    case 'retire':
      return { current, ...kept };
    case 'recount':
      return { ...succession, since: now };
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
 * Who signs: the current one. Where it is not valid at this time, which takes a clock that was wrong, one that is: the one
 * before it, which everybody believes, rather than the one after it.
 */
export function signerAt(succession: Succession, now: number): Authority {
  const { current, previous, next } = succession;
  const able = [current, previous, next].find((one): one is Authority => one?.key !== undefined && isValid(one, now));
  return able ?? current;
}

/**
 * Whether a certificate is to be replaced: a third of its life is over, so that two thirds are left for an executor that
 * is away; another authority signs by now; or it becomes valid only later, as it was made while a clock was ahead.
 */
export function renewalDue(
  certificate: { readonly from: number; readonly to: number },
  signedByCurrent: boolean,
  now: number,
): boolean {
  const { from, to } = certificate;
  return !signedByCurrent || now < from || now >= from + (to - from) / 3;
}
