import { limits } from '../../constructs/api/constants.ts';
import {
  type EvidenceKind,
  evidenceComponents,
  evidenceSchema,
  type ProblemCode,
} from '../../constructs/api/evidence/words.ts';
import type { EvidenceProblem, EvidenceSubject } from '../../constructs/api/evidence.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { cut } from '../../constructs/lib/cut.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { type FaultCode, fault, type Result } from '../jsonrpc/fault.ts';
import type { Collector, Collectors } from './collector.ts';

/** One answer: every component looked at anew and at once, each within its own limit. */

const codes: Readonly<Record<FaultCode, ProblemCode>> = {
  timeout: 'timeout',
  refused: 'refused',
  denied: 'denied',
  protocol: 'protocol',
  tooLarge: 'tooLarge',
  // Somebody listened, and may do so again: only whoever finds nobody there says that nobody is.
  closed: 'protocol',
  aborted: 'timeout',
};

interface Looked {
  readonly component: string;
  readonly result: Result<unknown>;
  readonly elapsedMs: number;
  readonly limitMs: number;
}

const messageLength = 512;

/** A message as it leaves the process: without secrets, and short. */
const tellable = (message: string): string => cut(redact(message), messageLength);

const problemOf = ({ component, result, elapsedMs, limitMs }: Looked): EvidenceProblem[] =>
  result.type === 'ok'
    ? []
    : [{ component, code: codes[result.code], message: tellable(result.message), elapsedMs, limitMs }];

/** Whose looks are still out although their time is over. They are not asked again meanwhile: each would hold more. */
export type Stuck = Set<string>;

async function look(
  component: string,
  collector: Collector<unknown>,
  { clock, stuck, signal, question }: Looking,
): Promise<Looked> {
  const { limitMs } = collector;
  const from = clock.monotonic();
  const done = (result: Result<unknown>): Looked => ({
    component,
    result,
    elapsedMs: Math.round(clock.monotonic() - from),
    limitMs,
  });
  if (stuck.has(component)) return done(fault('timeout', `${component}: an earlier look has not come back`));
  const over = new AbortController();
  const timer = new AbortController();
  const work = collector.collect(AbortSignal.any([over.signal, signal]), question).catch(
    // A collector that throws is at fault itself; the answer says which, not what it held.
    (error: unknown) => fault('protocol', `${component}: ${error instanceof Error ? error.name : 'failed'}`),
  );
  let late = false;
  const limit = clock.sleep(limitMs, AbortSignal.any([timer.signal, signal])).then(
    () => {
      late = true;
    },
    () => undefined,
  );
  const first = await Promise.race([work, limit.then(() => undefined)]);
  timer.abort();
  if (first !== undefined) return done(first);
  if (late) stuck.add(component);
  void work.then(() => stuck.delete(component));
  over.abort();
  return done(fault(late ? 'timeout' : 'aborted', `${component}: no answer within ${limitMs} ms`));
}

interface Looking {
  readonly clock: Clock;
  readonly stuck: Stuck;
  /** What the executor sent along. */
  readonly question?: string | undefined;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export interface AnswerInput<K extends EvidenceKind> extends Looking {
  readonly kind: K;
  readonly nonce: string;
  readonly subject: EvidenceSubject;
  readonly version: string;
  readonly collectors: Collectors<K>;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** The text of an answer; never more than its limit, a component that is too large being told of as a problem. */
export async function answer<K extends EvidenceKind>(input: AnswerInput<K>): Promise<string> {
  const { kind, nonce, subject, version, clock } = input;
  const components: readonly string[] = evidenceComponents[kind];
  const collectors: Readonly<Record<string, Collector<unknown>>> = input.collectors;
  const [startedAt, from] = [clock.now(), clock.monotonic()];
  const looked = await Promise.all(
    components.flatMap((component) => {
      const collector = collectors[component];
      return collector === undefined ? [] : [look(component, collector, input)];
    }),
  );
  const observation = {
    startedAt: iso(startedAt),
    endedAt: iso(clock.now()),
    elapsedMs: Math.round(clock.monotonic() - from),
  };
  const envelope = { schema: evidenceSchema, kind, nonce, observation, subject, probe: { version } };
  return fitted(looked, (some) => {
    const problems = some.flatMap(problemOf);
    const facts = Object.fromEntries(
      some.flatMap(({ component, result }) => (result.type === 'ok' ? [[component, result.value]] : [])),
    );
    return JSON.stringify({ ...envelope, complete: problems.length === 0, facts, problems });
  });
}

/** Gives up the largest component until the whole fits. */
function fitted(looked: readonly Looked[], write: (some: readonly Looked[]) => string): string {
  const text = write(looked);
  if (Buffer.byteLength(text) <= limits.evidenceBytes) return text;
  const sizes = looked.map(({ result }) => (result.type === 'ok' ? JSON.stringify(result.value).length : 0));
  const largest = sizes.indexOf(Math.max(...sizes));
  const result = fault('tooLarge', `the facts are larger than ${limits.evidenceBytes} bytes together`);
  return fitted(
    looked.map((one, n) => (n === largest ? { ...one, result } : one)),
    write,
  );
}
