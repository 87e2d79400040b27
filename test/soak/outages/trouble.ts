/** The API server answers, but late, or that it will not; and an executor that was stopped and wakes up late. */
import type { KubeRequest } from '../../faults/request.ts';
import { busiestMinute, calledWrong, lost, objectWrites, trueUnproven, writesWithin } from './judge.ts';
import type { Observed } from './observed.ts';
import type { Outcome } from './report.ts';
import { ending, openScene, story } from './scene.ts';
import { objectCount, openStage, type StageInput } from './stage.ts';

/** An install from nothing, then one change after the other, with every request this many seconds late. */
export async function slow(
  input: StageInput,
  { late: seconds, minutes }: { readonly late: number; readonly minutes: number },
): Promise<Outcome[]> {
  const stage = await openStage(input);
  try {
    const executor = await stage.executor('executor-0');
    executor.fault({ match: () => true, fault: { kind: 'delay', ms: seconds * 1000 } });
    const from = performance.now();
    const took: number[] = [];
    const problems: string[] = [];
    let uids = new Map<string, string>();
    while (took.length < 2 || performance.now() - from < minutes * 60_000) {
      const since = performance.now();
      const digest = await stage.want(`value-${took.length}`);
      took.push(((await stage.inPlace(digest)) - since) / 1000);
      const told = stage.told.filter(({ at, current }) => at >= since && current);
      problems.push(...trueUnproven(told, digest), ...calledWrong(told));
      const writes = objectWrites(executor.log, stage.namespace).filter(({ arrivedAt = 0 }) => arrivedAt >= since);
      if (writes.length !== objectCount) problems.push(`${writes.length} writes for ${objectCount} objects`);
      problems.push(...lost(uids, await stage.uids()));
      uids = await stage.uids();
    }
    if (executor.saidAt('lease stopped', from) !== undefined) problems.push('it lost its Lease');
    const slowEnd = performance.now();
    const install = stage.told.filter(({ at }) => at < from + (took[0] ?? 0) * 1000 + 1_000);
    const end = await ending({ stage, executor, uids }, from);
    return [
      {
        scenario: `every request ${seconds} s late`,
        facts: {
          'slow for, s': (slowEnd - from) / 1000,
          [`install of ${objectCount} objects from nothing, s`]: took[0] ?? 'never',
          [`changes of ${objectCount} objects in it`]: took.length - 1,
          'the fastest of them, s': Math.min(...took.slice(1)),
          'the slowest of them, s': Math.max(...took.slice(1)),
          'requests in its busiest minute': busiestMinute(executor.log, [from, slowEnd]),
          'Ready said while it installed': story(install, from),
          ...end.facts,
        },
        problems: [...problems, ...end.problems],
      },
    ];
  } finally {
    await stage.close();
  }
}

const retryAfterSeconds = 5;

export interface Storm {
  readonly name: string;
  readonly seconds: number;
  /** Which requests are refused, given the namespace of the objects. */
  readonly hits: (request: KubeRequest, namespace: string) => boolean;
  /** How many requests a minute of it may be answered with. */
  readonly most: number;
  /** Whether the status can be told in it, and so must name what holds it up. */
  readonly tells: boolean;
}

