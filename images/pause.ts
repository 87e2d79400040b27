import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuiltImage, buildImage, hostArchitecture } from './build.ts';
import { goProgram } from './goProgram.ts';

const sources = fileURLToPath(new URL('./pause', import.meta.url));

/** The static program that holds namespaces, built once per source into `cache`. @throws when Go is missing. */
export const pauseBinary = (cache: string): Promise<string> => goProgram(sources, cache);

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
