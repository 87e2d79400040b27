import { isDigest } from '../../constructs/lib/digest.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { settingsFiles } from '../../renderer/load/settings.ts';
import { clusterFolder, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { clusterOf } from '../published.ts';

export interface Options extends CommonOptions {
  readonly plan: string;
}

/** `keelson approve`: prints the lines to commit; approving is a commit like any other change, and seen in review. */
export async function run(invocation: Invocation, options: Options, release: string): Promise<ExitCode> {
  const folder = await clusterFolder(invocation, options);
  const cluster = clusterOf(invocation, folder, await readFolder(folder));
  if (!isDigest(options.plan))
    throw new ProblemError([
      {
        reason: 'FieldInvalid',
        message: '--plan is not the digest of a plan',
        value: options.plan,
        remedy: `copy it from \`keelson plan\` or from \`keelson status ${release}\``,
      },
    ]);
  const mode = cluster.spec.releases?.[release]?.approval?.mode;
  invocation.err(`commit this in ${folder.shown}/${settingsFiles.cluster}:`);
  invocation.out(
    [
      'spec:',
      '  releases:',
      `    ${release}:`,
      '      approval:',
      ...(mode === undefined ? [] : [`        mode: ${mode}`]),
      `        planDigest: ${options.plan}`,
    ].join('\n'),
  );
  return exitCodes.done;
}
