import { join } from 'node:path';
import { type BuiltImage, buildImage, hostArchitecture } from '../../../images/build.ts';
import { pushImage } from '../../../images/push.ts';
import type { ToolOptions } from '../../tools/store.ts';
import { ensureTool } from '../../tools/tools.ts';

const tool = 'metallb-controller';

/** Image of MetalLB's controller: one static program, and an account without rights. It is built first where it is missing. */
export async function buildMetallbImage(cache: string, options: ToolOptions = {}): Promise<BuiltImage> {
  const source = await ensureTool(tool, options);
  return buildImage({
    layout: join(cache, 'layouts', tool),
    layers: [[{ type: 'file', path: `usr/local/bin/${tool}`, mode: 0o755, source }]],
    config: { entrypoint: [`/usr/local/bin/${tool}`], user: '65534:65534' },
    architecture: hostArchitecture(process.arch),
  });
}

/** Puts it into the local registry, under the name that the specs of the local cluster have. */
export async function pushMetallbImage(registry: string, image: BuiltImage): Promise<void> {
  await pushImage(image, { registry, repository: 'metallb/controller', tag: 'local' });
}
