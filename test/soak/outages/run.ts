/** Outages at their real size: Leases, silences and pauses are those of every day. Scenarios mostly wait, so they run side by side. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleInParts } from '../../../images/bundle.ts';
import { startApiServer } from '../../apiserver/server.ts';
import { blind, killed, outage, stillEtcd } from './away.ts';
import type { Outcome } from './report.ts';
import type { StageInput } from './stage.ts';
import { late, type Storm, slow, storm } from './trouble.ts';

type Scenario = (input: StageInput) => Promise<Outcome[]>;

const everything: Storm = {
  name: '429 to everything but Leases, for 120 s from a change on',
  seconds: 120,
  hits: ({ resource }) => resource !== 'leases',
  most: 120,
  tells: false,
};

const onlyObjects: Storm = {
  name: '429 to writes of objects, for 120 s from a change on',
  seconds: 120,
  hits: ({ namespace, mutating, dryRun }, objects) => namespace === objects && (mutating || dryRun),
  most: 200,
  tells: true,
};

/** Each lane has an API server of its own, on which its scenarios run one after the other. */
const lanes: readonly Readonly<Record<string, Scenario>>[] = [
  { 'away-600': (input) => outage(input, killed(600)) },
  {
    'away-1': (input) => outage(input, killed(1)),
    'away-60': (input) => outage(input, killed(60)),
    blind: (input) => blind(input, 60),
    late: (input) => late(input, 60),
  },
  { slow: (input) => slow(input, { late: 2, minutes: 4 }) },
  {
    etcd: (input) => outage(input, stillEtcd(60)),
    storm: (input) => storm(input, everything),
    'storm-writes': (input) => storm(input, onlyObjects),
  },
];

export const scenarioNames: readonly string[] = lanes.flatMap((lane) => Object.keys(lane));

/** Runs those scenarios; one that breaks off is told as a problem of its own. */
export async function runOutages(wanted: readonly string[], say: (line: string) => void): Promise<Outcome[]> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-outages-'));
  try {
    await bundleInParts(new URL('../../../bin/keelson.ts', import.meta.url).pathname, join(folder, 'program'));
    const program = join(folder, 'program', 'keelson.mjs');
    const chosen = lanes
      .map((lane) => Object.entries(lane).filter(([name]) => wanted.includes(name)))
      .filter((lane) => lane.length > 0);
    const outcomes = await Promise.all(chosen.map((lane) => runLane(lane, { program, folder }, say)));
    return outcomes.flat();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runLane(
  lane: readonly (readonly [string, Scenario])[],
  { program, folder }: Omit<StageInput, 'server'>,
  say: (line: string) => void,
): Promise<Outcome[]> {
  const server = await startApiServer();
  const outcomes: Outcome[] = [];
  try {
    for (const [name, scenario] of lane) {
      const began = performance.now();
      const found = await scenario({ server, program, folder }).catch((error: unknown): Outcome[] => [
        {
          scenario: name,
          facts: {},
          problems: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
        },
      ]);
      const held = found.every(({ problems }) => problems.length === 0);
      const problems = found.flatMap((one) => one.problems.map((problem) => `\n  ${one.scenario}: ${problem}`));
      say(
        `${name}: ${held ? 'held' : 'DID NOT HOLD'} after ${((performance.now() - began) / 1000).toFixed(0)} s${problems.join('')}`,
      );
      outcomes.push(...found);
    }
  } finally {
    await server.stop();
  }
  return outcomes;
}
