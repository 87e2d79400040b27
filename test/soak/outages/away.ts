/** The API server is away, or all that it stands on. */

import { answeredAgain, graceMs, tellingMs, trueTooLong } from './judge.ts';
import type { Outcome } from './report.ts';
import { afterwards, ending, inTheMiddle, openScene, type Scene, story } from './scene.ts';
import type { StageInput } from './stage.ts';

interface Way {
  readonly name: string;
  readonly seconds: number;
  begin(input: StageInput): Promise<void>;
  end(input: StageInput): Promise<void>;
  /** Long enough that a pass is given up. */
  readonly relist: boolean;
}

export const killed = (seconds: number): Way => ({
  name: `API server away for ${seconds} s`,
  seconds,
  begin: ({ server }) => server.kill9(),
  end: ({ server }) => server.restart(),
  relist: seconds > 10,
});

export const stillEtcd = (seconds: number): Way => ({
  name: `etcd stands still for ${seconds} s`,
  seconds,
  begin: async ({ server }) => void process.kill(server.etcdPid, 'SIGSTOP'),
  end: async ({ server }) => void process.kill(server.etcdPid, 'SIGCONT'),
  relist: true,
});

/** The same outage for two Releases at once: one is in place, one in the middle of a change. */
export async function outage(input: StageInput, way: Way): Promise<Outcome[]> {
  const scenes: Scene[] = [];
  try {
    for (let n = 0; n < 2; n += 1) scenes.push(await openScene(input));
    const [idle, busy] = scenes as [Scene, Scene];
    const before = idle.stage.told.at(-1)?.actual ?? '';
    const digest = await inTheMiddle(busy, 'two');
    const from = performance.now();
    await way.begin(input);
    let restored = from;
    try {
      await idle.stage.sleep(way.seconds);
    } finally {
      restored = performance.now();
      await way.end(input);
    }
    busy.executor.heal();
    const common = { from, restored, relist: way.relist };
    return await Promise.all([
      afterwards(`${way.name}, a Release in place`, idle, { ...common, idle: true, digest: before }),
      afterwards(`${way.name}, in the middle of a change`, busy, { ...common, idle: false, digest }),
    ]);
  } finally {
    for (const { stage } of scenes) await stage.close();
  }
}

/** The API server comes back, but no look at the objects of the payload ever ends. */
export async function blind(input: StageInput, seconds: number): Promise<Outcome[]> {
  const scene = await openScene(input);
  const { stage, executor } = scene;
  try {
    const before = stage.told.at(-1)?.actual ?? '';
    const from = performance.now();
    await stage.kill();
    await stage.sleep(seconds);
    executor.fault({
      match: ({ verb, resource, namespace }) =>
        verb === 'list' && resource === 'configmaps' && (namespace === stage.namespace || namespace === undefined),
      fault: { kind: 'hang' },
    });
    const restored = performance.now();
    await stage.restart();
    const back = await stage.until('an answer', () => answeredAgain(executor.log, restored), 120_000);
    const doubt = (): number | undefined => stage.told.find(({ at, ready }) => at >= back && ready !== 'True')?.at;
    const unknown = await stage.until('Ready to be Unknown', doubt, 2 * graceMs + tellingMs).catch(() => undefined);
    await stage.sleep(20);
    const during = stage.told.filter(({ at }) => at >= back);
    const problems = [
      ...trueTooLong(stage.told, executor.log, stage.namespace, back),
      ...(during.some(({ ready }) => ready === 'False') ? ['it was called False, and nothing was seen'] : []),
      ...(during.some(({ reason }) => reason === 'ObservationOutdated') ? [] : ['ObservationOutdated was never named']),
    ];
    const healed = performance.now();
    executor.heal();
    const again = (): number | undefined =>
      stage.told.find(({ at, ready, actual }) => at >= healed && ready === 'True' && actual === before)?.at;
    const seen = await stage.until('Ready to be True again', again, 180_000);
    const said = story(
      stage.told.filter(({ at }) => at >= from),
      from,
    );
    const end = await ending(scene, from);
    return [
      {
        scenario: `API server away for ${seconds} s, then no look ends`,
        facts: {
          'first answer, s after the end': (back - restored) / 1000,
          'True stood, s after the first answer': unknown === undefined ? 'for ever' : (unknown - back) / 1000,
          'True again, s after looks end': (seen - healed) / 1000,
          'Ready said': said,
          ...end.facts,
        },
        problems: [...problems, ...end.problems],
      },
    ];
  } finally {
    await stage.close();
  }
}
