/**
 * The seam of the domains (network, storage, addresses, manifests): what the Release worker asks of the one that a
 * payload belongs to. `admit`, `classify`, `bind`, `gate` are pure over a snapshot that `prepare` gathered; only
 * `prepare`, `check`, `preflight`, `observe`, `beforeFirstWrite`, `guard` and `settled` touch the cluster.
 */

import type { Gate, PayloadContent } from '../../constructs/api/payload.ts';
import type { Plan, PlanActions, PlanRisk } from '../../constructs/api/plan.ts';
import type { ChangeClass, GateState, ReleaseSpec } from '../../constructs/api/release.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { AdoptionRules } from '../apply/adopt-rules.ts';
import type { BindValue } from '../apply/bind.ts';
import type { Item } from '../apply/items.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';

/** What a pass is about. */
export interface DomainTarget {
  readonly release: string;
  readonly namespace: string;
  /** UID of the Release. */
  readonly releaseUID: string;
  readonly spec: ReleaseSpec;
  readonly payloadDigest: string;
  readonly content: PayloadContent;
  /** Objects as rendered, by id; absent where nothing is decided by them. */
  readonly objects?: ReadonlyMap<string, JsonObject>;
  /** Payload that is accepted and enforced now, and whether a full pass of it ever completed. */
  readonly previous?: {
    readonly digest: string;
    readonly content: PayloadContent;
    readonly objects?: ReadonlyMap<string, JsonObject>;
    readonly completed: boolean;
  };
  /** Class of the change as it was accepted, where that is known. */
  readonly changeClass?: ChangeClass;
  /** Acceptance of a new payload, or a further pass of the accepted one. */
  readonly purpose: 'accept' | 'enforce';
}

export interface DomainDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** `blocked`: no lifecycle may carry this change out; `message` says what to do instead. */
export type Classification =
  | {
      readonly verdict: 'allowed';
      readonly changeClass: ChangeClass;
      /** What the change does to what runs, for whoever approves it. */
      readonly effects?: readonly PlanRisk[];
    }
  | {
      readonly verdict: 'blocked';
      readonly changeClass: ChangeClass;
      readonly reason: string;
      readonly message: string;
    };

/** What of a plan a domain looks at before it is carried out. */
export type PlannedChange = Pick<Plan, 'changeClass' | 'actions'>;

export interface GateVerdict {
  readonly state: GateState;
  readonly reason: string;
  /** Names the object that it waits for, and what it saw. */
  readonly message: string;
  readonly object?: string;
  /** When the evidence behind it was taken; milliseconds since 1970. */
  readonly evidenceTime?: number;
  readonly bypassed?: boolean;
}

/** Live objects that a gate may look at: those of its scope, out of phases up to its own. */
export interface GateScope {
  readonly phase: string;
  readonly items: readonly Item[];
  /** By object id; an absent object is missing from the map. */
  readonly live: ReadonlyMap<string, KubeObject>;
  /** The live target of a `Condition` gate, when it exists. */
  readonly target?: KubeObject;
  readonly now: number;
}

/** The right to write, while it lasts. */
export interface WriteGuard {
  /** @throws LeaseLost (or the guard's own error) when writing is no longer allowed. Called before every write. */
  check(): void;
  /** Aborts when the right is lost. */
  readonly signal?: AbortSignal;
  release(): Promise<void>;
}

/** Why nothing may be written now. `wait`: it may pass by itself; the worker asks again. */
export type GuardOutcome =
  | { readonly granted: true; readonly guard: WriteGuard }
  | { readonly granted: false; readonly problem: Problem };

/**
 * One domain. `S` is its snapshot: everything that its pure functions need to know of the cluster. `O` is what it
 * observes for the gates of a phase.
 */
