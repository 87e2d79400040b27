/** The images of the program that runs: what the pods of the executor are made from, and those of the probes. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileTrouble } from '../constructs/lib/replacefile.ts';
import { scratchFolder } from '../constructs/lib/scratchfolder.ts';
import type { BuiltImage } from '../images/build.ts';
import { buildPartsImage } from '../images/parts.ts';
import { bundleProbe, packProbeImage } from '../images/probe.ts';
import { FailedWithProblems } from './failure.ts';
import { version } from './version.ts';

const here = fileURLToPath(import.meta.url);

/** Both images, by what cluster.yaml calls them. */
export type ImageName = 'executor' | 'probe';

/** Where the package has the programs of an image, and how they are made of sources. */
const programs: Readonly<Record<ImageName, { packed: string; bundle: (folder: string) => Promise<unknown> }>> = {
  executor: {
    packed: dirname(here),
    async bundle(folder) {
      const { bundleInParts } = await import('../images/bundle.ts');
      await bundleInParts(join(dirname(here), 'keelson.ts'), folder);
    },
  },
  probe: {
    packed: join(dirname(here), 'probe'),
    async bundle(folder) {
      const entry = (name: string): string => join(dirname(here), name);
      await bundleProbe({ entry: entry('probe.ts'), offer: entry('probe-offer.ts') }, folder);
    },
  },
};

/** A source tree has the programs in sources, and the tool that bundles them; a package has the bundles. */
async function withPrograms<T>(name: ImageName, work: (folder: string) => Promise<T>): Promise<T> {
  const { packed, bundle } = programs[name];
  if (!here.endsWith('.ts')) return work(packed);
  const scratch = await scratchFolder(tmpdir(), 'keelson-parts-');
  try {
    await bundle(scratch.path);
    return await work(scratch.path);
  } finally {
    await scratch.dispose();
  }
}

/** The Node that this version of the program is tested with. */
function pinnedNode(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`);
  } catch {
    return undefined;
  }
}

function notBuilt(message: string, remedy: string): never {
  throw new FailedWithProblems([{ reason: 'ImageNotBuilt', message, remedy }]);
}

/** Builds an image into the folder of a layout. @throws FailedWithProblems where it can not be built. */
export async function buildProgramImage(name: ImageName, layout: string): Promise<BuiltImage> {
  const node = pinnedNode();
  if (process.platform !== 'linux')
    notBuilt(`images are built on Linux, not on ${process.platform}`, 'build it on a Linux machine, in CI for example');
  if (node === undefined || !existsSync(node))
    notBuilt(
      `the pinned Node for ${process.platform}-${process.arch} is not installed`,
      'install keelson with its optional packages, on Linux x64 or arm64',
    );
  try {
    return await withPrograms(name, (folder) =>
      name === 'probe'
        ? packProbeImage({ folder, layout, node, version })
        : buildPartsImage({ parts: folder, layout, node, version }),
    );
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    return notBuilt(code === undefined ? error.message : fileTrouble(error), 'mend what the message names');
  }
}
