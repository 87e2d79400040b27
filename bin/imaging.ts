/** The image of the program that runs: what the executor's pods are made from. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileTrouble } from '../constructs/lib/replacefile.ts';
import { scratchFolder } from '../constructs/lib/scratchfolder.ts';
import type { BuiltImage } from '../images/build.ts';
import { buildPartsImage } from '../images/parts.ts';
import { FailedWithProblems } from './failure.ts';
import { version } from './version.ts';

const here = fileURLToPath(import.meta.url);

/** A source tree has the program in sources, and the tool that makes parts of them; a package has the parts. */
async function withParts<T>(work: (parts: string) => Promise<T>): Promise<T> {
  if (!here.endsWith('.ts')) return work(dirname(here));
  const { bundleInParts } = await import('../images/bundle.ts');
  const scratch = await scratchFolder(tmpdir(), 'keelson-parts-');
  try {
    await bundleInParts(join(dirname(here), 'keelson.ts'), scratch.path);
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

/** Builds the image into the folder of a layout. @throws FailedWithProblems where it can not be built. */
export async function buildProgramImage(layout: string): Promise<BuiltImage> {
  const node = pinnedNode();
  if (process.platform !== 'linux')
    notBuilt(`images are built on Linux, not on ${process.platform}`, 'build it on a Linux machine, in CI for example');
  if (node === undefined || !existsSync(node))
    notBuilt(
      `the pinned Node for ${process.platform}-${process.arch} is not installed`,
      'install keelson with its optional packages, on Linux x64 or arm64',
    );
  try {
    return await withParts((parts) => buildPartsImage({ parts, layout, node, version }));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    return notBuilt(code === undefined ? error.message : fileTrouble(error), 'mend what the message names');
  }
}
