import { parseArgs } from 'node:util';
import { scenarioNames } from './outages/run.ts';

/** What `npm run soak` does. */
export interface SoakOptions {
  /** How often each of the files runs; 0 leaves them out. */
  readonly times: number;
  readonly files: readonly string[];
  /** How long the randomised run takes; 0 leaves it out. */
  readonly minutes: number;
  /** Decides every choice of the randomised run. */
  readonly seed: number;
  /** Outages of real size that are played; none leaves them out. */
  readonly outages: readonly string[];
  readonly output: 'table' | 'json';
}

/** Suites in which time, processes and broken connections play the largest part. */
const flakyProne: readonly string[] = [
  'test/pure/kube-reflector.test.ts',
  'test/pure/kube-lease.test.ts',
  'test/pure/kube-workqueue.test.ts',
  'test/pure/outage.test.ts',
  'test/api/lease-hold.test.ts',
  'test/api/kube-faults.test.ts',
  'test/api/slice-cancel.test.ts',
  'test/api/slice-process.test.ts',
  'test/api/outage.test.ts',
  'test/api/outage-process.test.ts',
  'test/api/uninstall.test.ts',
];

const usage = `npm run soak -- [--times N] [--files FILE,FILE] [--minutes N] [--seed N]
       npm run soak -- --outages [--scenarios NAME,NAME] [--output table|json]
  --times    how often each file runs (50; 0: not at all)
  --files    which files (those that are prone to be flaky)
  --minutes  how long the randomised run takes (30; 0: not at all)
  --seed     repeats the choices of an earlier randomised run
  --outages  plays outages in their real size instead (about a quarter of an hour): ${scenarioNames.join(', ')}
  --output   how they are told (table)`;

function number(text: string | undefined, usual: number, name: string): number {
  if (text === undefined) return usual;
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} takes a number, not '${text}'\n${usage}`);
  return value;
}

function scenariosOf(text: string | undefined): readonly string[] {
  const wanted = text?.split(',') ?? scenarioNames;
  const unknown = wanted.filter((name) => !scenarioNames.includes(name));
  if (unknown.length > 0) throw new Error(`--scenarios does not know ${unknown.join(', ')}\n${usage}`);
  return wanted;
}

/** @throws Error with the usage for what it does not know. */
export function readOptions(args: readonly string[], freshSeed: number): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      times: { type: 'string' },
      files: { type: 'string' },
      minutes: { type: 'string' },
      seed: { type: 'string' },
      outages: { type: 'boolean', default: false },
      scenarios: { type: 'string' },
      output: { type: 'string', default: 'table' },
    },
  });
  const { output } = values;
  if (output !== 'table' && output !== 'json') throw new Error(`--output is table or json, not '${output}'\n${usage}`);
  return {
    outages: values.outages ? scenariosOf(values.scenarios) : [],
    output,
    times: Math.floor(number(values.times, values.outages ? 0 : 50, 'times')),
    files: values.files?.split(',') ?? flakyProne,
    minutes: number(values.minutes, values.outages ? 0 : 30, 'minutes'),
    seed: Math.floor(number(values.seed, freshSeed, 'seed')),
  };
}