/** 429 for whatever the storm hits, from the moment at which a change is delivered. */
export async function storm(input: StageInput, storm: Storm): Promise<Outcome[]> {
  const scene = await openScene(input);
  const { stage, executor } = scene;
  try {
    const from = performance.now();
    executor.fault({
      match: (request) => storm.hits(request, stage.namespace),
      fault: { kind: 'status', code: 429, retryAfterSeconds },
    });
    const digest = await stage.want('two');
    await stage.sleep(storm.seconds);
    const healed = performance.now();
    executor.heal();
    const done = await stage.inPlace(digest);
    const told = stage.told.filter(({ at }) => at >= from);
    const refused = executor.log.filter(({ status }) => status === 429);
    const busiest = busiestMinute(refused, [from, healed]);
    const said = story(told, from);
    const inIt = told.filter(({ at }) => at < healed);
    const named = inIt.find(({ ready, message }) => ready !== 'True' && /429|too many|TooManyRequests/i.test(message));
    const end = await ending(scene, from);
    return [
      {
        scenario: storm.name,
        facts: {
          'storm, s': (healed - from) / 1000,
          'refused requests': refused.length,
          'refused in its busiest minute': busiest,
          'other requests in it': executor.log.filter(
            ({ arrivedAt = 0, status }) => arrivedAt >= from && arrivedAt < healed && status !== 429,
          ).length,
          Lease: executor.saidAt('lease stopped', from) === undefined ? 'kept' : 'lost',
          'in place, s after its end': (done - healed) / 1000,
          'Ready said': said,
          'it named': named === undefined ? 'nothing' : `${named.reason}: ${named.message}`,
          ...end.facts,
        },
        problems: [
          ...end.problems,
          ...trueUnproven(told, digest),
          ...writesWithin(executor.log, stage.namespace, [from, healed]),
          ...(busiest > storm.most ? [`${busiest} requests in a minute, though each was asked to wait`] : []),
          ...(storm.tells && named === undefined ? ['what held it up was never named'] : []),
        ],
      },
    ];
  } finally {
    await stage.close();
  }
}

/** The leader is stopped in the middle of its work, another takes over, and the first wakes up late. */
export async function late(input: StageInput, seconds: number): Promise<Outcome[]> {
  const stage = await openStage(input);
  try {
    const first = await stage.executor('executor-0');
    const second = await stage.executor('executor-1');
    await stage.inPlace(await stage.want('one'));
    const uids = await stage.uids();
    const [leader, other] = first.saidAt('lease leading', 0) === undefined ? [second, first] : [first, second];
    leader.fault({
      match: ({ mutating, namespace }) => mutating && namespace === stage.namespace,
      fault: { kind: 'delay', ms: 1_500 },
    });
    const began = performance.now();
    const two = await stage.want('two');
    await stage.written(leader, 2, began);
    const from = performance.now();
    leader.signal('SIGSTOP');
    const done = await stage.inPlace(two);
    const next = await stage.inPlace(await stage.want('three'));
    await stage.sleep(Math.max(0, seconds - (performance.now() - from) / 1000));
    const woken = performance.now();
    leader.signal('SIGCONT');
    await stage.sleep(40);
    const tried = leader.log.filter(({ mutating, arrivedAt = 0 }) => mutating && arrivedAt >= woken);
    const end = await ending({ stage, executor: other, uids }, from);
    return [
      {
        scenario: `the leader of two stopped for ${seconds} s in the middle of a change`,
        facts: {
          'another leads, s after it stopped': secondsTo(other, 'lease leading', from),
          'the change in place, s after it stopped': (done - from) / 1000,
          'the next change in place, s after it stopped': (next - from) / 1000,
          'it knew, s after it woke up': secondsTo(leader, 'lease stopped', woken),
          'writes that it tried': tried.filter(({ resource }) => resource !== 'leases').length,
          'writes of its Lease that it tried': tried.filter(({ resource }) => resource === 'leases').length,
          ...end.facts,
        },
        problems: [
          ...end.problems,
          ...leader.violations,
          ...tried
            .filter(({ resource, status = 0 }) => resource !== 'leases' || status < 300)
            .map(({ method, path, status }) => `it woke up late and sent ${method} ${path} (${status})`),
          ...(leader.saidAt('lease stopped', woken) === undefined ? ['it never knew that it had lost its Lease'] : []),
        ],
      },
    ];
  } finally {
    await stage.close();
  }
}

function secondsTo(executor: Observed, words: string, from: number): number | string {
  const at = executor.saidAt(words, from);
  return at === undefined ? 'never' : (at - from) / 1000;
}
