/**
 * NorthdReady: exactly one northd is active, the others stand by, each is connected to both databases, and changes get
 * through. A hand-over that a round happens to catch is not a fault; an active northd that keeps moving is one. Pure.
 */
import type { NorthdFacts } from '../../constructs/api/evidence/central.ts';
import type { EvidenceOf } from '../../constructs/api/evidence.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { broken, type Finding, type Judged, judge, memberName, missing, open, silence, weak } from './finding.ts';
import { judgeProgress, type ProgressMemory } from './progress.ts';
import type { CentralRound, CentralSample } from './round.ts';

/** Times are on the clock that never jumps. */
export interface NorthdMemory {
  /** Pod of the northd that was seen active last. */
  readonly active?: string;
  /** When another one was seen active than before; the oldest first, not older than the window. */
  readonly changes: readonly number[];
  /** Whether it was told as flapping in the last round. */
  readonly flapping: boolean;
  /** Rounds in a row in which not exactly one was active. */
  readonly odd: number;
  /** Pods whose northd lacked a connection in the last round. */
  readonly cut?: readonly string[];
  readonly progress?: ProgressMemory;
}

export const emptyNorthdMemory: NorthdMemory = { changes: [], flapping: false, odd: 0 };

export interface JudgedNorthd extends Judged {
  readonly memory: NorthdMemory;
  /** What the pace of the chassis gives to think of. */
  readonly chassis: readonly Finding[];
}

const windowMs = 600_000;
/** So many changes within the window are a flap; it is over once there are no more than one. */
const flapsAt = 3;
const calmAt = 1;
/** One odd round may be a hand-over. */
const oddRounds = 2;
const mostChanges = 64;

interface Answer {
  readonly about: string;
  readonly pod: string;
  readonly facts: NorthdFacts;
}

function answerOf({ target, first, second }: CentralSample): Answer | Finding {
  const about = memberName(target);
  // A member that is not there at all is a matter of OVNDBReady; of northd it takes a stand-by away, and no more.
  // One that came meanwhile and was not heard is there, and may know more than the others.
  const came = first.type === 'Broken' && second.type !== 'Broken' && second.type !== 'Evidence';
  for (const { type, ...why } of came ? [] : [first, second])
    if (type === 'Broken') return weak('MemberMissing', about, { message: 'message' in why ? why.message : '' });
  const silent = (came ? undefined : silence(first, about)) ?? silence(second, about);
  if (silent !== undefined || second.type !== 'Evidence') return silent ?? open('RoundPending', about);
  const { northd: facts } = second.evidence.facts;
  if (facts !== undefined) return { about, pod: target.pod?.uid ?? target.node.name, facts };
  const why = missing(second.evidence, 'northd', about);
  return isDown(second.evidence) ? { ...why, weight: 'weak' } : why;
}

/** Whether nobody listens for any daemon of a member: it is as much away as one whose pod is. */
const isDown = ({ problems }: EvidenceOf<'central'>): boolean =>
  (['nb', 'sb', 'northd'] as const).every((component) =>
    problems.some((problem) => problem.component === component && problem.code === 'refused'),
  );

/** A member that is not asked since its Node is gone may run on there: while no other northd is active, it may be the one. */
const mayRun = ({ target, first, second }: CentralSample): boolean =>
  target.pod !== undefined && [first, second].some(({ type }) => type === 'Broken');

const lacksOf = ({ nb, sb }: NorthdFacts): string[] => [...(nb ? [] : ['NB']), ...(sb ? [] : ['SB'])];

/** Every northd goes after a leader that moves: on its way it is not connected, and what another round finds again is cut off. */
function ownFindings({ about, pod, facts }: Answer, { cut = [] }: NorthdMemory): Finding[] {
  if (facts.state === 'paused') return [broken('NorthdPaused', about)];
  const database = lacksOf(facts).join(' and ');
  if (database === '') return [];
  return [(cut.includes(pod) ? broken : open)('NorthdDisconnected', about, { database })];
}

