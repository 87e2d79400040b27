/** The network domain, as the Release worker sees it. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { PayloadContent } from '../../constructs/api/payload.ts';
import { type PlanActions, planActions } from '../../constructs/api/plan.ts';
import type { ChangeClass } from '../../constructs/api/release.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, refOf, uidOf } from '../kube/types.ts';
import type { LeaseTimings } from '../lease/timings.ts';
import type { Classification, Domain, DomainTarget } from '../release/domain.ts';
import { admitNetwork } from './admit.ts';
import { adoptionRules } from './adoption.ts';
import { clusterProblems, preflightPlan } from './before-install.ts';
import { rolloutProblems } from './before-rollout.ts';
import { bindNetwork } from './bind.ts';
import { checkpointOf, recordCheckpoint } from './checkpoint.ts';
import { type ClassifyInput, classifyNetwork } from './classify.ts';
import { evidenceGate, type GateEvidence, isEvidenceGate, type Observations } from './evidence.ts';
import { findInstallation } from './find.ts';
import { guardPhase } from './guard.ts';
import type { EvidenceSource } from './observer.ts';
import { peerProblems } from './peer.ts';
import { preflightUnder } from './preflight-run.ts';
import {
  installationEntryOf,
  type LiveInstallation,
  type NetworkSnapshot,
  readCheckpoint,
  takeSnapshot,
} from './snapshot.ts';

/** How long all nodes together may take to be looked at, and how often that is looked after; milliseconds. */
export interface PreflightPace {
  readonly limitMs?: number;
  readonly pollMs?: number;
}

export interface NetworkDomainOptions {
  /** Name of this process, for Lease holders. */
  readonly identity: string;
  readonly leases?: Partial<LeaseTimings>;
  /** How long a phase waits for Leases that another holds. */
  readonly leaseLimitMs?: number;
  /** A word that no other operation has; random by default. */
  readonly operationId?: () => string;
  /** What is known from rounds of evidence; where it is absent nothing observes, and no gate for evidence opens. */
  readonly observations?: Observations;
  /** Looks at the other half of a hosted pair; where it is absent no half is written. */
  readonly peer?: EvidenceSource['peer'];
  /** How nodes are looked at before a first install; where it is absent they are not looked at. */
  readonly preflight?: PreflightPace;
}

const deleting = (content: PayloadContent, snapshot: NetworkSnapshot): Problem[] => {
  const { installation } = snapshot;
  if (typeof installation?.object.metadata.deletionTimestamp !== 'string') return [];
  return [
    {
      reason: 'InstallationDeleting',
      message: 'the installation is being deleted; nothing of its payload is written',
      object: `KubeOVNInstallation ${content.installations[0]?.namespace ?? ''}/${content.installations[0]?.name ?? ''}`,
      remedy: 'wait until it is gone; its objects stay and lose their owner',
    },
  ];
};

const previousEntry = (target: DomainTarget) =>
  target.previous === undefined ? undefined : installationEntryOf(target.previous.content);

/** Both payloads with their objects, where both are at hand. */
function renderedOf({ content, objects, previous }: DomainTarget): Pick<ClassifyInput, 'rendered'> {
  const former = previous?.objects;
  if (objects === undefined || previous === undefined || former === undefined) return {};
  const before = { content: previous.content, object: (id: string) => former.get(id) };
  return { rendered: { before, after: { content, object: (id) => objects.get(id) } } };
}

function classified(target: DomainTarget, actions: PlanActions, { installation }: NetworkSnapshot): Classification {
  const next = installationEntryOf(target.content);
  if (next === undefined)
    return {
      verdict: 'blocked',
      changeClass: 'blocked',
      reason: 'PayloadIntegrity',
      message: 'the payload names no installation',
    };
  return classifyNetwork({
    next,
    previous: previousEntry(target),
    completed: target.previous?.completed ?? false,
    checkpoint: installation?.checkpoint,
    observedVersion: installation?.observedVersion,
    actions,
    ...renderedOf(target),
  });
}

