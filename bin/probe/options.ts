import { isIP } from 'node:net';
import { parseArgs } from 'node:util';
import { evidenceMount, networkProbe, ports, probeContainers } from '../../constructs/api/constants.ts';
import type { EvidenceSubject } from '../../constructs/api/evidence.ts';

/** What a probe is started with. Read by hand: the library for command lines costs a sidecar 5 MiB. */

export const probeKinds = ['central', 'chassis', 'drain', 'network-client', 'network-server'] as const;
export type ProbeKind = (typeof probeKinds)[number];

export interface ProbeSettings {
  readonly kind: ProbeKind;
  readonly subject: Omit<EvidenceSubject, 'nodeBootID'>;
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
  /** Folder of the token and of the authorities that are believed. */
  readonly trust: string;
  readonly ovnRun: string;
  readonly ovnData: string;
  readonly ovsRun: string;
  readonly bridge: string;
  /** Where certificate, key and authority of OVN are. */
  readonly ovnTls: string;
  /** Servers of names, `address` or `address:port` each; none: those of the file. */
  readonly resolvers: readonly string[];
  readonly resolvConf: string;
  readonly limitMs: number;
}

export type Parsed =
  | { readonly type: 'run'; readonly settings: ProbeSettings }
  | { readonly type: 'invalid'; readonly problems: readonly string[] };

const portsOf: Readonly<Record<ProbeKind, readonly number[]>> = {
  central: [ports.central, ports.centralSpare],
  chassis: [ports.chassis, ports.chassisSpare],
  drain: [ports.drain],
  'network-client': [networkProbe.evidencePort],
  'network-server': [networkProbe.echoPort],
};

const containersOf: Readonly<Record<ProbeKind, string>> = {
  central: probeContainers.central,
  chassis: probeContainers.chassis,
  drain: probeContainers.drain,
  'network-client': probeContainers.network,
  'network-server': probeContainers.network,
};

const options = {
  port: { type: 'string', multiple: true },
  container: { type: 'string' },
  trust: { type: 'string', default: evidenceMount },
  'ovn-run': { type: 'string', default: '/var/run/ovn' },
  'ovn-data': { type: 'string', default: '/etc/ovn' },
  'ovs-run': { type: 'string', default: '/var/run/openvswitch' },
  bridge: { type: 'string', default: 'br-int' },
  'ovn-tls': { type: 'string', default: '/var/run/tls' },
  resolver: { type: 'string', multiple: true },
  'resolv-conf': { type: 'string', default: '/etc/resolv.conf' },
  'limit-ms': { type: 'string', default: '3000' },
} as const;

/** Where a pod learns who it is: variables that its manifest fills. */
const variables = { namespace: 'POD_NAMESPACE', pod: 'POD_NAME', podUID: 'POD_UID', node: 'NODE_NAME' } as const;

/** Reads command line and environment; everything that is wrong with them at once. */
export function parseProbe(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Parsed {
  const kind = probeKinds.find((one) => one === args[0]);
  if (kind === undefined)
    return { type: 'invalid', problems: [`say what to observe: keelson probe ${probeKinds.join('|')}|host`] };
  let values: ReturnType<typeof flags>;
  try {
    values = flags(args.slice(1));
  } catch (error) {
    return { type: 'invalid', problems: [error instanceof Error ? error.message : 'the options can not be read'] };
  }
  const problems: string[] = [];
  const variable = (name: string): string => {
    const value = env[name] ?? '';
    if (value === '') problems.push(`${name} is not set: it has to come from the pod's manifest`);
    return value;
  };
  const whole = (name: string, text: string, most: number): number => {
    const value = Number(text);
    if (!/^[0-9]+$/.test(text) || value < 1 || value > most)
      problems.push(`--${name} ${text} is not between 1 and ${most}`);
    return value;
  };
  const subject = {
    namespace: variable(variables.namespace),
    pod: variable(variables.pod),
    podUID: variable(variables.podUID),
    node: variable(variables.node),
    container: values.container ?? containersOf[kind],
  };
  const addresses = variable('POD_IPS')
    .split(',')
    .filter((address) => isIP(address) !== 0);
  const chosen = values.port?.map((text) => whole('port', text, 65_535)) ?? portsOf[kind];
  const limitMs = whole('limit-ms', values['limit-ms'], 60_000);
  if (problems.length > 0) return { type: 'invalid', problems };
  return {
    type: 'run',
    settings: {
      kind,
      subject,
      addresses,
      ports: chosen,
      trust: values.trust,
      ovnRun: values['ovn-run'],
      ovnData: values['ovn-data'],
      ovsRun: values['ovs-run'],
      bridge: values.bridge,
      ovnTls: values['ovn-tls'],
      resolvers: values.resolver ?? [],
      resolvConf: values['resolv-conf'],
      limitMs,
    },
  };
}

const flags = (args: readonly string[]) => parseArgs({ args: [...args], options, strict: true }).values;
