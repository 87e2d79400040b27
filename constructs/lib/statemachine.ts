/**
 * Finite state machines with deadlines that outlive the process: the state and the absolute deadline are a snapshot that
 * a status carries; edges are declared and checked at construction; hooks may refuse a transition.
 */
import type { Clock } from './clock.ts';

export interface StateDefinition<S extends string, C> {
  /** States that may follow, in the order in which they are offered; empty for a terminal state. */
  readonly to: readonly S[];
  /** Whether an operation in this state may be abandoned. */
  readonly abortable?: boolean;
  /** Runs on entry (never for the initial state of a new machine); answers the milliseconds until the deadline, 0 or less for none. */
  readonly onEnter?: (context: C, from: S, to: S) => Promise<number> | number;
}

export interface MachineConfig<S extends string, C = undefined> {
  readonly initial: S;
  readonly states: Readonly<Record<S, StateDefinition<S, C>>>;
}

export interface Snapshot<S extends string> {
  readonly state: S;
  /** Milliseconds since 1970. */
  readonly deadline?: number;
}

/** A snapshot as a status carries it; both members are left out when empty. */
export interface KubeSnapshot {
  readonly state?: string;
  /** RFC 3339. */
  readonly deadline?: string;
}

export type MachineFault =
  | 'closed'
  | 'reentrant'
  | 'unknownState'
  | 'illegalTransition'
  | 'hookFailed'
  | 'unknownAction';

export class MachineError extends Error {
  override readonly name = 'MachineError';
  readonly fault: MachineFault;

  constructor(fault: MachineFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.fault = fault;
  }
}

function has<S extends string>(config: MachineConfig<S, never>, state: string): state is S {
  return Object.hasOwn(config.states, state);
}

/** The declared states, sorted: what an enum and a CEL rule must list too. */
function declaredStates<S extends string>(config: MachineConfig<S, never>): S[] {
  return (Object.keys(config.states) as S[]).sort();
}

/** The states in which the operation may not be abandoned, sorted. */
function unabortableStates<S extends string>(config: MachineConfig<S, never>): S[] {
  return declaredStates(config).filter((state) => config.states[state].abortable !== true);
}

function validated<S extends string, C>(config: MachineConfig<S, C>): MachineConfig<S, C> {
  const view = config as MachineConfig<S, never>;
  if (!has(view, config.initial))
    throw new MachineError('unknownState', `the initial state '${config.initial}' is not declared`);
  for (const state of declaredStates(view)) {
    for (const target of config.states[state].to)
      if (!has(view, target))
        throw new MachineError('unknownState', `state '${state}' leads to '${target}', which is not declared`);
  }
  const states: Record<S, StateDefinition<S, C>> = copyStates(config.states);
  return { initial: config.initial, states };
}

/** Copies the declarations, so that a later change of the input has no effect; hooks are functions and stay as they are. */
function copyStates<S extends string, C>(states: MachineConfig<S, C>['states']): Record<S, StateDefinition<S, C>> {
  const copy: Record<S, StateDefinition<S, C>> = { ...states };
  for (const state of Object.keys(copy) as S[]) copy[state] = { ...copy[state], to: [...copy[state].to] };
  return copy;
}

/** One machine. Not safe for concurrent use. */
export class Machine<S extends string, C = undefined> {
  readonly #config: MachineConfig<S, C>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #abort = new AbortController();
  #state: S;
  #deadline: number | undefined;
  #inHook = false;

  /** A machine is born in its initial state: no hook runs and no deadline is set. @throws MachineError unknownState. */
  constructor(config: MachineConfig<S, C>, clock: Pick<Clock, 'now'>) {
    this.#config = validated(config);
    this.#clock = clock;
    this.#state = config.initial;
  }

  get state(): S {
    return this.#state;
  }