/** The class of the change that a checkpoint is recorded for. */
function changeClassOf(target: DomainTarget, snapshot: NetworkSnapshot): ChangeClass | undefined {
  if (target.purpose === 'enforce') return target.changeClass;
  const { previous, content, spec } = target;
  return classified(target, planActions(previous?.content, content, spec.prune), snapshot).changeClass;
}

/** The domain of `KubeOVNInstallation`. */
export function networkDomain(options: NetworkDomainOptions): Domain<NetworkSnapshot, GateEvidence | undefined> {
  const operationId = options.operationId ?? randomUUID;
  const { observations } = options;
  const firstLooks = new FirstLooks();
  return {
    name: 'network',
    prepare: (target, deps) => takeSnapshot(target.content, deps.client, deps.signal),
    admit: (target, snapshot) => [...deleting(target.content, snapshot), ...admitNetwork(target, snapshot)],
    check: async (_target, items, snapshot, { client, signal }) => [
      ...(await clusterProblems(items, snapshot, client, signal)),
      ...(await peerProblems(snapshot.installation, options.peer, signal)),
    ],
    async preflight(target, items, change, snapshot, deps) {
      const unsettled = await rolloutProblems(change, snapshot, observations, deps);
      if (unsettled.length > 0) return unsettled;
      const nodes = installationEntryOf(target.content)?.nodes.map(({ name }) => name) ?? [];
      const plan = preflightPlan(items, snapshot, nodes);
      if (plan === undefined || options.preflight === undefined) return [];
      const { client, clock, signal } = deps;
      const granted = await guardPhase({
        client,
        clock,
        signal,
        namespace: target.namespace,
        installationUID: plan.installationUID,
        phase: 'preflight',
        holder: `${options.identity}_${operationId()}`,
        timings: options.leases,
        limitMs: options.leaseLimitMs ?? 60_000,
      });
      if (!granted.granted) return [granted.problem];
      const nonce = (): string => randomBytes(24).toString('hex');
      return preflightUnder(granted.guard, plan, {
        limitMs: 180_000,
        pollMs: 1_000,
        ...options.preflight,
        ...deps,
        nonce,
      });
    },
    classify: classified,
    adoption: (target, snapshot) => adoptionRules(target, snapshot),
    bind: (_target, snapshot) => bindNetwork(snapshot.installation),
    async observe(target, phase, gates, { installation }, { clock }, isOpen) {
      if (observations === undefined || installation === undefined || !gates.some(isEvidenceGate)) return undefined;
      // While pods of the phase are still replaced, a round may ask those that go next.
      const rolling = !isInPlace(target) && gates.some((gate) => !isEvidenceGate(gate) && !isOpen(gate));
      if (rolling) firstLooks.forget(target.release, phase);
      const tick = clock.monotonic();
      const since = rolling ? tick : firstLooks.at(target, phase, tick);
      const observed = observations.of(installation.uid);
      if (!rolling && (observed === undefined || observed.verdict.time.startedTick < since))
        observations.hurry(installation.uid);
      return { observed, since, tick };
    },
    gate: (gate, _scope, _snapshot, evidence) => evidenceGate(gate, evidence),
    async guardRemoval({ release, namespace }, { client, clock, signal }) {
      const found = await findInstallation(client, release, signal);
      if ('problem' in found) return { granted: false, problem: found.problem };
      // Without an installation in any namespace there is nobody who could hold its Leases.
      if (found.installation === undefined)
        return { granted: true, guard: { check: () => undefined, release: () => Promise.resolve() } };
      return guardPhase({
        client,
        clock,
        signal,
        namespace,
        installationUID: uidOf(found.installation),
        phase: 'central',
        holder: `${options.identity}_${operationId()}`,
        timings: options.leases,
        limitMs: options.leaseLimitMs ?? 60_000,
      });
    },
    async beforeFirstWrite(target, snapshot, { client, clock, signal }) {
      const entry = installationEntryOf(target.content);
      const { installation } = snapshot;
      if (entry === undefined || installation === undefined)
        return [{ reason: 'InstallationMissing', message: 'there is no installation to record a checkpoint in' }];
      const wanted = checkpointOf(entry, target.payloadDigest);
      const { object, checkpoint: recorded } = installation;
      const changeClass = changeClassOf(target, snapshot);
      const { nodes } = entry;
      return recordCheckpoint({ client, object, recorded, wanted, now: clock.now(), nodes, changeClass }, signal);
    },
    async guard(target, phase, snapshot, { client, clock, signal }) {
      const { installation } = snapshot;
      if (installation === undefined)
        return {
          granted: false,
          problem: { reason: 'InstallationMissing', message: 'there is no installation to write for' },
        };
      const outcome = await guardPhase({
        client,
        clock,
        signal,
        namespace: target.namespace,
        installationUID: installation.uid,
        phase,
        holder: `${options.identity}_${operationId()}`,
        timings: options.leases,
        limitMs: options.leaseLimitMs ?? 60_000,
      });
      if (!outcome.granted) return outcome;
      const problem = await changedMeanwhile(client, installation, target.payloadDigest, signal).catch(
        async (error: unknown) => {
          await outcome.guard.release();
          throw error;
        },
      );
      if (problem === undefined) {
        if (!isInPlace(target)) firstLooks.forget(target.release, phase);
        return outcome;
      }
      await outcome.guard.release();
      return { granted: false, problem };
    },
  };
}

