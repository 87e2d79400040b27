import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { type DefinitionsName, definitions, modules } from './catalog.ts';
import { withLock } from './lock.ts';
import { requireGo } from './prerequisites.ts';
import { run } from './process.ts';
import { moduleDir, type ToolOptions, toolCache } from './store.ts';

const downloadLimitMs = 3 * 60_000;

function folderOf(name: DefinitionsName, options: ToolOptions): string {
  const hash = createHash('sha256').update(JSON.stringify(definitions[name]));
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(moduleDir(name), file)));
  const cache = options.cacheDir ?? toolCache(options.env ?? process.env);
  return join(cache, `definitions-${name}-${modules[name].version}-${hash.digest('hex').slice(0, 12)}`);
}

/** Those of the named definitions that this machine's cache does not hold yet. */
export function missingDefinitions(
  names: readonly DefinitionsName[],
  options: ToolOptions = {},
): readonly DefinitionsName[] {
  return names.filter((name) => !existsSync(folderOf(name, options)));
}

/**
 * CustomResourceDefinitions out of a pinned Go module, checked against its go.sum. The module alone is downloaded, which
 * takes a second; nothing is built. What was read once is kept beside the tools.
 * @throws ProblemError when Go is missing; Error when the module can not be had.
 */
export async function readDefinitions(name: DefinitionsName, options: ToolOptions = {}): Promise<JsonObject[]> {
  const folder = folderOf(name, options);
  if (!existsSync(folder)) {
    const lock = options.signal === undefined ? {} : { signal: options.signal };
    await withLock(folder, lock, async () => {
      if (!existsSync(folder)) await fill(name, folder, options);
    });
  }
  const objects: JsonObject[] = [];
  for (const file of (await readdir(folder)).sort()) {
    const { documents } = parseYaml(await readFile(join(folder, file), 'utf8'), file);
    for (const { value } of documents) if (isObject(value)) objects.push(value);
  }
  return objects;
}

async function fill(name: DefinitionsName, folder: string, options: ToolOptions): Promise<void> {
  const env = options.env ?? process.env;
  await requireGo(env, options.signal);
  const { path, folder: inside } = definitions[name];
  const result = await run('go', ['mod', 'download', '-json', path], {
    cwd: moduleDir(name),
    env: { ...env, GOFLAGS: '', GOWORK: 'off' },
    limitMs: downloadLimitMs,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const { Dir, Error: problem } = JSON.parse(result.stdout || '{}') as { Dir?: string; Error?: string };
  if (result.code !== 0 || Dir === undefined)
    throw new Error(`go mod download of ${path} failed (${result.code}): ${problem ?? result.stderr.slice(-500)}`);
  await mkdir(join(folder, '..'), { recursive: true });
  const fresh = await mkdtemp(`${folder}.new-`);
  try {
    for (const file of await readdir(join(Dir, inside))) await copyFile(join(Dir, inside, file), join(fresh, file));
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
