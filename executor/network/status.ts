/** The status of an installation, from its Release and what was observed. Pure. */

import { conditionsFor, type DomainCondition, type Outcome } from '../../constructs/api/conditions.ts';
import type { Condition } from '../../constructs/api/fields.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { InstallationPhase } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { KubeObject } from '../kube/types.ts';
import type { RecordPin } from '../observe/topology-record.ts';
import { digestsOf, enforcedIn, enforcedPart, isEnforced, type SpecDigests } from './enforced.ts';
import { evidenceConditions, evidenceStatus, type Observed } from './evidence.ts';

export interface InstallationView {
  readonly installation: KubeObject;
  readonly spec: InstallationSpec;
  /** The Release that carries the installation, when there is one. */
  readonly release: KubeObject | undefined;
  /** Why the Release could not be read, when it could not: then nothing is known of it. */
  readonly unread?: string;
  readonly workloads: DomainCondition;
  /** The last round of evidence; absent while none is complete. */
  readonly observed?: Observed;
  /** Whether rounds are run at all. */
  readonly observing?: boolean;
  /** Record of the topology that was made just now. */
  readonly pin?: RecordPin;
  /** On the clock that never jumps. */
  readonly tick: number;
  /** The executor may plan and not write. */
  readonly planOnly: boolean;
  readonly now: number;
}

const conditionsOf = (status: JsonObject | undefined): Condition[] =>
  Array.isArray(status?.conditions) ? (status.conditions.filter(isObject) as unknown as Condition[]) : [];

const find = (conditions: readonly Condition[], type: string): Condition | undefined =>
  conditions.find((condition) => condition.type === type);

const text = (value: JsonValue | undefined): string | undefined => (typeof value === 'string' ? value : undefined);

/** The phases of a Release whose gates a test executor went past. */
function bypassedGates(release: KubeObject): string[] {
  const phases = Array.isArray(release.status?.phases) ? release.status.phases.filter(isObject) : [];
  return phases.flatMap((phase) =>
    (Array.isArray(phase.gates) ? phase.gates.filter(isObject) : [])
      .filter((gate) => gate.bypassed === true)
      .map((gate) => `${String(gate.type)}(${String(gate.scope)})`),
  );
}

function ofVerification(domain: readonly DomainCondition[]): Outcome {
  const required = domain.filter((condition) => condition.type !== 'Degraded');
  const bad = required.find((condition) => condition.status === 'False');
  if (bad !== undefined) return { kind: 'unhealthy', reason: bad.reason, message: `${bad.type}: ${bad.message}` };
  const open = required.filter((condition) => condition.status !== 'True');
  if (open.length === 0)
    return {
      kind: 'steady',
      reason: 'VerificationComplete',
      message: 'every part was observed and passed in one round',
    };
  return {
    kind: 'waiting',
    reason: 'VerificationPending',
    message: `everything is applied; not observed yet: ${open.map((condition) => condition.type).join(', ')}`,
  };
}

/** What a Release that is at work, or has failed, means for the installation. */
function ofRelease(conditions: readonly Condition[]): Outcome | undefined {
  const [ready, progressing, failing] = ['Ready', 'Progressing', 'Failing'].map((type) => find(conditions, type));
  const why = { reason: ready?.reason ?? 'Pending', message: ready?.message ?? 'the Release has no status yet' };
  if (find(conditions, 'Stalled')?.status === 'True') return { kind: 'terminal', ...why };
  if (find(conditions, 'Reconciling')?.status === 'True') {
    if (ready?.status === 'False') return { kind: 'retrying', ...why };
    if (failing?.status === 'Unknown') return { kind: 'slow', reason: failing.reason, message: failing.message };
    return {
      kind: 'applying',
      reason: progressing?.reason ?? why.reason,
      message: progressing?.message ?? why.message,
    };
  }
  if (progressing?.reason === 'Paused') return { kind: 'paused', reason: 'Paused', message: progressing.message };
  if (ready?.status === 'False') return { kind: 'unhealthy', ...why };
  return undefined;
}

/**
 * Whether the payload was carried out in full before. That a Release waits for a gate once more is no work then that would
 * excuse what was seen to be broken; of workloads that roll out anew it says enough itself.
 */
function isInPlace({ status }: KubeObject): boolean {
  const [newest] = Array.isArray(status?.history) ? status.history.filter(isObject) : [];
  return newest?.state === 'Completed' && newest.digest === status?.actual && status?.desired === status?.actual;
}

