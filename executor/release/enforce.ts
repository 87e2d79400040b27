/** One pass of an accepted payload: what it needs now, and the run of the engine over it. */
import type { ChangeClass, ReleaseSpec } from '../../constructs/api/release.ts';
import type { SpanPosition } from '../../constructs/api/span.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { dryRun, type Judgement } from '../apply/dryrun.ts';
import { type PassDeps, type PassInput, type PassOutcome, runPass } from '../apply/engine.ts';
import { type GateMode, passGates } from '../apply/gate-wait.ts';
import type { LedgerStore } from '../apply/ledger-store.ts';
import type { PassProgress } from '../apply/progress.ts';
import type { Claims } from '../apply/prune.ts';
import { type Survey, survey } from '../apply/survey.ts';
import type { DomainSession, DomainTarget, SealedDomain } from './domain.ts';
import type { Keeping } from './keeping.ts';
import type { Loaded } from './load.ts';
import { SpanKeeper } from './span-keeper.ts';
import type { Transition } from './spans.ts';
import { overriddenIds } from './view.ts';

/** What the accepted plan said of removals. */
export interface PrunedPlan {
  readonly planned: ReadonlySet<string>;
  readonly approved: boolean;
  readonly formerPhases: readonly string[];
}

export const nothingPlanned: PrunedPlan = { planned: new Set(), approved: false, formerPhases: [] };

export interface EnforceInput {
  readonly release: string;
  readonly releaseUID: string;
  readonly namespace: string;
  readonly spec: ReleaseSpec;
  readonly loaded: Loaded;
  readonly ledger: LedgerStore;
  readonly progress: PassProgress;
  readonly prune: PrunedPlan;
  readonly claims: Claims;
  readonly gates: GateMode;
  /** Whether a full pass of this payload ever completed. */
  readonly completed: boolean;
  /** Class of the change that brought this payload, where that is known. */
  readonly changeClass?: ChangeClass | undefined;
  readonly transition: Transition;
  /** Whether this payload is what is asked for, and no pause. */
  readonly wanted: boolean;
  readonly onSpan: (position: SpanPosition | undefined) => void;
  /** Drift of the release; quiesced: a lifecycle has it in hand. */
  readonly keeping: Keeping;
  readonly quiesced: boolean;
  readonly doubt: (id: string) => void;
  /** What acceptance found, when this pass follows it directly. */
  readonly fresh?: { readonly session: DomainSession; readonly survey: Survey; readonly judgement: Judgement };
  readonly signal: AbortSignal;
}

interface Prepared {
  readonly session: DomainSession;
  readonly survey: Survey;
  readonly judgement: Judgement;
}

const noCounts = { created: 0, configured: 0, unchanged: 0, replaced: 0, left: 0, pruned: 0 } as const;

const failed = (problems: readonly Problem[]): PassOutcome => ({
  type: 'failed',
  problems,
  retry: true,
  counts: noCounts,
});

/** Opens the domain of a payload for what is to be written of it now. */
export async function openSession(
  deps: PassDeps,
  domains: readonly SealedDomain[],
  input: EnforceInput,
): Promise<DomainSession | readonly Problem[]> {
  const { index } = input.loaded.payload;
  const domain = domains.find(({ name }) => name === index.content.release.domain);
  if (domain === undefined)
    return [{ reason: 'UnknownDomain', message: `no domain '${index.content.release.domain}' in this executor` }];
  const target: DomainTarget = {
    release: input.release,
    releaseUID: input.releaseUID,
    namespace: input.namespace,
    spec: input.spec,
    payloadDigest: index.digest,
    content: index.content,
    previous: { digest: index.digest, content: index.content, completed: input.completed },
    purpose: 'enforce',
    ...(input.changeClass === undefined ? {} : { changeClass: input.changeClass }),
  };
  const { session, problems } = await domain.prepare(target, {
    client: deps.client,
    clock: deps.clock,
    signal: input.signal,
  });
  return problems.length > 0 ? problems : session;
}

