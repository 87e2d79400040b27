import { tmpdir } from 'node:os';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { run } from '../process/run.ts';

/**
 * The version of a helm program, without leading `v`; what a lock records.
 * @throws ProblemError when it does not say one.
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
  const version = /^v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)(?:\+\S*)?$/.exec(said)?.[1];
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