/** The outcome that all common conditions follow from. */
function installationOutcome(
  view: Omit<InstallationView, 'now' | 'tick'>,
  domain: readonly DomainCondition[],
  digests: SpecDigests,
): Outcome {
  const { release, installation } = view;
  if (view.planOnly)
    return { kind: 'planOnly', reason: 'PlanOnly', message: 'this executor writes plans and changes nothing' };
  if (view.unread !== undefined)
    return {
      kind: 'waiting',
      reason: 'ObservationFailed',
      message: `the Release could not be read: ${view.unread}`,
    };
  if (release === undefined)
    return {
      kind: 'waiting',
      reason: 'ReleaseMissing',
      message: `no Release network-${installation.metadata.name ?? ''} was delivered yet`,
    };
  const conditions = conditionsOf(release.status);
  const behind = release.status?.observedGeneration !== release.metadata.generation;
  if (behind)
    return { kind: 'applying', reason: 'Pending', message: 'the Release was changed and is not looked at yet' };
  const bypassed = bypassedGates(release);
  const outcome = ofRelease(conditions);
  if (outcome !== undefined) {
    const seen = ofVerification(domain.filter(({ type }) => type !== 'WorkloadsReady'));
    const working = outcome.kind === 'applying' || outcome.kind === 'slow';
    return working && seen.kind === 'unhealthy' && isInPlace(release) ? seen : outcome;
  }
  if (bypassed.length > 0)
    return {
      kind: 'gatesBypassed',
      reason: 'GatesBypassed',
      message: `passed without looking, on a test cluster: ${bypassed.join(', ')}`,
    };
  const verified = ofVerification(domain);
  return verified.kind === 'unhealthy' ? verified : (notApplied(digests) ?? verified);
}

const checkpointIn = (status: JsonObject | undefined): JsonObject =>
  isObject(status?.applyCheckpoint) ? status.applyCheckpoint : {};

/** A specification that was changed and came with no payload is in nobody's hands yet, however well everything else runs. */
function notApplied({ applied, live }: SpecDigests): Outcome | undefined {
  if (applied === undefined || applied === live) return undefined;
  const message = `the specification has digest ${live}, what is applied was rendered from ${applied}`;
  return { kind: 'waiting', reason: 'SpecPayloadSkew', message };
}

/** An accepted plan takes over what exists, and none of its phases has been carried out yet. */
function isAdopting(release: KubeObject | undefined): boolean {
  const { plan, phases, actual } = release?.status ?? {};
  const counts = isObject(plan) && isObject(plan.counts) ? plan.counts : {};
  const begun = Array.isArray(phases) ? phases.filter(isObject).some(({ applied }) => Number(applied) > 0) : false;
  return Number(counts.adopted ?? 0) > 0 && actual !== undefined && !begun;
}

/** The one word for where the installation stands. */
function installationPhase(outcome: Outcome, release: KubeObject | undefined): InstallationPhase {
  switch (outcome.kind) {
    case 'planOnly':
      return 'Planned';
    case 'terminal':
      return outcome.reason === 'ChangeBlocked' ? 'Blocked' : 'Failed';
    case 'steady':
      return 'Ready';
    case 'applying':
    case 'retrying':
    case 'slow':
      return isAdopting(release) ? 'Adopting' : 'Applying';
    case 'waiting':
      return release === undefined && outcome.reason === 'ReleaseMissing' ? 'Pending' : 'Verifying';
    default:
      return 'Verifying';
  }
}

/**
 * The whole status. What it does not speak of (checkpoint, authorisation, backups) is carried over as it stands.
 * `observedVersion` follows the specification only once everything of it is rolled out.
 */
export function installationStatus(view: InstallationView): JsonObject {
  const { installation, spec, release, workloads, now } = view;
  const before = isObject(installation.status) ? installation.status : {};
  const generation = installation.metadata.generation ?? 1;
  const digests = digestsOf(installation);
  const domain = [
    workloads,
    ...evidenceConditions(enforcedIn(installation, spec, digests), view.observed, {
      tick: view.tick,
      observing: view.observing ?? false,
    }),
  ];
  const outcome = installationOutcome(view, domain, digests);
  const actual = text(release?.status?.actual);
  const checkpoint = checkpointIn(before);
  const rolledOut =
    workloads.status === 'True' &&
    outcome.kind !== 'applying' &&
    actual !== undefined &&
    checkpoint.payloadDigest === actual &&
    isEnforced(digests);
  const plan = isObject(release?.status?.plan) ? release.status.plan : undefined;
  return {
    ...evidenceStatus(before, view.observed, view.tick, view.pin),
    ...enforcedPart(installation, spec, digests),
    observedGeneration: generation,
    phase: installationPhase(outcome, release),
    conditions: conditionsFor({
      outcome: { ...outcome, message: redact(outcome.message) },
      previous: conditionsOf(before),
      generation,
      now,
      // What workloads, daemons and packets say of themselves is repeated in messages.
      domain: domain.map((one) => ({ ...one, message: redact(one.message) })),
    }) as unknown as JsonValue,
    ...(rolledOut ? { observedVersion: spec.version.replace(/^v/, '') } : {}),
    ...(release === undefined || actual === undefined
      ? {}
      : { release: { name: release.metadata.name ?? '', digest: actual } }),
    ...(plan === undefined || text(plan.report) === undefined || text(plan.digest) === undefined
      ? {}
      : { plan: { configMap: text(plan.report) ?? '', digest: text(plan.digest) ?? '' } }),
  };
}
