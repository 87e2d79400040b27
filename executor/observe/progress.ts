/**
 * How far changes of NB have come: nb_cfg is counted up by whoever writes, sb_cfg follows when northd has carried it to SB,
 * hv_cfg when every registered chassis has carried it out. The replicas of NB may be behind one another, so what counts is
 * the furthest that anybody tells. Pure.
 */
import type { CentralFacts } from '../../constructs/api/evidence/central.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { broken, type Finding, open, weak } from './finding.ts';
import type { CentralRound } from './round.ts';

/** What was told last, and since when each half stands still with work before it; on the clock that never jumps. */
export interface ProgressMemory {
  readonly nbCfg: string;
  readonly sbCfg: string;
  readonly hvCfg: string;
  readonly northdSince?: number;
  readonly chassisSince?: number;
}

export interface JudgedProgress {
  /** Belongs to NorthdReady. */
  readonly northd: readonly Finding[];
  /** Chassis of nodes that are gone count as well. */
  readonly chassis: readonly Finding[];
  readonly memory: ProgressMemory | undefined;
}

/** Standing still for longer than this is not work under way. */
const stillLimitMs = 60_000;

const furthest = (texts: readonly string[]): bigint => texts.map(BigInt).toSorted((a, b) => (a < b ? 1 : -1))[0] ?? 0n;

/** Since when something stands still; undefined while nothing is before it. */
function stillSince(behind: boolean, moved: boolean, since: number | undefined, tick: number): number | undefined {
  if (!behind) return undefined;
  return moved || since === undefined ? tick : since;
}

/** Judges the progress of a round against what the rounds before told. */
export function judgeProgress(
  { samples }: CentralRound,
  tick: number,
  memory: ProgressMemory | undefined,
  behind = 'chassis that nobody names',
): JudgedProgress {
  const told = samples.flatMap(({ second }) =>
    second.type === 'Evidence' && second.evidence.facts.progress !== undefined ? [second.evidence.facts.progress] : [],
  );
  if (told.length === 0)
    return {
      northd: [open('EvidenceIncomplete', 'OVN central', { component: 'nb_cfg', message: 'no member tells it' })],
      chassis: [],
      memory,
    };
  const most = (key: 'nbCfg' | 'sbCfg' | 'hvCfg'): bigint => furthest(told.map((one) => one[key]));
  const [nb, sb, hv] = [most('nbCfg'), most('sbCfg'), most('hvCfg')];
  const moved = (key: 'sbCfg' | 'hvCfg', now: bigint): boolean => memory === undefined || BigInt(memory[key]) !== now;
  const northdSince = stillSince(sb < nb, moved('sbCfg', sb), memory?.northdSince, tick);
  const chassisSince = stillSince(hv < sb, moved('hvCfg', hv), memory?.chassisSince, tick);
  const lasts = (since: number | undefined): string | undefined =>
    since !== undefined && tick - since >= stillLimitMs ? formatDuration(tick - since) : undefined;
  const [northdFor, chassisFor] = [lasts(northdSince), lasts(chassisSince)];
  // A member that said nothing may know more than the others.
  const stuck = told.length === samples.length ? broken : open;
  return {
    northd:
      northdFor === undefined
        ? []
        : [stuck('NorthdStuck', 'OVN central', { observed: String(sb), wanted: String(nb), elapsed: northdFor })],
    chassis:
      chassisFor === undefined
        ? []
        : [
            weak('ChassisBehind', 'chassis', {
              observed: String(hv),
              wanted: String(sb),
              elapsed: chassisFor,
              message: behind,
            }),
          ],
    memory: {
      nbCfg: String(nb),
      sbCfg: String(sb),
      hvCfg: String(hv),
      ...(northdSince === undefined ? {} : { northdSince }),
      ...(chassisSince === undefined ? {} : { chassisSince }),
    },
  };
}

/** Version of northd that SB tells the chassis; undefined while nobody told it, or members tell different ones. */
export function northdVersion({ samples }: CentralRound): string | undefined {
  const facts = samples.flatMap(({ second }): CentralFacts[] =>
    second.type === 'Evidence' ? [second.evidence.facts] : [],
  );
  const versions = new Set(facts.flatMap(({ progress }) => progress?.northdInternalVersion ?? []));
  const [version] = versions;
  return versions.size === 1 ? version : undefined;
}
