import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeLayer, unprivilegedUser } from './base.ts';
import { type BuiltImage, buildImage, hostArchitecture } from './build.ts';
import { bundleScript } from './bundle.ts';

/**
 * How Node runs the probe: small heaps, no compiler, which would keep code of what runs a few times a minute, and no snapshot,
 * which holds more of Node than a probe uses. Every collection is a whole one: connections that have ended hold memory of
 * OpenSSL until then, and what is asked for hours would come to 9 MiB more.
 */
export const probeFlags = [
  '--no-node-snapshot',
  '--lite-mode',
  '--gc-global',
  '--max-old-space-size=24',
  '--max-semi-space-size=1',
] as const;

/** The environment of the probe in its image. */
export const probeEnvironment = { PATH: '/bin', HOME: '/tmp', UV_THREADPOOL_SIZE: '2', MALLOC_ARENA_MAX: '1' } as const;

/** Entries of the programs of the image: what serves, and what makes its keys. */
export interface ProbePrograms {
  /** bin/probe.ts */
  readonly entry: string;
  /** bin/probe-offer.ts */
  readonly offer: string;
}

/** The network probe by the name that specifications know it by: `/network-probe client`, `/network-probe server`. */
const networkProbe = `#!/bin/node
process.argv.splice(1, 2, __dirname + '/keelson', 'probe', 'network-' + process.argv[2]);
require('./keelson');
`;

/** Bundles both programs into a folder, beside one another. @returns the file of the one that serves. */
export async function bundleProbe({ entry, offer }: ProbePrograms, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const output = join(folder, 'keelson');
  await bundleScript(entry, output);
  await bundleScript(offer, `${output}-offer`);
  await writeFile(join(folder, 'network-probe'), networkProbe);
  return output;
}

interface BundledProbe {
  /** What {@link bundleProbe} wrote. */
  readonly folder: string;
  /** Folder of the layout. */
  readonly layout: string;
  /** The pinned Node's binary. */
  readonly node: string;
  readonly version?: string;
}

export interface ProbeImageInput extends ProbePrograms {
  /** Folder for the bundles and the layout. */
  readonly cache: string;
  /** The pinned Node's binary: the process that runs this, unless another is named. */
  readonly node?: string;
}

/**
 * The image of the probes. It moves on its own, since a new one restarts the pods of OVN; and it holds little, since every
 * node runs it.
 */
export async function buildProbeImage(input: ProbeImageInput): Promise<BuiltImage> {
  const folder = join(input.cache, 'probe');
  await bundleProbe(input, folder);
  return packProbeImage({
    folder,
    layout: join(input.cache, 'layouts', 'probe'),
    node: input.node ?? process.execPath,
  });
}

/** The same of programs that are bundled already. @throws Error for a machine that it can not be built on. */
export async function packProbeImage({ folder, layout, node, version }: BundledProbe): Promise<BuiltImage> {
  const program = (path: string, mode: number) => ({ type: 'file', path, mode, source: join(folder, path) }) as const;
  return buildImage({
    layout,
    layers: [
      await nodeLayer(node),
      [program('keelson', 0o644), program('keelson-offer', 0o644), program('network-probe', 0o755)],
    ],
    config: {
      entrypoint: ['/bin/node', ...probeFlags, '/keelson'],
      user: `${unprivilegedUser}:${unprivilegedUser}`,
      env: probeEnvironment,
      workingDir: '/',
      ...(version === undefined ? {} : { labels: { 'org.opencontainers.image.version': version } }),
    },
    architecture: hostArchitecture(process.arch),
  });
}
