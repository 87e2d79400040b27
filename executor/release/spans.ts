/**
 * One-way spans of phases: what half of it must not be left by anything but the other half, or by an authorised rollback.
 * Pure; `span-keeper.ts` makes it durable.
 *
 * A span is entered by the first write in one of its phases and left when the gates of its last phase are open. It binds only a
 * change of something that was complete once: a first install has nothing to go back to.
 */
import type { PayloadContent } from '../../constructs/api/payload.ts';
import type { ChangeClass, HistoryEntry } from '../../constructs/api/release.ts';
import type { SpanPosition } from '../../constructs/api/span.ts';
import { shortDigest } from '../../constructs/lib/digest.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

export interface Span {
  readonly from: string;
  readonly to: string;
}

type Phases = Pick<PayloadContent, 'spans' | 'phases'>;

/** The span that a phase lies in, both ends included; spans that share a phase are one. */
export function spanAround({ spans, phases }: Phases, phase: string): Span | undefined {
  const place = new Map(phases.map(({ name }, n) => [name, n]));
  const bounds = spans.map(({ from, to }) => [place.get(from) ?? -1, place.get(to) ?? -1] as const);
  let [first, last] = [place.get(phase) ?? -1, place.get(phase) ?? -1];
  let found = false;
  // Each round takes in at least one more span, or ends.
  for (let grown = true; grown; ) {
    grown = false;
    for (const [from, to] of bounds) {
      if (from > last || to < first) continue;
      found = true;
      if (from >= first && to <= last) continue;
      [first, last, grown] = [Math.min(first, from), Math.max(last, to), true];
    }
  }
  const [from, to] = [phases[first]?.name, phases[last]?.name];
  return found && from !== undefined && to !== undefined ? { from, to } : undefined;
}

/** What a change is about, for its spans. */
export interface Transition {
  /** Payload that is carried out now. */
  readonly digest: string;
  /** The newest payload that was carried out in full; undefined for a first install, and when it is this very one. */
  readonly back: string | undefined;
}

/**
 * What a pass of the newest payload of the history changes. Nothing was complete before a first install, however often it
 * was replaced; and a payload that is complete itself is only kept, whatever a pass of it repairs. What Keelson puts in itself may
 * be taken back at any place, where it changes a complete payload or is the way back to it: the daemons are the same on either side.
 */
export function transitionOf(history: readonly HistoryEntry[], digest: string, changeClass?: ChangeClass): Transition {
  const [newest, before] = history;
  const back = history.find(({ state }) => state === 'Completed')?.digest;
  const own = changeClass === 'keelson' && (before?.state === 'Completed' || back === digest);
  const free = own || (newest?.digest === digest && newest.state === 'Completed');
  return { digest, back: free ? undefined : back };
}

/** The position that writes in a phase lead to; undefined when they lead to none, or to none but the present one. */
export function entering(
  position: SpanPosition | undefined,
  content: Phases,
  phase: string,
  { digest, back }: Transition,
  since: string,
): SpanPosition | undefined {
  if (position !== undefined || back === undefined) return undefined;
  const span = spanAround(content, phase);
  return span === undefined ? undefined : { payload: digest, back, ...span, direction: 'forward', since };
}

/** Whether the position is left when the gates of a phase stand open. */
export const leaving = (position: SpanPosition | undefined, digest: string, phase: string): boolean =>
  position?.direction === 'forward' && position.payload === digest && position.to === phase;

/** Payload that is under way inside the span. */
export const carried = ({ direction, payload, back }: SpanPosition): string =>
  direction === 'forward' ? payload : back;

/** The position once a payload was accepted that {@link wayThrough} lets through. */
export function turned(position: SpanPosition, digest: string): SpanPosition {
  const direction = digest === position.back && digest !== position.payload ? 'back' : 'forward';
  return { ...position, direction };
}

/**
 * What may become of a payload that is wanted. `open`: no span is open. `on`: it is the one under way, which is repaired and
 * carried on. `turn`: the other end of the span, which is the rollback that a person asked for, or the way forward after that was
 * withdrawn. `queued`: it waits until the span is left.
 */
export type Way = 'open' | 'on' | 'turn' | 'queued';

/**
 * Whether the payload that is wanted may be worked on now. Going back needs a person: a pin, which no courier and no commit
 * sets.
 */
export function wayThrough(
  position: SpanPosition | undefined,
  wanted: { readonly digest: string; readonly pinned: boolean },
): Way {
  if (position === undefined) return 'open';
  // A rollback that lost its pin goes on too, as long as it is wanted: it was authorised when it began.
  if (wanted.digest === carried(position)) return 'on';
  if (wanted.digest === position.payload) return 'turn';
  return wanted.digest === position.back && wanted.pinned ? 'turn' : 'queued';
}

const where = ({ from, to }: SpanPosition): string => (from === to ? `phase ${from}` : `phases ${from} to ${to}`);

/** What is told of a position, whatever is wanted. */
export const spanMessage = (position: SpanPosition): string => {
  const rollback = position.direction === 'back' ? 'the rollback to ' : '';
  return `${rollback}payload ${shortDigest(carried(position))} is inside the one-way span of ${where(position)} since ${position.since}`;
};

/** Why a payload waits, for what, and how a person may end it. `waitingOn` is what the one under way waits for. */
export function queuedProblem(position: SpanPosition, digest: string, waitingOn?: string): Problem {
  const on = waitingOn === undefined ? '' : `, which waits on ${waitingOn}`;
  return {
    reason: 'SpanOpen',
    message: `payload ${shortDigest(digest)} waits: ${spanMessage(position)}${on}`,
    remedy: remedyOf(position),
  };
}

function remedyOf({ direction, payload, back }: SpanPosition): string {
  if (direction === 'back') return 'wait; it is taken up when the rollback is complete';
  if (back === payload) return 'wait; only its own repair is accepted inside the span';
  return `wait, or annotate the Release with keelson.dev/pin=${back} to go back; nothing else is accepted inside the span`;
}
