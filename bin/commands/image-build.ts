import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { scratchFolder } from '../../constructs/lib/scratchfolder.ts';
import type { BuiltImage } from '../../images/build.ts';
import { buildProgramImage } from '../imaging.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';
import { sizeText } from '../progress.ts';

export interface Options extends CommonOptions {
  readonly oci?: string;
  readonly probe?: boolean;
}

/** `keelson image build`: the image of this very program, or of its probes, into a folder or just to know its digest. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const { oci } = options;
  const name = options.probe === true ? 'probe' : 'executor';
  if (oci === undefined) {
    const scratch = await scratchFolder(tmpdir(), 'keelson-image-');
    try {
      tell(invocation, options, await buildProgramImage(name, scratch.path));
    } finally {
      await scratch.dispose();
    }
    return exitCodes.done;
  }
  const folder = resolve(invocation.cwd, oci);
  await refuseFull(folder, oci);
  tell(invocation, options, await buildProgramImage(name, folder));
  return exitCodes.done;
}

/** What stands in a folder is not ours to overwrite. @throws ProblemError */
async function refuseFull(folder: string, named: string): Promise<void> {
  const found = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    return [`it can not be read (${error.code})`];
  });
  if (found.length === 0) return;
  throw new ProblemError([
    {
      reason: 'LayoutInvalid',
      message: `the folder is not empty: ${found.slice(0, 3).join(', ')}`,
      path: '--oci',
      value: named,
      remedy: 'name a new folder, or an empty one',
    },
  ]);
}

function tell(invocation: Invocation, { oci, output }: Options, image: BuiltImage): void {
  const bytes = image.blobs.reduce((sum, { size }) => sum + size, 0);
  const result = { digest: image.digest, bytes, ...(oci === undefined ? {} : { folder: oci }) };
  print(
    invocation,
    output,
    result,
    () => `built ${result.digest} (${sizeText(bytes)})${oci === undefined ? '' : ` into ${oci}`}`,
  );
}
