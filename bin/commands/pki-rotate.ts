import { randomUUID } from 'node:crypto';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { defaultKeeperTimings } from '../../executor/pki/keeper.ts';
import { askForRotation } from '../../executor/pki/overview.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
}

/** `keelson pki rotate`: asks for another authority of evidence. The executor makes it, and lets go of the old one in time. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const { clock, signal } = invocation;
  const outcome = await withClient(invocation, options, (client) =>
    askForRotation(client, options.namespace, randomUUID(), clock.now(), signal),
  );
  if ('problem' in outcome) throw new FailedWithProblems([outcome.problem]);
  const { spreadMs, retireMs } = defaultKeeperTimings;
  print(
    invocation,
    options.output,
    { asked: true },
    () =>
      `asked for: the new authority signs ${formatDuration(spreadMs)} after probes are told of it, the old one is believed for another ${formatDuration(retireMs)}`,
  );
  return exitCodes.done;
}
