import { join } from 'node:path';
import { type BuiltImage, buildImage, hostArchitecture } from '../../../images/build.ts';
import { pushImage } from '../../../images/push.ts';
import { modules } from '../../tools/catalog.ts';
import type { ToolOptions } from '../../tools/store.ts';
import { ensureTools } from '../../tools/tools.ts';
import { type FluxTool, fluxTools } from './programs.ts';

export type FluxImages = Readonly<Record<FluxTool, BuiltImage>>;

/** Images of the two controllers: one static program each, and an account without rights. What is missing is built. */
export async function buildFluxImages(cache: string, options: ToolOptions = {}): Promise<FluxImages> {
  const programs = await ensureTools(fluxTools, options);
  const images = await Promise.all(
    fluxTools.map((name) =>
      buildImage({
        layout: join(cache, 'layouts', name),
        layers: [[{ type: 'file', path: `usr/local/bin/${name}`, mode: 0o755, source: programs[name] }]],
        config: { entrypoint: [`/usr/local/bin/${name}`], user: '65534:65534' },
        architecture: hostArchitecture(process.arch),
      }),
    ),
  );
  return Object.fromEntries(fluxTools.map((name, n) => [name, images[n]])) as FluxImages;
}

/** Puts both into a registry and answers their pinned references. */
export async function pushFluxImages(
  registry: string,
  images: FluxImages,
): Promise<Readonly<Record<FluxTool, string>>> {
  const push = (name: FluxTool): Promise<string> =>
    pushImage(images[name], { registry, repository: `fluxcd/${name}`, tag: modules[name].version });
  const [source, kustomize] = await Promise.all([push('source-controller'), push('kustomize-controller')]);
  return { 'source-controller': source, 'kustomize-controller': kustomize };
}
