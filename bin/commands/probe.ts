import { Command } from 'commander';
import type { Invocation } from '../invocation.ts';
import { probe } from '../probe/run.ts';

/** `keelson probe`: runs beside the daemons, in an image of its own. */
export function probeCommand(invocation: Invocation, done: (code: Awaited<ReturnType<typeof probe>>) => void): Command {
  return new Command('probe')
    .description('run a probe: tell the executor what the daemons beside it say')
    .argument('<kind>', 'central, chassis, drain, network-client, network-server or host')
    .argument('[options...]', 'options of the probe')
    .helpOption(false)
    .allowUnknownOption()
    .action(async (kind: string, rest: readonly string[]) => {
      if (kind !== 'offer') return done(await probe([kind, ...rest], invocation));
      const { offer } = await import('../probe/offer.ts');
      invocation.out(await offer(process.stdin, invocation.clock.now()));
    });
}
