import type { Clock } from '../../constructs/lib/clock.ts';
import { rest } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Believed, believe, publishBundle } from './bundle.ts';
import { type KeyPair, makeAuthority, makeExecutorPair } from './certificates.ts';
import {
  type Authority,
  afterStep,
  type FormerAuthority,
  type RotationTimings,
  renewalDue,
  rotationStep,
  type Succession,
  signerAt,
  signers,
  trusted,
} from './rotation.ts';
import { readAuthorities, readAuthority, writeAuthorities } from './store.ts';

/** What the executor dials and signs with. */
export interface Trust {
  /** PEM of all that are believed. */
  readonly authorities: string;
  /** The one that signs. */
  readonly signer: Authority;
  /** Who the executor is, by each authority that can say so; the one that signs first. */
  readonly identities: readonly KeyPair[];
}

export interface KeeperOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Where the Secret lies. */
  readonly namespace: string;
  /** Where probes read whom they believe. */
  readonly probeNamespaces: readonly string[];
  readonly timings?: Partial<KeeperTimings>;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export interface KeeperTimings extends RotationTimings {
  /** How long a certificate of the executor or of a probe is valid. */
  readonly certificateMs: number;
  /** Certificates are valid from a little earlier on: clocks differ. */
  readonly skewMs: number;
  readonly everyMs: number;
}

export const defaultKeeperTimings: KeeperTimings = {
  lifeMs: 365 * 86_400_000,
  spreadMs: 5 * 60_000,
  retireMs: 25 * 3_600_000,
  certificateMs: 86_400_000,
  skewMs: 10 * 60_000,
  everyMs: 30_000,
};

interface Identity {
  readonly authority: string;
  readonly pair: KeyPair;
  readonly from: number;
  readonly to: number;
}

/** Who can sign, and who is believed for it. */
interface Standing {
  /** The one that signs now. */
  readonly signer: Authority;
  readonly signing: readonly Authority[];
  readonly wanted: readonly FormerAuthority[];
  /** Ids of those whose succession is over. */
  readonly dismissed: ReadonlySet<string>;
}

const nobody: ReadonlySet<string> = new Set();

const standingOf = (succession: Succession, now: number, dismissed = nobody): Standing => ({
  signer: signerAt(succession, now),
  signing: signers(succession),
  wanted: trusted(succession),
  dismissed,
});

/**
 * Keeps the authority of evidence: makes it where there is none, carries a rotation through, tells probes whom to believe, and
 * holds the executor's own certificates. One at a time, by the leader.
 */
