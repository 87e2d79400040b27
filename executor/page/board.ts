/** What a process lets its page know: during a term what it watches and observes, and nothing between terms. */
import type { Clock } from '../../constructs/lib/clock.ts';
import type { LedgerSummary } from '../addressbook/summary.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Observed } from '../network/evidence.ts';
import { type EvidenceReport, evidenceReport } from './evidence.ts';
import type { PageModel } from './model.ts';
import { type Known, pageModel } from './page.ts';
import type { PageSource } from './server.ts';

/** Objects as a watch has them. */
export type Watched = ReadonlyMap<string, KubeObject>;

interface Term {
  readonly since: number;
  readonly observed: (installationUID: string) => Observed | undefined;
  releases: Watched;
  installations: Watched;
  addresses: () => LedgerSummary | undefined;
}

const none: Watched = new Map();

export class Board implements PageSource {
  readonly #about: { readonly identity: string; readonly namespace: string; readonly planOnly: boolean };
  readonly #clock: Clock;
  #term: Term | undefined;

  constructor(
    about: { readonly identity: string; readonly namespace: string; readonly planOnly: boolean },
    clock: Clock,
  ) {
    this.#about = about;
    this.#clock = clock;
  }

  /** A term begins. */
  begin(observed: Term['observed']): void {
    this.#term = {
      since: this.#clock.now(),
      observed,
      releases: none,
      installations: none,
      addresses: () => undefined,
    };
  }

  /** What is watched from now on in this term. */
  watch(what: Partial<Pick<Term, 'releases' | 'installations' | 'addresses'>>): void {
    if (this.#term !== undefined) Object.assign(this.#term, what);
  }

  /** Whether a Release of this name is there, as far as is known. */
  hasRelease(name: string): boolean {
    return this.#term?.releases.has(`${this.#about.namespace}/${name}`) === true;
  }

  /** The term is over: what was watched is true no more. */
  end(): void {
    this.#term = undefined;
  }

  model(): PageModel {
    return pageModel({ ...this.#about, known: this.known(), tick: this.#clock.monotonic() });
  }

  evidence(node: string | undefined): EvidenceReport {
    return evidenceReport(this.#about.identity, this.known(), this.#clock.monotonic(), node);
  }

  /** Undefined between terms. */
  known(): Known | undefined {
    if (this.#term === undefined) return undefined;
    const { since, observed, releases, installations, addresses } = this.#term;
    return {
      since,
      observed,
      releases: [...releases.values()],
      installations: [...installations.values()],
      addresses,
    };
  }
}
