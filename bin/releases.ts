import { annotations, apiVersion } from '../constructs/api/constants.ts';
import type { Condition } from '../constructs/api/fields.ts';
import { gateText } from '../constructs/api/payload.ts';
import type { ReleaseSpec, ReleaseStatus } from '../constructs/api/release.ts';
import { formatDuration } from '../constructs/lib/duration.ts';
import type { KubeClient } from '../executor/kube/client.ts';
import { table } from './output.ts';

/** A Release as the command line reads it. */
export interface ReleaseView {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: ReleaseSpec;
  readonly status: NonNullable<ReleaseStatus>;
}

/** All Releases of a namespace, by name. @throws Error when they can not be read. */
export async function readReleases(client: KubeClient, namespace: string, signal: AbortSignal): Promise<ReleaseView[]> {
  const listed = await client.list({ apiVersion, kind: 'Release', namespace }, { signal });
  if (listed.type !== 'listed') throw new Error(`the Releases can not be read: ${listed.message}`);
  return listed.items
    .map((item) => ({
      name: item.metadata.name ?? '',
      uid: item.metadata.uid ?? '',
      generation: item.metadata.generation ?? 0,
      annotations: item.metadata.annotations ?? {},
      spec: item.spec as unknown as ReleaseSpec,
      status: (item.status ?? {}) as unknown as NonNullable<ReleaseStatus>,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

const conditionOf = (release: ReleaseView, type: string): Condition | undefined =>
  release.status.conditions?.find((condition) => condition.type === type);

/** Reasons that do not pass while somebody only watches: a person has to do something. */
const resting = new Set(['ApprovalRequired', 'PhaseSuspended', 'PlanOnly', 'Paused', 'ReleaseHeld']);

/**
 * Whether there is anything to wait for. `done`: ready, or as far as gates that are bypassed let it be known; `stuck`: it
 * will not get further by itself.
 */
export function settled(release: ReleaseView): 'done' | 'stuck' | undefined {
  const { status, spec } = release;
  if (status.observedGeneration !== release.generation) return undefined;
  if (conditionOf(release, 'Stalled')?.status === 'True' || release.annotations[annotations.pin] !== undefined)
    return 'stuck';
  const [ready, progressing] = [conditionOf(release, 'Ready'), conditionOf(release, 'Progressing')];
  if ([ready, progressing].some((c) => c !== undefined && c.status !== 'True' && resting.has(c.reason))) return 'stuck';
  const wanted = status.desired === spec.payload.digest && status.actual === spec.payload.digest;
  if (!wanted) return undefined;
  if (ready?.status === 'True') return 'done';
  const all = (status.phases ?? []).every((phase) => phase.state === 'Done');
  return ready?.reason === 'GatesBypassed' && all ? 'done' : undefined;
}

/** Why a release rests although nothing is wrong with it: what was good before stays Ready meanwhile. */
function rest(release: ReleaseView): Condition | undefined {
  const progressing = conditionOf(release, 'Progressing');
  return progressing?.status === 'False' && resting.has(progressing.reason) ? progressing : undefined;
}

/** One line that changes when, and only when, something worth telling changed. */
export function progressLine(release: ReleaseView): string {
  const { sync, state } = release.status;
  const ready = conditionOf(release, 'Ready');
  const parts = [
    release.name,
    state ?? 'Initial',
    sync === undefined ? '' : `${sync.step} ${sync.done}/${sync.total}`,
    ready === undefined ? '' : `Ready=${ready.status} ${ready.reason}`,
    sync?.blocker === undefined ? '' : `waits: ${sync.blocker.message}`,
    rest(release)?.message ?? '',
    pinned(release),
  ];
  return parts.filter((part) => part !== '').join('  ');
}

function pinned({ annotations: found }: ReleaseView): string {
  const pin = found[annotations.pin];
  return pin === undefined ? '' : `pinned to ${pin}`;
}

export function releaseTable(releases: readonly ReleaseView[]): string {
  const rows = releases.map((release) => {
    const { sync, state, actual } = release.status;
    const ready = conditionOf(release, 'Ready');
    const resting = rest(release);
    return [
      release.name,
      ready?.status ?? 'Unknown',
      resting?.reason ?? ready?.reason ?? 'NeverSeen',
      state ?? 'Initial',
      sync === undefined ? '' : `${sync.step} ${sync.done}/${sync.total}`,
      actual === undefined ? '-' : actual.replace(/^sha256:/, '').slice(0, 12),
      [resting?.message ?? sync?.blocker?.message ?? ready?.message ?? '', pinned(release)].filter(Boolean).join('; '),
    ];
  });
  return table(['RELEASE', 'READY', 'REASON', 'STATE', 'STEP', 'ACTUAL', 'MESSAGE'], rows);
}

const since = (text: string | undefined, now: number): string => {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? '' : formatDuration(Math.max(0, Math.round((now - at) / 1000) * 1000));
};

/** Everything about one Release that a person who waits for it wants to know. */
export function releaseDetail(release: ReleaseView, now: number): string {
  const { status, spec } = release;
  const lines = [
    releaseTable([release]),
    '',
    `wanted    ${spec.payload.digest}`,
    `enforced  ${status.actual ?? 'nothing yet'}`,
  ];
  for (const key of [annotations.hold, annotations.pin])
    if (release.annotations[key] !== undefined) lines.push(`${key}: ${release.annotations[key]}`);
  if (status.plan !== undefined) {
    const counts = Object.entries(status.plan.counts).flatMap(([name, count]) =>
      (count ?? 0) > 0 ? [`${count} ${name}`] : [],
    );
    lines.push(`plan      ${status.plan.digest} (${status.plan.changeClass}; ${counts.join(', ') || 'nothing'})`);
  }
  const blocker = status.sync?.blocker;
  if (blocker !== undefined) {
    const limits = [
      blocker.softLimit === undefined ? '' : `soft limit ${blocker.softLimit}`,
      blocker.limit === undefined ? '' : `limit ${blocker.limit}`,
    ].filter((text) => text !== '');
    const bounds = limits.length === 0 ? '' : `, ${limits.join(', ')}`;
    lines.push('', `waits for ${since(blocker.since, now)}${bounds}: ${blocker.message} [${blocker.reason}]`);
  }
  const phases = (status.phases ?? []).flatMap((phase) => [
    [phase.name, phase.state, `${phase.applied}/${phase.total}`, since(phase.since, now), ''],
    ...phase.gates.map((gate) => [
      `  ${gateText(gate)}`,
      gate.bypassed === true ? `${gate.state}, bypassed` : gate.state,
      '',
      since(gate.since, now),
      gate.state === 'True' ? '' : `${gate.message} [${gate.reason}]`,
    ]),
  ]);
  if (phases.length > 0) lines.push('', table(['PHASE', 'STATE', 'APPLIED', 'SINCE', 'MESSAGE'], phases));
  const conditions = (status.conditions ?? []).map((c) => [c.type, c.status, c.reason, c.message]);
  if (conditions.length > 0) lines.push('', table(['CONDITION', 'STATUS', 'REASON', 'MESSAGE'], conditions));
  for (const failure of status.failures ?? [])
    lines.push('', `failed: ${failure.object ?? ''} ${failure.message} [${failure.reason}]`.replace(/ {2}/, ' '));
  return lines.join('\n');
}