export class AuthorityKeeper {
  readonly #options: KeeperOptions;
  readonly #timings: KeeperTimings;
  #identities: readonly Identity[] = [];
  #believed: readonly Believed[] = [];
  #trust: Trust | undefined;
  #told = '';
  /** Resolved by the first step that succeeds. */
  readonly #first = Promise.withResolvers<void>();
  /** Whether some probes may not have been told whom to believe; so it is until they were, once. */
  #untold = true;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#timings = { ...defaultKeeperTimings, ...options.timings };
  }

  /** What holds now; undefined before the first step that succeeded. */
  trust(): Trust | undefined {
    return this.#trust;
  }

  /** Waits until something holds, for `limitMs` at most: a process that has just begun to lead is no worse than the one before. */
  async settled(limitMs: number, signal: AbortSignal): Promise<void> {
    if (this.#trust !== undefined) return;
    const over = new AbortController();
    const limit = rest(this.#options.clock, limitMs, AbortSignal.any([signal, over.signal]));
    await Promise.race([this.#first.promise, limit]);
    over.abort();
  }

  /** From when to when a certificate that is signed now is valid. */
  validity(): { from: number; to: number } {
    const now = this.#options.clock.now();
    return { from: now - this.#timings.skewMs, to: now + this.#timings.certificateMs };
  }

  /** Looks and acts until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.step(signal);
      await rest(this.#options.clock, this.#timings.everyMs, signal);
    }
  }

  /** One look, and what follows from it. What can not be read or written leaves everything as it was. */
  async step(signal: AbortSignal): Promise<void> {
    try {
      const standing = await this.#standing(signal);
      if (standing !== undefined) await this.#hold(standing, signal);
    } catch (error) {
      if (signal.aborted) return;
      // A message of what handles keys may hold one.
      this.#tell(
        'warn',
        `the authority of evidence can not be kept: ${error instanceof Error ? error.name : 'failed'}`,
      );
    }
  }

  async #standing(signal: AbortSignal): Promise<Standing | undefined> {
    const { client, namespace, clock } = this.#options;
    const read = await readAuthorities(client, namespace, signal);
    const now = clock.now();
    switch (read.type) {
      case 'unavailable':
      case 'invalid':
        this.#tell('warn', read.message);
        return undefined;
      case 'absent': {
        const made = { current: await this.#makeAuthority() };
        return (await this.#write(made, undefined, signal)) ? standingOf(made, now) : undefined;
      }
      case 'provided':
        return standingOf({ current: read.authority }, now);
      case 'own': {
        const { succession, asked, version } = read;
        const step = rotationStep(succession, asked, now, this.#timings);
        if (step.type === 'none') return standingOf(succession, now);
        // Probes that were not told of a successor would refuse it: it waits until they are.
        if (this.#untold && (step.type === 'promote' || step.type === 'retire')) return standingOf(succession, now);
        const fresh = step.type === 'introduce' ? { authority: await this.#makeAuthority(), asked } : undefined;
        const next = afterStep(succession, step, now, fresh);
        if (!(await this.#write(next, version, signal))) return undefined;
        this.#tell('info', `the authority of evidence: ${step.type}`);
        return standingOf(next, now, step.type === 'retire' ? new Set([succession.previous?.id ?? '']) : nobody);
      }
    }
  }

  /** Stored before anybody is told: nobody believes an authority whose key may be lost. */
  async #write(succession: Succession, version: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { client, namespace } = this.#options;
    const outcome = await writeAuthorities(client, namespace, succession, version, signal);
    if (outcome.type === 'failed') this.#tell('warn', outcome.message);
    return outcome.type === 'written';
  }

  async #makeAuthority(): Promise<Authority> {
    const { from, to } = this.validity();
    const { lifeMs, certificateMs } = this.#timings;
    const name = `keelson-evidence-${new Date(from).toISOString().slice(0, 10)}`;
    const pair = await makeAuthority(name, { from, to: to - certificateMs + lifeMs });
    return readAuthority(pair.certificate, pair.key);
  }

  /** Certificates of the executor: by everybody who can sign, and those of before that are still good for something. */
  async #hold({ signer, signing, wanted, dismissed }: Standing, signal: AbortSignal): Promise<void> {
    const { client, clock, probeNamespaces } = this.#options;
    const now = clock.now();
    this.#believed = believe(this.#believed, wanted, dismissed, now, this.#timings.retireMs);
    const authorities = this.#believed.map(({ certificate }) => certificate).join('');
    const told = await Promise.all(
      probeNamespaces.map((namespace) => publishBundle(client, namespace, authorities, signal)),
    );
    const failed = told.filter((message) => message !== undefined);
    this.#untold = failed.length > 0;
    if (failed.length > 0) this.#tell('warn', failed.join('; '));
    const ids = new Set(this.#believed.map(({ id }) => id));
    const kept = this.#identities.filter(({ authority, to }) => ids.has(authority) && to > now);
    const fresh: Identity[] = [];
    // As whom it is believed most likely comes first.
    for (const { id, ...pair } of [signer, ...signing.filter((one) => one.id !== signer.id)]) {
      const held = kept.find(({ authority }) => authority === id);
      fresh.push(held !== undefined && !renewalDue(held, true, now) ? held : await this.#identity(id, pair));
    }
    const others = kept.filter((one) => !fresh.some(({ authority }) => authority === one.authority));
    this.#identities = [...fresh, ...others];
    this.#first.resolve();
    this.#trust = { authorities, signer, identities: this.#identities.map(({ pair }) => pair) };
  }

  async #identity(authority: string, signer: KeyPair): Promise<Identity> {
    const validity = this.validity();
    return { authority, pair: await makeExecutorPair(signer, validity), ...validity };
  }

  /** Says something once, until it is something else. */
  #tell(level: 'info' | 'warn', message: string): void {
    if (message !== this.#told) this.#options.log(level, message);
    this.#told = message;
  }
}
