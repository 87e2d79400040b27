/** The command line of the benchmark. */
import { parseArgs } from 'node:util';

export interface BenchOptions {
  readonly runs: number;
  readonly objects: number;
  /** Objects of the one run that looks at memory; 0 leaves it out. */
  readonly manyObjects: number;
  readonly seed: number;
  readonly output: 'table' | 'json';
  /** File of the picture; empty for none. */
  readonly svg: string;
  /** Puts the results into the documentation, and measures rendering as well. */
  readonly save: boolean;
  /** Measure rendering in place of applying. */
  readonly render: boolean;
  /** Observe many nodes in place of applying. */
  readonly evidence: boolean;
  /** Serve claims of a large ledger in place of applying, and for how many seconds at each pace. */
  readonly addresses: boolean;
  readonly seconds: number;
  /** Nodes that are observed, rounds over them, and how many are asked at a time. */
  readonly nodes: number;
  readonly rounds: number;
  readonly atOnce: number;
  /** Folders of the render measurement. */
  readonly folders: number;
  /** Contenders to run; all of them when empty. */
  readonly only: readonly string[];
  /** Folder for CPU profiles of our executor; empty for none. */
  readonly profile: string;
}

function whole(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^\d+$/.test(text)) throw new TypeError(`--${name} takes a whole number, not '${text}'`);
  return Number(text);
}

/** @throws TypeError for what is no option. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string' },
      objects: { type: 'string' },
      'many-objects': { type: 'string' },
      seed: { type: 'string' },
      quick: { type: 'boolean', default: false },
      output: { type: 'string', default: 'table' },
      svg: { type: 'string', default: '' },
      save: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
      evidence: { type: 'boolean', default: false },
      addresses: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      nodes: { type: 'string' },
      rounds: { type: 'string' },
      'at-once': { type: 'string' },
      folders: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      profile: { type: 'string', default: '' },
    },
  });
  const { quick, output } = values;
  if (output !== 'table' && output !== 'json') throw new TypeError('--output is table or json');
  return {
    runs: Math.max(1, whole('runs', values.runs, quick ? 1 : 5)),
    objects: Math.max(20, whole('objects', values.objects, quick ? 200 : 1_000)),
    manyObjects: whole('many-objects', values['many-objects'], quick ? 0 : 3_000),
    seed: whole('seed', values.seed, 1),
    output,
    svg: values.svg,
    save: values.save,
    render: values.render,
    evidence: values.evidence,
    addresses: values.addresses,
    seconds: Math.max(1, whole('seconds', values.seconds, quick ? 10 : 60)),
    nodes: Math.max(1, whole('nodes', values.nodes, quick ? 100 : 1_000)),
    rounds: Math.max(2, whole('rounds', values.rounds, quick ? 2 : 6)),
    atOnce: Math.max(1, whole('at-once', values['at-once'], 16)),
    folders: Math.max(1, whole('folders', values.folders, quick ? 10 : 100)),
    only: values.only.flatMap((names) => names.split(',')),
    profile: values.profile,
  };
}
