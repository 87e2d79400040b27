import { tmpdir } from 'node:os';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { readHelmVersion, unsupportedHelm } from '../helm/version.ts';
import { run } from '../process/run.ts';

/**
 * The version of a helm program, without leading `v`; what a lock records.
 * @throws ProblemError when it does not say one, or one that Keelson does not work with.
 */
export async function findHelmVersion(program: string, signal?: AbortSignal): Promise<string> {
  const outcome = await run({
    program,
    args: ['version', '--short'],
    env: { HOME: tmpdir(), PATH: '' },
    limitMs: 30_000,
    maxBytes: 64 * 1024,
    ...(signal === undefined ? {} : { signal }),
  });
  const said = outcome.kind === 'exited' && outcome.code === 0 ? outcome.stdout.trim() : '';
  const version = readHelmVersion(said);
  const unsupported = version === undefined ? undefined : unsupportedHelm(version);
  if (unsupported !== undefined) throw new ProblemError([unsupported]);
  if (version !== undefined) return version;
  throw new ProblemError([
    {
      reason: 'HelmUnavailable',
      message: 'helm version did not answer with a version',
      value: program,
      remedy: 'install Helm, or set KEELSON_HELM to its program',
    },
  ]);
}
