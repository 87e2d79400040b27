/** Whether a release still holds an object: its ledger says so, and nothing else does. Read uncached, once per question. */

import type { KubeClient } from '../kube/client.ts';
import { type LedgerTarget, openLedger } from './ledger-store.ts';

/** `unknown`: the release has no ledger, or it can not be read; nobody takes anything from it then. */
export type Hold = 'held' | 'free' | 'unknown';

/** The ledgers of the releases of one namespace. */
export class Ledgers {
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #signal: AbortSignal;
  readonly #read = new Map<string, ReturnType<typeof openLedger>>();

  constructor(client: KubeClient, namespace: string, signal: AbortSignal) {
    this.#client = client;
    this.#namespace = namespace;
    this.#signal = signal;
  }

  /** Whether `release` holds the object with this id. */
  async hold(release: string, id: string): Promise<Hold> {
    const opened = await this.#open({ release, namespace: this.#namespace });
    if (!opened.ok || opened.store.configMaps === 0) return 'unknown';
    return opened.store.ledger.has(id) ? 'held' : 'free';
  }

  #open(target: LedgerTarget): ReturnType<typeof openLedger> {
    const known = this.#read.get(target.release) ?? openLedger(this.#client, target, this.#signal);
    this.#read.set(target.release, known);
    return known;
  }
}
