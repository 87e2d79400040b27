import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sha256Hex } from '../constructs/lib/digest.ts';
import { type BuiltImage, buildImage, hostArchitecture } from './build.ts';

const sources = fileURLToPath(new URL('./pause/', import.meta.url));

/** The static program that holds namespaces, built once per source into `cache`. @throws when Go is missing. */
export async function pauseBinary(cache: string): Promise<string> {
  const source = await readFile(join(sources, 'main.go'));
  const directory = join(cache, `pause-${sha256Hex(source).slice(0, 12)}-${process.arch}`);
  const binary = join(directory, 'pause');
  if (existsSync(binary)) return binary;
  await mkdir(directory, { recursive: true });
  const fresh = join(directory, `pause.${randomUUID()}`);
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

/** The image of a pod's first container. */
export async function buildPauseImage(cache: string): Promise<BuiltImage> {
  const source = await pauseBinary(cache);
  return buildImage({
    layout: join(cache, 'layouts', 'pause'),
    layers: [[{ type: 'file', path: 'pause', mode: 0o755, source }]],
    config: { entrypoint: ['/pause'], user: '65532:65532' },
    architecture: hostArchitecture(process.arch),
  });
}