export interface Domain<S, O = undefined> {
  readonly name: PayloadContent['release']['domain'];
  /** Gathers the snapshot. Problems that it finds on the way count as preconditions that failed. */
  prepare(
    target: DomainTarget,
    deps: DomainDeps,
  ): Promise<{ readonly snapshot: S; readonly problems: readonly Problem[] }>;
  /** Whether this payload may be enforced here at all. */
  admit(target: DomainTarget, snapshot: S): Problem[];
  /** Reads what only this domain has to know of the cluster before a payload is accepted; writes nothing. */
  check?(target: DomainTarget, items: readonly Item[], snapshot: S, deps: DomainDeps): Promise<Problem[]>;
  /**
   * The last look before a payload is accepted, when nothing else stands against it. It may run something in the cluster that
   * looks, and writes nothing of the payload; what it ran, it takes away again.
   */
  preflight?(
    target: DomainTarget,
    items: readonly Item[],
    change: PlannedChange,
    snapshot: S,
    deps: DomainDeps,
  ): Promise<Problem[]>;
  /** What kind of change it is, and whether it may go ahead. */
  classify(target: DomainTarget, actions: PlanActions, snapshot: S): Classification;
  /** What of an installation exists already and is to be taken over; undefined when nothing is. */
  adoption?(target: DomainTarget, snapshot: S): AdoptionRules | undefined;
  /** Values for the `bind` rules of the index. */
  bind(target: DomainTarget, snapshot: S): BindValue;
  /** Items that belong to a scope; undefined when the scope is just the phase of that name. */
  scope?(name: string, items: readonly Item[], target: DomainTarget): readonly Item[] | undefined;
  /**
   * Gathers evidence for the gates of one phase; fresh at every call.
   * @param isOpen how a gate that the common ones judge stands, by the look that this is a part of
   */
  observe?(
    target: DomainTarget,
    phase: string,
    gates: readonly Gate[],
    snapshot: S,
    deps: DomainDeps,
    isOpen: (gate: Gate) => boolean,
  ): Promise<O>;
  /** Verdict of a gate; undefined for a gate that is not this domain's and is judged by the common ones. */
  gate(gate: Gate, scope: GateScope, snapshot: S, observed: O | undefined): GateVerdict | undefined;
  /** Makes the authorisation durable (checkpoint). The ledger is written already; nothing of the payload is. */
  beforeFirstWrite(target: DomainTarget, snapshot: S, deps: DomainDeps): Promise<Problem[]>;
  /** Asks for the right to write the objects of a phase (Leases). */
  guard(target: DomainTarget, phase: string, snapshot: S, deps: DomainDeps): Promise<GuardOutcome>;
  /** Asks for the right to take objects of a release away; nobody else has one when it is absent. */
  guardRemoval?(target: Pick<DomainTarget, 'release' | 'namespace'>, deps: DomainDeps): Promise<GuardOutcome>;
  /** Told after a pass that completed, with the verdicts of all gates. Problems are reported, and do not undo the pass. */
  settled?(target: DomainTarget, snapshot: S, deps: DomainDeps): Promise<Problem[]>;
}

/** A domain with its snapshot inside: what the worker holds during one pass. */
export interface DomainSession {
  readonly name: string;
  admit(): Problem[];
  check(items: readonly Item[], deps: DomainDeps): Promise<Problem[]>;
  preflight(items: readonly Item[], change: PlannedChange, deps: DomainDeps): Promise<Problem[]>;
  classify(actions: PlanActions): Classification;
  readonly adoption: AdoptionRules | undefined;
  readonly bind: BindValue;
  scope(name: string, items: readonly Item[]): readonly Item[] | undefined;
  /** Observes once for all gates of a phase; the answer judges them. `isOpen`: see {@link Domain.observe}. */
  gates(
    phase: string,
    gates: readonly Gate[],
    deps: DomainDeps,
    isOpen: (gate: Gate) => boolean,
  ): Promise<(gate: Gate, scope: GateScope) => GateVerdict | undefined>;
  beforeFirstWrite(deps: DomainDeps): Promise<Problem[]>;
  guard(phase: string, deps: DomainDeps): Promise<GuardOutcome>;
  settled(deps: DomainDeps): Promise<Problem[]>;
}

/** A domain whose types are sealed, so that a worker can hold any of them. */
export interface SealedDomain {
  readonly name: PayloadContent['release']['domain'];
  prepare(target: DomainTarget, deps: DomainDeps): Promise<{ session: DomainSession; problems: readonly Problem[] }>;
  guardRemoval(target: Pick<DomainTarget, 'release' | 'namespace'>, deps: DomainDeps): Promise<GuardOutcome>;
}

const unguarded: GuardOutcome = {
  granted: true,
  guard: { check: () => undefined, release: () => Promise.resolve() },
};

/** Seals a domain. */
export function sealDomain<S, O>(domain: Domain<S, O>): SealedDomain {
  return {
    name: domain.name,
    guardRemoval: async (target, deps) => (await domain.guardRemoval?.(target, deps)) ?? unguarded,
    async prepare(target, deps) {
      const { snapshot, problems } = await domain.prepare(target, deps);
      const session: DomainSession = {
        name: domain.name,
        admit: () => domain.admit(target, snapshot),
        check: async (items, checkDeps) => (await domain.check?.(target, items, snapshot, checkDeps)) ?? [],
        preflight: async (items, change, lookDeps) =>
          (await domain.preflight?.(target, items, change, snapshot, lookDeps)) ?? [],
        classify: (actions) => domain.classify(target, actions, snapshot),
        adoption: domain.adoption?.(target, snapshot),
        bind: domain.bind(target, snapshot),
        scope: (name, items) => domain.scope?.(name, items, target),
        async gates(phase, gates, gateDeps, isOpen) {
          const observed = await domain.observe?.(target, phase, gates, snapshot, gateDeps, isOpen);
          return (gate, scope) => domain.gate(gate, scope, snapshot, observed);
        },
        beforeFirstWrite: (writeDeps) => domain.beforeFirstWrite(target, snapshot, writeDeps),
        guard: (phase, guardDeps) => domain.guard(target, phase, snapshot, guardDeps),
        settled: async (settledDeps) => (await domain.settled?.(target, snapshot, settledDeps)) ?? [],
      };
      return { session, problems };
    },
  };
}