async function prepare(
  deps: PassDeps,
  domains: readonly SealedDomain[],
  input: EnforceInput,
): Promise<Prepared | readonly Problem[]> {
  if (input.fresh !== undefined) {
    const { survey: seen } = input.fresh;
    return { ...input.fresh, survey: { ...seen, needs: input.keeping.withhold(seen, input) } };
  }
  const session = await openSession(deps, domains, input);
  if (!('bind' in session)) return session;
  const { release, signal } = input;
  const { items } = input.loaded;
  const { client } = deps;
  const overridden = overriddenIds(input.spec);
  const looked = await survey({ client, release, items, ledger: input.ledger.ledger, overridden, signal });
  if (!looked.ok) return looked.problems;
  const needs = input.keeping.withhold(looked.survey, input);
  const { concurrency } = deps.options;
  const { namespace } = input;
  const { bind, adoption } = session;
  const ask = { client, release, items, needs, bind, adoption, namespace, signal, concurrency };
  const judgement = await dryRun({ ...ask, takeBack: true });
  return { session, survey: { ...looked.survey, needs }, judgement };
}

function passInput(deps: PassDeps, input: EnforceInput, prepared: Prepared): PassInput {
  const { index } = input.loaded.payload;
  const { ledger, transition, wanted, onSpan, signal } = input;
  const { clock, check } = deps;
  return {
    release: input.release,
    namespace: input.namespace,
    digest: index.digest,
    content: index.content,
    items: input.loaded.items,
    ...prepared,
    ledger: input.ledger,
    progress: input.progress,
    suspended: new Set(input.spec.suspendPhases),
    watch: input.keeping.beside(input, prepared.session),
    spans: new SpanKeeper({ ledger, content: index.content, transition, wanted, clock, check, onSpan, signal }),
    prune: {
      // What a lifecycle has in hand is not pruned meanwhile.
      policy: input.quiesced ? { ...input.spec.prune, enabled: false } : input.spec.prune,
      ...input.prune,
      unbounded: input.spec.approval.mode === 'never',
      approvedDigest: input.spec.approval.planDigest,
    },
    claims: input.claims,
    gates: input.gates,
    checkpoint: input.fresh !== undefined,
    doubt: input.doubt,
    signal: input.signal,
  };
}

/**
 * Runs one pass. One that waited for gates and went through everything leaves it to the caller to begin the watch over it.
 * Rejects with the signal's reason, or with what a guard throws.
 */
export async function enforce(
  deps: PassDeps,
  domains: readonly SealedDomain[],
  input: EnforceInput,
): Promise<PassOutcome> {
  const prepared = await prepare(deps, domains, input);
  if (!('session' in prepared)) return failed(prepared);
  const { keeping } = input;
  keeping.follow(input, prepared.session, prepared.survey);
  const outcome = await runPass(deps, passInput(deps, input, prepared));
  // What was adopted is looked at anew, and then carried out as any other payload.
  if (outcome.type === 'adopted') {
    const { fresh: _, ...rest } = input;
    return enforce(deps, domains, rest);
  }
  // Of a payload that is in place for the first time people are told before it is watched: the worker sees to both.
  if (outcome.type !== 'completed' || input.gates !== 'block') keeping.watch();
  return outcome;
}

/** Looks at the gates of a payload and writes nothing at all; for a Release that is paused or held. */
export async function observe(
  deps: PassDeps,
  domains: readonly SealedDomain[],
  input: EnforceInput,
): Promise<readonly Problem[]> {
  input.keeping.rest();
  const session = await openSession(deps, domains, input);
  if (!('bind' in session)) return session;
  const { client } = deps;
  const { release, signal } = input;
  const { items } = input.loaded;
  const overridden = overriddenIds(input.spec);
  const looked = await survey({ client, release, items, ledger: input.ledger.ledger, overridden, signal });
  if (!looked.ok) return looked.problems;
  const judgement: Judgement = {
    judged: new Map(),
    adoptions: new Map(),
    problems: [],
    confidence: 'full',
    unavailable: false,
  };
  const pass = passInput(deps, { ...input, gates: 'observe' }, { session, survey: looked.survey, judgement });
  const context = {
    ...deps,
    input: pass,
    judged: new Map(),
    counts: { ...noCounts },
    waited: false,
    adopted: [],
    pruned: [],
  };
  for (const phase of pass.content.phases) {
    const place = items.filter((item) => item.phase === phase.name);
    const inPlace = place.filter(({ id }) =>
      ['none', 'unmanaged', 'gone', 'held'].includes(looked.survey.needs.get(id)?.need ?? ''),
    );
    input.progress.applied(phase.name, inPlace.length);
    const gates = await passGates(context, phase);
    if (gates.type === 'failed') return gates.problems;
  }
  return [];
}
