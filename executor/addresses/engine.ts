/**
 * Carries plans out: writes in their order, each against the version that it was planned on, and plans again when something
 * was different. Whatever ends a pass half way, the next one plans from what is there: no step is remembered.
 */

import { type KubeObject, refOf, uidOf } from '../kube/types.ts';
import type { WorkResult } from '../kube/workqueue.ts';
import { type LedgerApi, type LedgerRead, type LedgerRef, type LedgerWrite, refOfView } from './api.ts';
import type { ExtendedLedger, LedgerChange, LedgerStore } from './ledger.ts';
import { Locks } from './locks.ts';
import { type LedgerView, readLedgerObject, type View } from './objects.ts';
import type { Confirmation, LedgerAction, LedgerEvent, LedgerPlan } from './plan.ts';
import { type Refusal, Refusals } from './refusals.ts';

/** What an engine itself asks of a ledger; planners ask more. */
export type EngineLedger<Any extends View> = Pick<ExtendedLedger<never>, 'reserve' | 'unreserve'> & {
  put(object: KubeObject): LedgerChange<Any> | undefined;
  drop(object: KubeObject, by: 'watch' | 'look'): LedgerChange<Any> | undefined;
  find(ref: LedgerRef): Any | undefined;
  every(kind: string): Iterable<Any>;
};

/** Controllers that share a ledger: what they plan for a key, and what else the change of an object concerns. */
export interface Controllers<Key extends string, Any extends View = LedgerView, Known = LedgerStore> {
  plan(ledger: Known, key: Key, now: number): LedgerPlan<Any>;
  /** Keys whose passes a change calls for. */
  wake(ledger: Known, change: LedgerChange<Any>): readonly Key[];
  /** Names that no other pass may work on meanwhile. */
  locks(ledger: Known, key: Key): readonly string[];
}

export interface EngineOptions<Key extends string, Any extends View, Known extends EngineLedger<Any>> {
  readonly api: LedgerApi;
  /** Empty: the engine fills it. */
  readonly ledger: Known;
  readonly controllers: Controllers<Key, Any, Known>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Asks for passes. */
  readonly wake: (key: Key) => void;
  /** Asks for a pass over what others left, unless an earlier pass over the key failed, and waits to be done again. */
  readonly offer?: (key: Key) => void;
  readonly tell: (event: LedgerEvent<Any>) => void;
  readonly onProblem?: (key: Key, message: string) => void;
}

/** So often a pass plans anew when somebody else writes the same objects; then it waits like any other failure. */
const plansPerPass = 5;

interface Failure<Any extends View> {
  readonly failed: string;
  readonly warnings?: readonly LedgerEvent<Any>[];
  /** Trying again before would only fail again, unless something changes. */
  readonly until?: number;
}

type Step<Any extends View> = 'done' | 'planAgain' | Failure<Any>;

export class LedgerEngine<
  Key extends string,
  Any extends View = LedgerView,
  Known extends EngineLedger<Any> = LedgerStore & EngineLedger<Any>,
