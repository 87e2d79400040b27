import { execFile } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { LayerEntry } from './layer.ts';

/** Absolute paths that ldd names for a program: its loader and libraries. */
export function parseLdd(output: string): string[] {
  return output.split('\n').flatMap((line) => {
    const [, path] = /(?:=> |^\s*)(\/\S+) \(0x[0-9a-f]+\)/.exec(line) ?? [];
    return path === undefined ? [] : [path];
  });
}

/**
 * The shared libraries and the loader that programs of this host need, as entries at the very paths where the loader
 * looks for them. @throws Error naming a library that the host itself misses.
 */
export async function libraryEntries(programs: readonly string[]): Promise<LayerEntry[]> {
  const paths = new Set<string>();
  for (const program of programs) {
    const { stdout } = await promisify(execFile)('ldd', [program], {
      timeout: 30_000,
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
    });
    const missing = /(\S+) => not found/.exec(stdout);
    if (missing !== null) throw new Error(`${program} needs ${missing[1]}, which this machine does not have`);
    for (const path of parseLdd(stdout)) paths.add(path);
  }
  const entries: LayerEntry[] = [];
  for (const path of [...paths].sort()) {
    entries.push({ type: 'file', path: path.slice(1), mode: 0o755, source: await realpath(path) });
  }
  return entries;
}
