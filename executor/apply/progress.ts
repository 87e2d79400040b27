/** What is known of a payload's way through its phases. Kept over the passes of one payload, read by status. */
import { isDeepStrictEqual } from 'node:util';
import type { Gate, PayloadContent } from '../../constructs/api/payload.ts';
import type { PhaseState } from '../../constructs/api/release.ts';
import type { GateVerdict } from '../release/domain.ts';

export interface GateRecord {
  readonly gate: Gate;
  readonly verdict: GateVerdict;
  /** Since when it has been in this state; milliseconds since 1970. */
  readonly since: number;
}

export interface PhaseRecord {
  readonly name: string;
  readonly state: PhaseState;
  /** Objects that are as the payload wants them, of `total`. */
  readonly applied: number;
  readonly total: number;
  readonly since: number;
  readonly gates: readonly GateRecord[];
}

export interface HeldObject {
  readonly id: string;
  /** What the annotation says. */
  readonly by: string;
}

/**
 * Each count that is told is worked into outcomes, metrics and an edge, on which a fast pass would spend a tenth of its time:
 * of a large phase a twentieth at a time is told, unless it is slow.
 */
const [tellings, tellEveryMs] = [20, 200];
/** So many of the last ones are told each: what is missing of a phase is asked for most when little is. */
const lastOnes = 3;

/** How long a gate may be told with the time of the look that it rests on, while later ones say the same: each round has another. */
const evidenceRestMs = 300_000;

/** Whether a verdict tells nothing that is worth a write of the status. */
function saysTheSame(
  { evidenceTime: before, ...was }: GateVerdict,
  { evidenceTime: now, ...is }: GateVerdict,
): boolean {
  if (!isDeepStrictEqual(was, is)) return false;
  if (before === undefined || now === undefined) return before === now;
  return Math.abs(now - before) < evidenceRestMs;
}

/** The record of one payload. `changed` is called after every change that
 * status would show, and with false after a look that showed none. */
export class PassProgress {
  readonly digest: string;
  readonly #now: () => number;
  readonly #changed: (moved: boolean) => void;
  #phases: PhaseRecord[];
  #toldAt = Number.NEGATIVE_INFINITY;
  held: readonly HeldObject[] = [];

  constructor(digest: string, content: PayloadContent, now: () => number, changed: (moved: boolean) => void) {
    this.digest = digest;
    this.#now = now;
    this.#changed = changed;
    this.#phases = content.phases.map((phase) => ({
      name: phase.name,
      state: 'Pending',
      applied: 0,
      total: phase.objects.length,
      since: now(),
      gates: [],
    }));
  }

  get phases(): readonly PhaseRecord[] {
    return this.#phases;
  }

  /** Objects in place, over all phases. */
  get done(): number {
    return this.#phases.reduce((sum, phase) => sum + phase.applied, 0);
  }

  get total(): number {
    return this.#phases.reduce((sum, phase) => sum + phase.total, 0);
  }

  state(name: string, state: PhaseState): void {
    this.#change(name, (phase) => (phase.state === state ? phase : { ...phase, state, since: this.#now() }));
  }

  /** Counts of a large phase are told now and then, and its last ones; what is read here is always the newest. */
  applied(name: string, applied: number): void {
    const now = this.#now();
    const total = this.#phases.find((phase) => phase.name === name)?.total ?? 0;
    const step = Math.max(1, Math.floor(total / tellings));
    const due = applied % step === 0 || total - applied < lastOnes || Math.abs(now - this.#toldAt) >= tellEveryMs;
    if (due) this.#toldAt = now;
    this.#change(name, (phase) => (phase.applied === applied ? phase : { ...phase, applied }), !due);
  }

  /** Takes in verdicts; a gate that stays in its state keeps its time, and verdicts that say the same are no change. */
  gates(name: string, verdicts: readonly { gate: Gate; verdict: GateVerdict }[]): void {
    this.#change(name, (phase) => {
      const gates = verdicts.map(({ gate, verdict }): GateRecord => {
        const known = phase.gates.find((record) => record.gate.type === gate.type && record.gate.scope === gate.scope);
        if (known === undefined || known.verdict.state !== verdict.state) return { gate, verdict, since: this.#now() };
        return saysTheSame(known.verdict, verdict) ? known : { gate, verdict, since: known.since };
      });
      const same = gates.length === phase.gates.length && gates.every((record, n) => record === phase.gates[n]);
      return same ? phase : { ...phase, gates };
    });
    // Time passes although nothing else does: what waits becomes slow.
    this.#changed(false);
  }

  #change(name: string, change: (phase: PhaseRecord) => PhaseRecord, quietly = false): void {
    let any = false;
    this.#phases = this.#phases.map((phase) => {
      if (phase.name !== name) return phase;
      const next = change(phase);
      any ||= next !== phase;
      return next;
    });
    if (any && !quietly) this.#changed(true);
  }
}
