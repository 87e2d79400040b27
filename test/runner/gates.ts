import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../tools/process.ts';
import { arrowProblems } from './arrows.ts';
import { readTree } from './sources.ts';
import { machineFolders, treeProblems } from './tree.ts';

/** A check of the whole tree; what it returns is what is wrong, empty when it is good. */
export interface Gate {
  readonly name: string;
  check(signal: AbortSignal): Promise<string>;
}

const limitMs = 180_000;

/** The gates of a tree: those whose program is in place. */
export function gatesOf(top: string): Gate[] {
  const files = readTree(top);
  const program = (name: string, args: readonly string[]): Gate => ({
    name,
    check: async (signal) => {
      const env = { ...process.env, NO_COLOR: '1' };
      const result = await run(process.execPath, args, { cwd: top, env, limitMs, signal });
      return result.code === 0 ? '' : `${result.stdout}${result.stderr}`.trim() || `ended with ${result.code}`;
    },
  });
  const generators = ['constructs/api/generate.ts', 'constructs/couriers/generate.ts'];
  return [
    program('biome', ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.']),
    program('tsc', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']),
    program('knip', ['node_modules/knip/bin/knip.js', '--no-progress']),
    { name: 'arrows', check: async () => arrowProblems(files).join('\n') },
    { name: 'tree', check: async () => treeProblems(files, machineFolders(top)).join('\n') },
    ...generators
      .filter((generator) => existsSync(join(top, generator)))
      .map((generator) => program('generated', [generator, '--check'])),
  ];
}