/** Judges a round; `tick` is its end on the clock that never jumps, `behind` names chassis that SB tells to be behind. */
export function judgeNorthd(round: CentralRound, tick: number, memory: NorthdMemory, behind?: string): JudgedNorthd {
  const read = round.samples.map(answerOf);
  const answers = read.filter((one): one is Answer => 'facts' in one);
  const active = answers.filter(({ facts }) => facts.state === 'active');
  const silent = round.samples.flatMap((sample, n): Finding[] => {
    const one = read[n];
    if (one === undefined || 'facts' in one) return [];
    return [active.length === 0 && mayRun(sample) ? { ...one, weight: 'open' } : one];
  });
  const complete = silent.every(({ weight }) => weight === 'weak');
  const pods = new Set(round.samples.map(({ target }) => target.pod?.uid ?? target.node.name));
  const next = remember(active, { complete, pods }, tick, memory);
  const progress = judgeProgress(round, tick, memory.progress, behind);
  const findings = [
    ...silent,
    ...answers.flatMap((one) => ownFindings(one, memory)),
    ...countFindings(active, { complete, size: read.length, rounds: next.odd }),
    ...flapFindings(next, tick),
    ...progress.northd,
    ...(read.length === 0
      ? [open('NothingExpected', 'OVN central', { message: 'no node of OVN central is accepted' })]
      : []),
  ];
  const text = `${flapText(next)}${active.length === 1 ? `${active[0]?.about ?? ''} is active` : `${active.length} active`}, ${
    answers.length - active.length
  } stand by`;
  return {
    ...judge('NorthdReady', findings, { reason: 'OneActive', message: text }, flapText(next).replace(/; $/, '')),
    chassis: progress.chassis,
    memory: {
      ...next,
      cut: answers.filter(({ facts }) => lacksOf(facts).length > 0).map(({ pod }) => pod),
      ...(progress.memory === undefined ? {} : { progress: progress.memory }),
    },
  };
}

const flapText = ({ changes }: NorthdMemory): string =>
  changes.length === 0 ? '' : `the active northd changed ${changes.length} times within ${formatDuration(windowMs)}; `;

/** What goes to the next round. A move away from a pod that is gone is none: a rollout takes each of them once. */
function remember(
  active: readonly Answer[],
  { complete, pods }: { readonly complete: boolean; readonly pods: ReadonlySet<string> },
  tick: number,
  memory: NorthdMemory,
): NorthdMemory {
  const recent = memory.changes.filter((at) => tick - at < windowMs);
  const [one] = active;
  const now = active.length === 1 ? one?.pod : undefined;
  const changed = now !== undefined && memory.active !== undefined && now !== memory.active && pods.has(memory.active);
  const changes = (changed ? [...recent, tick] : recent).slice(-mostChanges);
  const known = now ?? memory.active;
  // Several active ones are seen to be several; that none is active is known only when all have answered.
  const odd = active.length > 1 || (active.length === 0 && complete);
  return {
    ...(known === undefined ? {} : { active: known }),
    changes,
    flapping: memory.flapping ? changes.length > calmAt : changes.length >= flapsAt,
    odd: odd ? memory.odd + 1 : active.length === 1 ? 0 : memory.odd,
  };
}

function countFindings(
  active: readonly Answer[],
  { complete, size, rounds }: { readonly complete: boolean; readonly size: number; readonly rounds: number },
): Finding[] {
  if (active.length === 1 || size === 0) return [];
  const about = 'northd';
  if (active.length > 1) {
    const observed = active
      .map((one) => one.about)
      .sort()
      .join(' and ');
    return rounds >= oddRounds
      ? [broken('NorthdTwice', about, { observed, rounds })]
      : [open('NorthdHandover', about, { observed: active.length })];
  }
  if (!complete) return [];
  return rounds >= oddRounds
    ? [broken('NorthdInactive', about, { rounds, size })]
    : [open('NorthdHandover', about, { observed: 0 })];
}

function flapFindings({ flapping, changes }: NorthdMemory, tick: number): Finding[] {
  if (!flapping) return [];
  const elapsed = formatDuration(Math.min(windowMs, tick - (changes[0] ?? tick)));
  return [broken('NorthdFlapping', 'northd', { observed: changes.length, elapsed, wanted: calmAt })];
}
