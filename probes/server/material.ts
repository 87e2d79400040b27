import { createPublicKey, type X509Certificate } from 'node:crypto';
import type { EnrolmentRequest } from '../../constructs/api/enrolment.ts';
import type { PodIdentity } from '../../constructs/api/evidence/identity.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { readFile } from '../../constructs/lib/files.ts';
import type { Offer } from './offer.ts';
import { judgeGrant, type Standing, standing } from './standing.ts';

/** Keys and certificates of a probe. Keys are in memory only; the token and the authorities are files of the pod. */

export interface MaterialOptions {
  readonly clock: Clock;
  readonly identity: PodIdentity;
  /** File of the authorities that the executor's certificate may come from. It may be missing, and may change. */
  readonly authoritiesFile: string;
  readonly tokenFile: string;
  /** Makes a key that nobody had before. */
  readonly makeOffer: () => Promise<Offer>;
}

interface Held {
  readonly key: string;
  readonly pem: string;
  readonly certificate: X509Certificate;
}

/** How the next connection is met. */
export type Face =
  | { readonly standing: 'closed' }
  | {
      readonly standing: Exclude<Standing, 'closed'>;
      /** PEM of what is shown, and of whom is believed. */
      readonly shown: { readonly ca: string; readonly key: string; readonly cert: string };
    };

export class Material {
  readonly #options: MaterialOptions;
  #held: Held | undefined;
  /** A key that was shown and has no certificate yet. It stays until one comes, so that what was asked can be granted. */
  #offer: Promise<Offer> | undefined;

  constructor(options: MaterialOptions) {
    this.#options = options;
  }

  /** What holds now: files are read anew, so that a rotated authority counts from the next connection on. */
  async face(): Promise<Face> {
    const { clock, authoritiesFile } = this.#options;
    const authorities = await readFile(authoritiesFile, 'utf8').catch(() => '');
    const certificate = this.#held?.certificate;
    const now = standing({ authorities, ...(certificate === undefined ? {} : { certificate }) }, clock.now());
    if (now === 'closed') return { standing: now };
    const held = this.#held;
    if (now === 'open' && held !== undefined)
      return { standing: now, shown: { ca: authorities, key: held.key, cert: held.pem } };
    const { key, selfSigned } = await this.#offered();
    return { standing: 'unenrolled', shown: { ca: authorities, key, cert: selfSigned } };
  }

  /** Whether it holds a certificate that is valid now. */
  enrolled(): boolean {
    const certificate = this.#held?.certificate;
    return certificate !== undefined && this.#options.clock.now() < certificate.validToDate.getTime();
  }

  /** @throws Error when there is no token; its message holds nothing of one. */
  async request(): Promise<EnrolmentRequest> {
    const { tokenFile } = this.#options;
    const { csr } = await this.#offered();
    const token = await readFile(tokenFile, 'utf8').then(
      (text) => text.trim(),
      () => '',
    );
    if (token === '') throw new Error(`there is no token in ${tokenFile}`);
    return { csr, token };
  }

  /** Takes a certificate for the key that was shown. @returns why it is refused. */
  async grant(pem: string): Promise<string | undefined> {
    const offer = await this.#offer;
    if (offer === undefined) return 'nothing was asked for';
    const publicKey = createPublicKey(offer.key).export({ type: 'spki', format: 'der' });
    const judged = judgeGrant(pem, publicKey, this.#options.identity);
    if (judged.type === 'refused') return judged.why;
    this.#held = { key: offer.key, pem, certificate: judged.certificate };
    this.#offer = undefined;
    return undefined;
  }

  /** Gives the certificate up: the executor can not read it, and wants to see a key that nobody has signed. */
  forget(): void {
    this.#held = undefined;
  }

  #offered(): Promise<Offer> {
    this.#offer ??= this.#options.makeOffer().catch((error: unknown) => {
      // The next one to ask tries anew.
      this.#offer = undefined;
      throw error;
    });
    return this.#offer;
  }
}
