import { readFile } from 'node:fs/promises';
import { redact } from '../../constructs/lib/redact.ts';
import { centralCollectors } from '../../probes/central/collect.ts';
import { chassisCollectors } from '../../probes/chassis/collect.ts';
import { offerFromProcess } from '../../probes/server/offer-process.ts';
import { type ProbeOptions, runProbe } from '../../probes/server/run.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { version } from '../version.ts';
import { type ProbeSettings, parseProbe } from './options.ts';

/** `keelson probe ...`: a sidecar that tells the executor what the daemons beside it say. */
export async function probe(args: readonly string[], invocation: Invocation): Promise<ExitCode> {
  const parsed = parseProbe(args, invocation.env);
  switch (parsed.type) {
    case 'invalid':
      for (const problem of parsed.problems) invocation.err(problem);
      return exitCodes.invalid;
    case 'run':
      await serve(parsed.settings, invocation);
      return exitCodes.done;
  }
}

async function serve(settings: ProbeSettings, { clock, random, signal, err, program }: Invocation): Promise<void> {
  const { kind, limitMs, trust, ports, addresses } = settings;
  const nodeBootID = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const subject = { ...settings.subject, nodeBootID };
  const log = (message: string): void =>
    err(JSON.stringify({ time: new Date(clock.now()).toISOString(), msg: redact(message) }));
  const self: [string, ...string[]] = [process.execPath, ...(program === undefined ? [] : [program]), 'probe', 'offer'];
  const common = {
    subject,
    version,
    clock,
    random,
    ports,
    log,
    authoritiesFile: `${trust}/ca.crt`,
    tokenFile: `${trust}/token`,
    makeOffer: () => offerFromProcess(self, { identity: subject, addresses }),
  } satisfies Omit<ProbeOptions<'central'>, 'kind' | 'collectors'>;
  if (kind === 'central') {
    const { ovnRun: runDirectory, ovnData: dataDirectory } = settings;
    const collectors = centralCollectors({ clock, limitMs, runDirectory, dataDirectory });
    return runProbe({ ...common, kind, collectors }, signal);
  }
  const { ovsRun: switchDirectory, ovnRun: controllerDirectory, bridge } = settings;
  const collectors = chassisCollectors({ clock, limitMs, switchDirectory, controllerDirectory, bridge });
  return runProbe({ ...common, kind, collectors }, signal);
}
