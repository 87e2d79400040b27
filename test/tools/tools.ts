import { existsSync } from 'node:fs';
import { buildModule } from './build.ts';
import { catalog, type ModuleName, modules, type ToolName } from './catalog.ts';
import { withLock } from './lock.ts';
import { type ToolOptions, toolCache, toolPath } from './store.ts';

/** The path of one program, built first if this machine does not have it yet. @throws ProblemError without Go. */
export async function ensureTool(name: ToolName, options: ToolOptions = {}): Promise<string> {
  const paths = await ensureTools([name], options);
  return paths[name] ?? toolPath(name, cacheOf(options));
}

/**
 * The paths of several programs. What is missing is built in the order of the names, those of one module next to each
 * other together; two processes never build the same module at once, the second one finds what the first one built.
 * @throws ProblemError when Go is missing or too old; Error with the compiler's last lines when a build fails.
 */
export async function ensureTools<N extends ToolName>(
  names: readonly N[],
  options: ToolOptions = {},
): Promise<Record<N, string>> {
  const cacheDir = cacheOf(options);
  const missing = (of: readonly ToolName[]): ToolName[] => of.filter((name) => !existsSync(toolPath(name, cacheDir)));
  for (const batch of batches(missing(names))) {
    const what = `${batch.tools.join(', ')} (${batch.module} ${modules[batch.module].version})`;
    const onWait = (): void => options.onProgress?.(`waiting for another process that builds ${batch.module}`);
    const lock = { onWait, ...(options.signal === undefined ? {} : { signal: options.signal }) };
    await withLock(`${cacheDir}/${batch.module}`, lock, async () => {
      const left = missing(batch.tools);
      if (left.length === 0) return;
      await buildModule(batch.module, left, what, { ...options, cacheDir, env: options.env ?? process.env });
    });
  }
  return Object.fromEntries(names.map((name) => [name, toolPath(name, cacheDir)])) as Record<N, string>;
}

/** Those of the named tools that this machine's cache does not hold yet. */
export function missingTools(names: readonly ToolName[], options: ToolOptions = {}): ToolName[] {
  return names.filter((name) => !existsSync(toolPath(name, cacheOf(options))));
}

function cacheOf(options: ToolOptions): string {
  return options.cacheDir ?? toolCache(options.env ?? process.env);
}

function batches(names: readonly ToolName[]): { module: ModuleName; tools: ToolName[] }[] {
  const list: { module: ModuleName; tools: ToolName[] }[] = [];
  for (const name of names) {
    const { module } = catalog[name];
    const last = list.at(-1);
    if (last?.module === module) last.tools.push(name);
    else list.push({ module, tools: [name] });
  }
  return list;
}
