import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { catalog, type ModuleName, type ToolName } from './catalog.ts';
import { requireGo } from './prerequisites.ts';
import { run } from './process.ts';
import { linkerFlags, moduleDir, type ToolOptions, toolPath } from './store.ts';

const buildLimitMs = 25 * 60_000;
const heartbeatMs = 30_000;

interface BuildOptions extends ToolOptions {
  readonly cacheDir: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Builds some tools of one module into a folder of its own beside the cache's entries and renames each into place, so
 * that an entry is whole or absent. The caller holds the module's lock; leftovers of a killed build are removed here.
 */
export async function buildModule(
  module: ModuleName,
  tools: readonly ToolName[],
  what: string,
  options: BuildOptions,
): Promise<void> {
  await requireGo(options.env, options.signal);
  await mkdir(options.cacheDir, { recursive: true });
  const prefix = `.building-${module}-`;
  for (const left of await readdir(options.cacheDir)) {
    if (left.startsWith(prefix)) await rm(join(options.cacheDir, left), { recursive: true, force: true });
  }
  const work = await mkdtemp(join(options.cacheDir, prefix));
  const began = performance.now();
  const elapsed = (): string => formatDuration(Math.max(1000, performance.now() - began));
  options.onProgress?.(`building ${what}`);
  const beat = setInterval(() => options.onProgress?.(`still building ${what}: ${elapsed()}`), heartbeatMs);
  try {
    await compile(module, tools, work, options);
    for (const name of tools) await publish(name, work, options.cacheDir);
    options.onProgress?.(`built ${what} in ${elapsed()}`);
  } finally {
    clearInterval(beat);
    await rm(work, { recursive: true, force: true });
  }
}

async function compile(
  module: ModuleName,
  tools: readonly ToolName[],
  work: string,
  options: BuildOptions,
): Promise<void> {
  const packages = tools.map((name) => catalog[name].package);
  const [only] = tools;
  const output = tools.length === 1 && only !== undefined ? join(work, only) : `${work}/`;
  const flags = ['-trimpath', '-mod=readonly', '-buildvcs=false', '-ldflags', linkerFlags(module)];
  const result = await run('nice', ['go', 'build', ...flags, '-o', output, ...packages], {
    cwd: moduleDir(module),
    // Without cgo a build needs no C compiler and gives programs that run on any Linux.
    env: { ...options.env, CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' },
    limitMs: buildLimitMs,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  if (result.code === 0) return;
  const lines = result.stderr.split('\n').filter((line) => !line.startsWith('go: downloading'));
  throw new Error(`go build of ${packages.join(', ')} failed (${result.code}):\n${lines.slice(-30).join('\n')}`);
}

async function publish(name: ToolName, work: string, cacheDir: string): Promise<void> {
  const final = dirname(toolPath(name, cacheDir));
  const entry = join(work, `${basename(final)}.new`);
  await mkdir(entry);
  await rename(join(work, name), join(entry, name));
  await rm(final, { recursive: true, force: true });
  await rename(entry, final);
}
