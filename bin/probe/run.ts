import { randomBytes } from 'node:crypto';
import { networkProbe } from '../../constructs/api/constants.ts';
import { readFile } from '../../constructs/lib/files.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { centralCollectors } from '../../probes/central/collect.ts';
import { chassisCollectors } from '../../probes/chassis/collect.ts';
import { drainCollectors } from '../../probes/drain/collect.ts';
import { networkCollectors } from '../../probes/network/collect.ts';
import { resolverOf } from '../../probes/network/names.ts';
import { runEchoServer } from '../../probes/network/serve.ts';
import { sourcePorts } from '../../probes/network/source-ports.ts';
import { offerFromProcess } from '../../probes/server/offer-process.ts';
import { type ProbeOptions, runProbe } from '../../probes/server/run.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { version } from '../version.ts';
import { host } from './host.ts';
import { type ProbeSettings, parseProbe } from './options.ts';

/** `keelson probe ...`: tells the executor what the daemons beside it say, or what of the network arrives in its pod. */
export async function probe(args: readonly string[], invocation: Invocation): Promise<ExitCode> {
  if (args[0] === 'host') return host(args.slice(1), invocation);
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

async function serve(settings: ProbeSettings, invocation: Invocation): Promise<void> {
  const { clock, random, signal, err, program } = invocation;
  const { kind, limitMs, trust, ports, addresses } = settings;
  const log = (message: string): void =>
    err(JSON.stringify({ time: new Date(clock.now()).toISOString(), msg: redact(message) }));
  if (kind === 'network-server') {
    const [port = networkProbe.echoPort] = ports;
    return runEchoServer({ identity: settings.subject, addresses, port, clock, random, log }, signal);
  }
  const nodeBootID = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const subject = { ...settings.subject, nodeBootID };
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
  if (kind === 'network-client') {
    const { resolvers, resolvConf } = settings;
    const collectors = networkCollectors({
      clock,
      limitMs,
      resolve: resolverOf(resolvers),
      resolvConf: () => readFile(resolvConf, 'utf8').catch(() => ''),
      nonce: () => randomBytes(24).toString('hex'),
      from: sourcePorts(random),
    });
    return runProbe({ ...common, kind: 'network', collectors }, signal);
  }
  const { ovsRun: switchDirectory, ovnRun: controllerDirectory, bridge } = settings;
  if (kind === 'drain') {
    const collectors = drainCollectors({ clock, limitMs, switchDirectory, tlsDirectory: settings.ovnTls });
    return runProbe({ ...common, kind, collectors }, signal);
  }
  const collectors = chassisCollectors({ clock, limitMs, switchDirectory, controllerDirectory, bridge });
  return runProbe({ ...common, kind, collectors }, signal);
}
