/** What kind of change a network payload is, and whether anything may carry it out. Pure. */
import { compare, parse, valid } from 'semver';
import type { InstallationEntry } from '../../constructs/api/payload.ts';
import type { PlanActions } from '../../constructs/api/plan.ts';
import type { ChangeClass } from '../../constructs/api/release.ts';
import type { Classification } from '../release/domain.ts';
import { ownChanges, type RenderedPayload } from './injected.ts';
import { rolloutRisks, unsafeRollout } from './rollout.ts';

export interface ClassifyInput {
  /** Installation as the new payload renders it. */
  readonly next: InstallationEntry;
  /** As the accepted payload renders it; undefined while none is accepted. */
  readonly previous: InstallationEntry | undefined;
  /** Whether a full pass of the accepted payload ever completed. */
  readonly completed: boolean;
  /** What the status says was authorised; it outlives ledger and payloads. */
  readonly checkpoint:
    | { readonly manifestDigest: string; readonly specDigest: string; readonly baseDigest: string }
    | undefined;
  readonly observedVersion: string | undefined;
  readonly actions: Pick<PlanActions, 'created' | 'configured' | 'replaced' | 'pruned' | 'absent'>;
  /** Both payloads with their objects; where they are absent no change of an object is known to be Keelson's own. */
  readonly rendered?: { readonly before: RenderedPayload; readonly after: RenderedPayload };
}

const bare = (version: string): string => version.replace(/^v/, '');

/** Below zero when `a` is the older version; versions that are not semantic compare as text. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [bare(a), bare(b)];
  if (valid(left) !== null && valid(right) !== null) return compare(parse(left) ?? left, parse(right) ?? right);
  return left < right ? -1 : left > right ? 1 : 0;
}

const allowed = (changeClass: ChangeClass): Classification => ({ verdict: 'allowed', changeClass });

const blocked = (changeClass: ChangeClass, message: string): Classification => ({
  verdict: 'blocked',
  changeClass,
  reason: 'ChangeBlocked',
  message,
});

const uninstall =
  'take the change back in Git; to start anew instead, run keelson uninstall for this installation and install again';

function versionChange(next: InstallationEntry, from: string): Classification {
  const to = next.version ?? '';
  if (compareVersions(to, from) < 0)
    return blocked(
      'rollback',
      `going back from ${bare(from)} to ${bare(to)} needs the rollback lifecycle, which this executor does not contain; set spec.version and spec.chart back to ${bare(from)}`,
    );
  return blocked(
    'versionOnly',
    `going from ${bare(from)} to ${bare(to)} needs the upgrade lifecycle, which this executor does not contain; set spec.version and spec.chart back to ${bare(from)}`,
  );
}

/** Objects that are not merely added. */
const touchedBy = ({ configured, replaced, pruned, absent }: ClassifyInput['actions']): string[] => [
  ...configured,
  ...replaced,
  ...pruned,
  ...absent,
];

/** Objects of a change that are touched in something that is not Keelson's own, in words; and what of it is. */
function othersText({ rendered, actions }: ClassifyInput): { readonly others: string; readonly beside: string } {
  const touched = touchedBy(actions);
  const own = rendered === undefined ? new Set() : ownChanges(rendered.before, rendered.after, touched);
  const others = touched.filter((id) => !own.has(id));
  const few = others.slice(0, 3).join(', ');
  const more = others.length > 3 ? ` and ${others.length - 3} more` : '';
  const beside =
    own.size === 0
      ? ''
      : ` (what Keelson puts into ${own.size} other(s) itself may change: make that a change by itself)`;
  return { others: `${others.length} object(s)${others.length === 0 ? '' : ` (${few}${more})`}`, beside };
}

/**
 * A change of nothing but what Keelson puts in itself: the daemons stay as they are, and start anew with their pods. Undefined for
 * any other change.
 */
function ownChange({ rendered, actions }: ClassifyInput): Classification | undefined {
  const touched = touchedBy(actions);
  if (rendered === undefined || touched.length === 0) return undefined;
  const { before, after } = rendered;
  if (ownChanges(before, after, touched).size < touched.length) return undefined;
  const unsafe = unsafeRollout(before, after, actions);
  if (unsafe !== undefined)
    return blocked('blocked', `only what Keelson puts in itself changes, but ${unsafe}: ${uninstall}`);
  const effects = rolloutRisks(before, after, actions.configured);
  return { verdict: 'allowed', changeClass: 'keelson', effects };
}

/** Only what no lifecycle has to guard goes ahead: nothing, a policy field, further objects, or what Keelson puts in itself. */
function changeOfObjects(input: ClassifyInput, previous: InstallationEntry): Classification {
  const { next, actions } = input;
  const from = input.observedVersion ?? previous.version;
  if (from !== undefined && next.version !== undefined && compareVersions(from, next.version) !== 0)
    return versionChange(next, from);
  if (
    previous.baseDigest === next.baseDigest &&
    previous.specDigest !== next.specDigest &&
    actions.configured.length > 0
  )
    return blocked(
      'membership',
      `a change of central.replicas or member requests needs the membership lifecycle, which this executor does not contain; ${uninstall}`,
    );
  const own = ownChange(input);
  if (own !== undefined) return own;
  if (touchedBy(actions).length > 0) {
    const { others, beside } = othersText(input);
    const what = `it would change ${others} that the checkpoint fixes`;
    return blocked('blocked', `${what}; no lifecycle carries this change out${beside}: ${uninstall}`);
  }
  if (actions.created.length > 0) return allowed('additive');
  return allowed(previous.specDigest === next.specDigest ? 'none' : 'policy');
}

/**
 * The class of a change. While the first install is still partial, nothing that it fixed may change: what is in the cluster
 * is unknown to both the old and the new payload. What Keelson puts in itself may: every daemon is the same in both of them.
 */
export function classifyNetwork(input: ClassifyInput): Classification {
  const { previous, checkpoint, next, actions } = input;
  if (previous === undefined) {
    if (checkpoint === undefined || checkpoint.manifestDigest === next.manifestDigest) return allowed('additive');
    return blocked(
      'blocked',
      `the status of the installation was authorised for other objects (${checkpoint.manifestDigest}) and the payload behind it is not at hand: deliver that payload first, or ${uninstall}`,
    );
  }
  if (!input.completed && touchedBy(actions).length > 0 && ownChange(input) === undefined) {
    const { others, beside } = othersText(input);
    return blocked(
      'blocked',
      `the first install is not complete yet, and this payload changes ${others} of it${beside}: ${uninstall}`,
    );
  }
  return changeOfObjects(input, previous);
}
