import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { sha256Hex } from '../constructs/lib/digest.ts';

/**
 * A static program from a folder with the sources of one Go module without dependencies, built once per sources into
 * `cache` and named as the folder unless `name` is given. @throws Error when Go is missing or the sources do not compile.
 */
export async function goProgram(sources: string, cache: string, name = basename(sources)): Promise<string> {
  const files = (await readdir(sources)).filter((file) => /\.(go|mod)$/.test(file)).sort();
  const texts = await Promise.all(files.map(async (file) => `${file}\n${await readFile(join(sources, file), 'utf8')}`));
  const directory = join(cache, `${name}-${sha256Hex(texts.join('\n')).slice(0, 12)}-${process.arch}`);
  const binary = join(directory, name);
  if (existsSync(binary)) return binary;
  await mkdir(directory, { recursive: true });
  const fresh = join(directory, `${name}.${randomUUID()}`);
  try {
    await promisify(execFile)('go', ['build', '-trimpath', '-ldflags', '-s -w -buildid=', '-o', fresh, '.'], {
      cwd: sources,
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOWORK: 'off' },
      timeout: 300_000,
    });
    await rename(fresh, binary);
  } finally {
    await rm(fresh, { force: true });
  }
  return binary;
}
