import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { catalog, type ModuleName, modules, type ToolName } from './catalog.ts';

export interface ToolOptions {
  /** Where built tools are kept; by default `keelson/tools` under XDG_CACHE_HOME or ~/.cache. */
  readonly cacheDir?: string;
  /** Takes one line of progress: what is built, waited for or done, and how long it took. */
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
}

const modulesDir = fileURLToPath(new URL('./go/', import.meta.url));

/** The folder with a module's go.mod and go.sum. */
export function moduleDir(module: ModuleName): string {
  return join(modulesDir, module);
}

/** The folder that all clones on this machine share. */
export function toolCache(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'keelson', 'tools');
}

export function linkerFlags(module: ModuleName): string {
  const stamps = Object.entries(modules[module].stamps).map(([name, value]) => `-X ${name}=${value}`);
  return ['-s', '-w', ...stamps].join(' ');
}

/** Twelve hexadecimal digits over everything that decides what a tool's build gives. */
function sourceHash(name: ToolName): string {
  const tool = catalog[name];
  const hash = createHash('sha256');
  hash.update([tool.package, linkerFlags(tool.module), process.platform, process.arch, 'cgo=0'].join('\n'));
  const folder = moduleDir(tool.module);
  const files = ['go.mod', 'go.sum', ...(tool.package === '.' ? ['main.go'] : [])];
  for (const file of files) hash.update(readFileSync(join(folder, file)));
  return hash.digest('hex').slice(0, 12);
}

/** Where a tool is or will be: `<cache>/<name>-<version>-<hash>/<name>`. */
export function toolPath(name: ToolName, cacheDir: string): string {
  return join(cacheDir, `${name}-${modules[catalog[name].module].version}-${sourceHash(name)}`, name);
}