  /** Aborts when the machine is closed. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /**
   * Moves along a declared edge. When the hook throws, state and deadline stay as they were. The deadline's clock starts
   * when the hook returns.
   */
  async transitionTo(to: S, context: C): Promise<void> {
    if (this.#abort.signal.aborted) throw new MachineError('closed', 'the machine is closed');
    if (this.#inHook) throw new MachineError('reentrant', `a hook of this machine asked for the transition to '${to}'`);
    const from = this.#state;
    const view = this.#config as MachineConfig<S, never>;
    if (!has(view, from)) throw new MachineError('unknownState', `state '${from}' is not declared`);
    if (!has(view, to) || !this.#config.states[from].to.includes(to))
      throw new MachineError('illegalTransition', `no edge leads from '${from}' to '${to}'`);
    const deadlineIn = await this.#enter(from, to, context);
    this.#state = to;
    this.#deadline = deadlineIn > 0 ? this.#clock.now() + deadlineIn : undefined;
  }

  async #enter(from: S, to: S, context: C): Promise<number> {
    const hook = this.#config.states[to].onEnter;
    if (hook === undefined) return 0;
    this.#inHook = true;
    try {
      return await hook(context, from, to);
    } catch (error) {
      throw new MachineError('hookFailed', `entering '${to}' from '${from}': ${(error as Error).message}`, error);
    } finally {
      this.#inHook = false;
    }
  }

  snapshot(): Snapshot<S> {
    return this.#deadline === undefined ? { state: this.#state } : { state: this.#state, deadline: this.#deadline };
  }

  /** Takes a snapshot over: no hook, no edge check; a deadline that passed meanwhile counts as reached. @throws MachineError unknownState. */
  restore(snapshot: Snapshot<string>): void {
    if (!has(this.#config as MachineConfig<S, never>, snapshot.state))
      throw new MachineError(
        'unknownState',
        `state '${snapshot.state}' is not declared (declared: ${declaredStates(this.#config as MachineConfig<S, never>).join(', ')})`,
      );
    this.#state = snapshot.state;
    this.#deadline = snapshot.deadline;
  }

  timeoutReached(): boolean {
    return !this.#abort.signal.aborted && this.#deadline !== undefined && this.#clock.now() >= this.#deadline;
  }

  clearTimeout(): void {
    this.#deadline = undefined;
  }

  /** Sets the deadline anew, `ms` from now. */
  extend(ms: number): void {
    this.#deadline = ms > 0 ? this.#clock.now() + ms : undefined;
  }

  /** Milliseconds until the deadline, or undefined when there is none in the future. */
  requeueAfter(): number | undefined {
    if (this.#deadline === undefined) return undefined;
    const left = this.#deadline - this.#clock.now();
    return left > 0 ? left : undefined;
  }

  isTerminal(): boolean {
    return this.#config.states[this.#state].to.length === 0;
  }

  allowedTransitions(): readonly S[] {
    return this.#config.states[this.#state].to;
  }

  canTransitionTo(to: S): boolean {
    return this.allowedTransitions().includes(to);
  }

  canAbort(): boolean {
    return this.#config.states[this.#state].abortable === true;
  }

  /** Back to the initial state, without hook, edge check or deadline. */
  reset(): void {
    this.#state = this.#config.initial;
    this.#deadline = undefined;
  }

  close(): void {
    this.#abort.abort(new MachineError('closed', 'the machine is closed'));
  }
}

/** Machines of one set of states, a graph for each action. */
export type MultiConfig<S extends string, C = undefined> = Readonly<Record<string, MachineConfig<S, C>>>;

/** The machine for `action`. Every graph is validated before the action is looked up. @throws MachineError unknownAction. */
export function machineFor<S extends string, C>(
  graphs: MultiConfig<S, C>,
  action: string,
  clock: Pick<Clock, 'now'>,
  snapshot?: KubeSnapshot,
): Machine<S, C> {
  for (const name of Object.keys(graphs).sort()) validated(graphs[name] as MachineConfig<S, C>);
  const config = Object.hasOwn(graphs, action) ? graphs[action] : undefined;
  if (config === undefined)
    throw new MachineError(
      'unknownAction',
      `no action '${action}' (declared: ${Object.keys(graphs).sort().join(', ')})`,
    );
  const machine = new Machine(config, clock);
  const stored = snapshot === undefined ? undefined : fromKube(snapshot);
  if (stored !== undefined) machine.restore(stored);
  return machine;
}

/** States that some action may not be abandoned in, sorted. */
export function unabortableMultiStates<S extends string>(graphs: MultiConfig<S, never>): S[] {
  return [...new Set(Object.values(graphs).flatMap((config) => unabortableStates(config)))].sort();
}

/** States that some action declares, sorted. */
export function declaredMultiStates<S extends string>(graphs: MultiConfig<S, never>): S[] {
  return [...new Set(Object.values(graphs).flatMap((config) => declaredStates(config)))].sort();
}

export function toKube(snapshot: Snapshot<string>): KubeSnapshot {
  return {
    ...(snapshot.state === '' ? {} : { state: snapshot.state }),
    ...(snapshot.deadline === undefined ? {} : { deadline: new Date(snapshot.deadline).toISOString() }),
  };
}

/** The snapshot of a status, or undefined for a status that holds no state yet (the initial state). */
export function fromKube(snapshot: KubeSnapshot): Snapshot<string> | undefined {
  if (snapshot.state === undefined || snapshot.state === '') return undefined;
  const deadline = snapshot.deadline === undefined ? undefined : Date.parse(snapshot.deadline);
  return deadline === undefined || Number.isNaN(deadline)
    ? { state: snapshot.state }
    : { state: snapshot.state, deadline };
}

/** The right of one pass to carry out a step, so that a pass with a stale view does not repeat it. */
export interface Claim {
  readonly state: string;
  /** Counted from 1. */
  readonly attempt: number;
  /** RFC 3339. */
  readonly leaseUntil: string;
}

export type ClaimOutcome = { readonly ran: true } | { readonly ran: false; readonly reason: 'held' | 'conflict' };

/**
 * Runs `fire` under a claim on `state`: not while an unexpired claim for that state is stored; `write` stores the claim
 * under the caller's resourceVersion and answers 'conflict' when another pass was first. Nothing releases a claim: the
 * next step replaces the snapshot.
 */
export async function withClaim(
  options: { stored: Claim | undefined; state: string; leaseMs: number; clock: Pick<Clock, 'now'> },
  write: (claim: Claim) => Promise<'written' | 'conflict'>,
  fire: () => Promise<void>,
): Promise<ClaimOutcome> {
  const { stored, state, clock } = options;
  const same = stored?.state === state ? stored : undefined;
  if (same !== undefined && Date.parse(same.leaseUntil) > clock.now()) return { ran: false, reason: 'held' };
  const claim: Claim = {
    state,
    attempt: (same?.attempt ?? 0) + 1,
    leaseUntil: new Date(clock.now() + options.leaseMs).toISOString(),
  };
  if ((await write(claim)) === 'conflict') return { ran: false, reason: 'conflict' };
  await fire();
  return { ran: true };
}