> {
  readonly ledger: Known;
  readonly #options: EngineOptions<Key, Any, Known>;
  readonly #locks = new Locks();
  readonly #refusals = new Refusals();
  /** Warnings that hold, by key. */
  readonly #holding = new Map<Key, ReadonlySet<string>>();
  /** What keys wait for that are not tried for a while: it is told once. */
  readonly #paused = new Map<Key, string>();

  constructor(options: EngineOptions<Key, Any, Known>) {
    this.#options = options;
    this.ledger = options.ledger;
  }

  /** Takes in what the watch tells. */
  seen(object: KubeObject): void {
    this.#changed(this.ledger.put(object));
  }

  /** Takes in that the watch tells of a deletion. */
  deleted(object: KubeObject): void {
    this.#changed(this.ledger.drop(object, 'watch'));
  }

  /** One pass. */
  async pass(key: Key, signal: AbortSignal): Promise<WorkResult> {
    const { controllers } = this.#options;
    for (;;) {
      const names = controllers.locks(this.ledger, key);
      const result = await this.#locks.hold(names, async () => {
        // While the locks were waited for, the object may have come to concern others.
        const needed = controllers.locks(this.ledger, key);
        return needed.every((name) => names.includes(name)) ? this.#plans(key, signal) : undefined;
      });
      if (result !== undefined) return result;
    }
  }

  async #plans(key: Key, signal: AbortSignal): Promise<WorkResult> {
    for (let n = 0; n < plansPerPass; n += 1) {
      signal.throwIfAborted();
      const plan = this.#options.controllers.plan(this.ledger, key, this.#options.now());
      const step = await this.#reserving(key, plan.actions, signal);
      if (step === 'planAgain') continue;
      if (step !== 'done') {
        this.#warn(key, [...plan.warnings, ...(step.warnings ?? [])]);
        return this.#failed(key, step);
      }
      this.#warn(key, plan.warnings);
      this.#paused.delete(key);
      return plan.againMs === undefined ? { type: 'done' } : { type: 'again', afterMs: plan.againMs };
    }
    return this.#failed(key, { failed: 'others kept writing the same objects' });
  }

  #failed(key: Key, { failed, until }: Failure<Any>): WorkResult {
    if (until === undefined || this.#paused.get(key) !== failed) this.#options.onProblem?.(key, failed);
    if (until === undefined) {
      this.#paused.delete(key);
      return { type: 'failed' };
    }
    this.#paused.set(key, failed);
    return { type: 'failed', atLeastMs: until - this.#options.now() };
  }

  /** Planning and reserving are one step: nothing comes between them. */
  async #reserving(key: Key, actions: readonly LedgerAction<Any>[], signal: AbortSignal): Promise<Step<Any>> {
    const targets = actions.flatMap((one) => (one.reserves === true && one.type !== 'create' ? [one.target] : []));
    this.ledger.reserve(targets.map(({ uid }) => uid));
    try {
      return await this.#carryOut(actions, signal);
    } finally {
      this.ledger.unreserve(targets.map(({ uid }) => uid));
      // Who planned without it may have it after all, if it was not taken.
      for (const target of targets) {
        const after = this.ledger.find(refOfView(target));
        if (after?.uid === target.uid) this.#returned(key, after);
      }
    }
  }

  /** Whoever left it comes back by itself. */
  #returned(by: Key, after: Any): void {
    const { controllers, offer, wake } = this.#options;
    const passes = controllers.wake(this.ledger, { before: after, after, returned: true });
    for (const key of passes) if (key !== by) (offer ?? wake)(key);
  }

  async #carryOut(actions: readonly LedgerAction<Any>[], signal: AbortSignal): Promise<Step<Any>> {
    /** Objects as our own writes of this pass have left them. */
    const written = new Map<string, KubeObject>();
    for (const action of actions) {
      for (const confirmation of action.confirm ?? []) {
        const step = await this.#confirm(confirmation, signal);
        if (step !== 'done') return step;
      }
      const step = await this.#write(action, written, signal);
      if (step !== 'done') return step;
      for (const event of action.events ?? []) this.#options.tell(event);
    }
    return 'done';
  }

  async #write(action: LedgerAction<Any>, written: Map<string, KubeObject>, signal: AbortSignal): Promise<Step<Any>> {
    const target = action.type === 'create' ? action.object : (written.get(action.target.uid) ?? action.target.object);
    const known = action.type === 'create' ? this.#refusals.find(target, this.#options.now()) : undefined;
    if (known !== undefined) return refused(action, known);
    const outcome = await this.#send(action, target, signal);
    switch (outcome.type) {
      case 'written':
        written.set(uidOf(outcome.object), outcome.object);
        this.#changed(
          this.#isGone(outcome.object) ? this.ledger.drop(outcome.object, 'look') : this.ledger.put(outcome.object),
        );
        return 'done';
      case 'removed':
        return 'done';
      case 'gone':
        // An object that is to be deleted, and is gone, is as it should be.
        this.#changed(this.ledger.drop(target, 'look'));
        return action.type === 'delete' ? 'done' : 'planAgain';
      case 'exists':
      case 'stale':
        return this.#look(refOf(target), signal);
      case 'refused':
        return refused(
          action,
          action.type === 'create' && outcome.invalid === true
            ? this.#refusals.note(target, outcome.message, this.#options.now())
            : outcome,
        );
      case 'failed':
        return { failed: outcome.message };
    }
  }

  /** The write that took the last finalizer off an object answers with what is no more. */
  #isGone({ metadata }: KubeObject): boolean {
    return typeof metadata.deletionTimestamp === 'string' && (metadata.finalizers ?? []).length === 0;
  }

  #send(action: LedgerAction<Any>, target: KubeObject, signal: AbortSignal): Promise<LedgerWrite> {
    const { api } = this.#options;
    switch (action.type) {
      case 'patch':
        return api.patch(target, action.patch, signal);
      case 'status':
        return api.status(target, action.status, signal);
      case 'delete':
        return api.remove(target, signal);
      case 'create':
        return api.create(target, signal);
    }
  }

  /** Reads an object into the ledger, for the next plan. */
  async #look(ref: LedgerRef, signal: AbortSignal): Promise<Step<Any>> {
    const read = await this.#options.api.read(ref, signal);
    if (read.type === 'failed') return { failed: read.message };
    this.#took(ref, read);
    return 'planAgain';
  }

  #took(ref: LedgerRef, read: Exclude<LedgerRead, { readonly type: 'failed' }>): void {
    const known = this.ledger.find(ref);
    if (read.type === 'found') this.#changed(this.ledger.put(read.object));
    else if (known !== undefined) this.#changed(this.ledger.drop(known.object, 'look'));
  }

  async #confirm(confirmation: Confirmation, signal: AbortSignal): Promise<Step<Any>> {
    if (confirmation.type === 'noAddressOfClass') return this.#confirmUnused(confirmation.className, signal);
    const { ref } = confirmation;
    const read = await this.#options.api.read(ref, signal);
    if (read.type === 'failed') return { failed: read.message };
    const live = read.type === 'found' ? read.object : undefined;
    const holds =
      confirmation.type === 'identity'
        ? live?.metadata.uid === confirmation.uid
        : sameVersion(live, this.ledger.find(ref)?.object);
    if (holds) return 'done';
    this.#took(ref, read);
    return 'planAgain';
  }

  async #confirmUnused(className: string, signal: AbortSignal): Promise<Step<Any>> {
    const listed = await this.#options.api.addresses(signal);
    if ('type' in listed) return { failed: listed.message };
    const found = listed.filter((object) => {
      const view = readLedgerObject(object);
      return view?.kind === 'IPAddress' && view.className === className;
    });
    for (const object of found) this.#changed(this.ledger.put(object));
    return found.length === 0 ? 'done' : 'planAgain';
  }

  #changed(change: LedgerChange<Any> | undefined): void {
    if (change === undefined) return;
    for (const key of this.#options.controllers.wake(this.ledger, change)) this.#options.wake(key);
  }

  #warn(key: Key, warnings: readonly LedgerEvent<Any>[]): void {
    const known = this.#holding.get(key);
    const said = new Set(warnings.map(({ about, reason, note }) => JSON.stringify([about.uid, reason, note])));
    for (const warning of warnings)
      if (known?.has(JSON.stringify([warning.about.uid, warning.reason, warning.note])) !== true)
        this.#options.tell(warning);
    if (said.size === 0) this.#holding.delete(key);
    else this.#holding.set(key, said);
  }
}

function refused<Any extends View>(
  action: LedgerAction<Any>,
  { message, until }: Pick<Refusal, 'message'> & Partial<Refusal>,
): Failure<Any> {
  return {
    failed: message,
    ...(until === undefined ? {} : { until }),
    ...(action.refused === undefined ? {} : { warnings: [action.refused(message)] }),
  };
}

const sameVersion = (a: KubeObject | undefined, b: KubeObject | undefined): boolean =>
  a?.metadata.uid === b?.metadata.uid && a?.metadata.resourceVersion === b?.metadata.resourceVersion;