/** Gates of a payload that is in place stay as they are while drift is set back. */
const isInPlace = ({ previous, payloadDigest }: DomainTarget): boolean =>
  previous?.digest === payloadDigest && previous.completed;

/**
 * When the gates of each phase of a payload were looked at first with everything of it rolled out: only evidence from then on
 * is about what was written.
 */
class FirstLooks {
  /** By release: one payload at a time. */
  readonly #looks = new Map<string, { readonly digest: string; readonly phases: Map<string, number> }>();

  at({ release, payloadDigest: digest }: DomainTarget, phase: string, tick: number): number {
    const known = this.#looks.get(release);
    const { phases } = known?.digest === digest ? known : { phases: new Map<string, number>() };
    this.#looks.set(release, { digest, phases });
    const since = phases.get(phase) ?? tick;
    phases.set(phase, since);
    return since;
  }

  /** Before a phase is written: its gates, looked at earlier as those of a held payload are, were looked at too early. */
  forget(release: string, phase: string): void {
    this.#looks.get(release)?.phases.delete(phase);
  }
}

/**
 * Whoever held the Leases before may have let the installation go, or authorised another payload: what the pass began
 * with is looked at once more before anything is written under them.
 */
async function changedMeanwhile(
  client: KubeClient,
  { object, uid }: LiveInstallation,
  payloadDigest: string,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  const ref = refOf(object);
  const say = (reason: string, message: string): Problem => ({ reason, message, object: describeRef(ref) });
  const found = await client.get(ref, { signal });
  if (found.type === 'absent') return say('InstallationMissing', 'it is gone; nothing is written for it');
  if (found.type !== 'found') return say('ApiUnavailable', found.message);
  if (uidOf(found.object) !== uid) return say('InstallationMissing', 'another object has taken its name');
  if (typeof found.object.metadata.deletionTimestamp === 'string')
    return say('InstallationDeleting', 'it is being deleted; nothing of its payload is written');
  const { checkpoint, problems } = readCheckpoint(found.object);
  if (problems[0] !== undefined) return problems[0];
  if (checkpoint?.payloadDigest === payloadDigest) return undefined;
  return say(
    'CheckpointNotRecorded',
    `its status authorises ${checkpoint?.payloadDigest ?? 'nothing'}, not the payload ${payloadDigest} that is to be written`,
  );
}
