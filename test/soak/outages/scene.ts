/** What is common to scenarios: one Release under one executor, and what is counted and judged of an outage. */
import {
  answeredAgain,
  busiestMinute,
  calledWrong,
  lookedAt,
  lost,
  objectWrites,
  type Told,
  trueTooLong,
  trueUnproven,
  unseenWrites,
  writesWithin,
} from './judge.ts';
import type { Observed } from './observed.ts';
import type { Facts, Outcome } from './report.ts';
import { objectCount, openStage, type Stage, type StageInput } from './stage.ts';

/** Requests in the busiest minute of an outage: a Lease every two seconds, and each kind's watch by its backoff. */
const requestsAMinute = 240;
const mostMiB = 200;
/** How long an API server that is back may take until everything is as it should be. */
const healedMs = 150_000;

export interface Scene {
  readonly stage: Stage;
  readonly executor: Observed;
  /** UIDs of the objects before anything was broken. */
  readonly uids: ReadonlyMap<string, string>;
}

/** A Release in place under one executor. */
export async function openScene(input: StageInput): Promise<Scene> {
  const stage = await openStage(input);
  try {
    const executor = await stage.executor('executor-0');
    await stage.inPlace(await stage.want('one'));
    return { stage, executor, uids: await stage.uids() };
  } catch (error) {
    await stage.close();
    throw error;
  }
}

/** A change of which some writes are done and some under way, each of them held up. */
export async function inTheMiddle({ stage, executor }: Scene, value: string): Promise<string> {
  const since = performance.now();
  executor.fault({
    match: ({ mutating, namespace }) => mutating && namespace === stage.namespace,
    fault: { kind: 'delay', ms: 1_500 },
  });
  const digest = await stage.want(value);
  await stage.written(executor, 2, since);
  return digest;
}

export interface Outage {
  readonly from: number;
  /** When the cause was taken away. */
  readonly restored: number;
  /** Digest that is to be in place when it is over. */
  readonly digest: string;
  /** False for outages too short to give a pass up for, so that no look is owed. */
  readonly relist: boolean;
  /** Nothing but the outage had happened. */
  readonly idle: boolean;
}

const seconds = (from: number, to: number | undefined): number | string =>
  to === undefined ? 'never' : (to - from) / 1000;

/** Waits until the Release is in place and as long as the grace could matter; then counts and judges. */
export async function afterwards(scenario: string, scene: Scene, outage: Outage): Promise<Outcome> {
  const { stage, executor } = scene;
  const { from, restored, digest } = outage;
  const { log } = executor;
  const back = await stage.until('an answer', () => answeredAgain(log, restored), 120_000);
  const inPlace = await settled(stage, digest, back);
  await stage.sleep(Math.max(0, (back + 38_000 - performance.now()) / 1000));
  const look = lookedAt(log, stage.namespace, back);
  const lostLease = executor.saidAt('lease stopped', from);
  const told = stage.told.filter(({ at }) => at >= from);
  const rewritten = objectWrites(log, stage.namespace).filter(({ answeredAt = 0 }) => answeredAt >= back);
  const { facts, problems } = await ending(scene, from);
  return {
    scenario,
    facts: {
      'outage, s': (restored - from) / 1000,
      'said that nothing answers, s after its begin': seconds(from, executor.saidAt('does not answer', from)),
      'Lease given up, s after its begin': seconds(from, lostLease),
      'requests in its busiest minute': busiestMinute(log, [from, restored]),
      'requests in it': log.filter(({ arrivedAt = 0 }) => arrivedAt >= from && arrivedAt < restored).length,
      'first answer, s after the end': seconds(restored, back),
      'led again, s after the first answer':
        lostLease === undefined ? 'kept' : seconds(back, executor.saidAt('lease leading', lostLease)),
      'first look, s after the first answer': seconds(back, look?.answeredAt),
      'in place, s after the first answer': seconds(back, Math.max(back, inPlace)),
      'requests in the minute after it': busiestMinute(log, [back, back + 60_000]),
      'writes of objects after it': rewritten.length,
      'Ready said': story(told, from),
      ...facts,
    },
    problems: [
      ...problems,
      ...(outage.relist ? unseenWrites(log, stage.namespace, back) : []),
      ...writesWithin(log, stage.namespace, [from + 2_000, restored]),
      ...(outage.relist ? trueTooLong(stage.told, log, stage.namespace, back) : []),
      ...trueUnproven(told, digest),
      ...(outage.idle ? calledWrong(told) : []),
      ...(busiestMinute(log, [from, restored]) > requestsAMinute ? ['it asked too often while nothing answered'] : []),
      ...(inPlace - back > healedMs ? [`it took ${((inPlace - back) / 1000).toFixed(0)} s to be in place again`] : []),
    ],
  };
}

/** When it was in place again: at once, where nothing but the outage had happened. */
async function settled(stage: Stage, digest: string, back: number): Promise<number> {
  const at = await stage.inPlace(digest);
  return Math.max(at, back);
}

/** What every scenario ends with: a further change arrives, nothing was lost, forced or swollen. */
export async function ending(
  { stage, executor, uids }: Scene,
  from: number,
): Promise<{ facts: Facts; problems: string[] }> {
  executor.heal();
  const since = performance.now();
  const done = await stage.inPlace(await stage.want('last'));
  const peak = await executor.peakMiB();
  const values = await stage.values();
  return {
    facts: { 'a further change, s': (done - since) / 1000, 'most memory, MiB': peak },
    problems: [
      ...lost(uids, await stage.uids()),
      ...(uids.size === objectCount ? [] : [`${uids.size} objects were in place at first`]),
      ...(values.join() === 'last' ? [] : [`objects hold ${values.join(', ')}`]),
      ...executor.violations,
      ...(executor.alive() ? [] : ['the executor ended']),
      ...(peak < mostMiB ? [] : [`it took ${peak.toFixed(0)} MiB`]),
      ...(executor.saidAt('"level":50', from) === undefined ? [] : ['it logged an error']),
    ],
  };
}

/** What Ready said, with seconds since `from`; a reason that stays is told once. */
export function story(told: readonly Told[], from: number): string {
  const words = told.map(({ ready, reason }) => `${ready} ${reason}`);
  const parts = told.flatMap(({ at }, n) =>
    words[n] === words[n - 1] ? [] : [`${words[n]} at ${((at - from) / 1000).toFixed(0)}`],
  );
  return parts.length === 0 ? 'nothing new' : parts.join(', ');
}
