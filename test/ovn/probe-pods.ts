/**
 * A server and a client of the network probe as two pods of one node: logical ports of both families on a switch of OVN, with a
 * router, a load balancer for the address of the Service, and its name as a row of OVN's DNS.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { networkProbe } from '../../constructs/api/constants.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { ClusterLook } from '../../executor/observe/expect.ts';
import type { Verdict } from '../../executor/observe/verdict.ts';
import { probeEnvironment, probeFlags } from '../../images/probe.ts';
import { downwardOf, type executorBed, tokenOf } from '../pure/evidence-bed.ts';
import { networkContainer as container, observeNetwork } from '../pure/network-round.ts';
import { clusterLook } from '../pure/observe-look-support.ts';
import type { Answer, Env, OvnBed } from './bed.ts';

interface ProbePods {
  readonly bed: OvnBed;
  readonly executor: Awaited<ReturnType<typeof executorBed>>;
  /** The probe as its image holds it. */
  readonly program: string;
  readonly node: Env;
  readonly nbctl: (...args: string[]) => Promise<Answer>;
}

interface Pod {
  readonly name: 'server-n1' | 'client-n1';
  readonly mac: string;
  readonly addresses: readonly [string, string];
}

const server: Pod = { name: 'server-n1', mac: '02:00:00:00:17:02', addresses: ['10.17.0.2', 'fd00:10:17::2'] };
const client: Pod = { name: 'client-n1', mac: '02:00:00:00:17:03', addresses: ['10.17.0.3', 'fd00:10:17::3'] };
const gateway = ['10.17.0.1', 'fd00:10:17::1'] as const;
const service = ['10.96.0.9', 'fd00:10:96::9'] as const;
const { echoPort, evidencePort } = networkProbe;

const subjectOf = ({ name }: Pod) => ({
  namespace: 'kube-system',
  pod: name,
  podUID: `00000000-0000-4000-8000-00000000000${name === 'server-n1' ? 5 : 6}`,
  container,
  node: 'n1',
  nodeBootID: '',
});

function looked({ output, ...answer }: Answer & { readonly output: string }): string {
  if (!answer.ok) throw new Error(`${output}: ${answer.out}`);
  return answer.out;
}

/** Makes the pods, starts their programs, and answers how a round about them is judged. */
export async function probePods(context: ProbePods): Promise<{
  readonly server: Pod;
  observe(): Promise<Verdict>;
}> {
  const { bed, executor, program, node, nbctl } = context;
  const run = async (...argv: string[]): Promise<string> =>
    looked({ ...(await bed.command(argv, node)), output: argv.join(' ') });
  const space = ({ name }: Pod): string => join(bed.dir, `${name}.netns`);
  const within = (pod: Pod, ...argv: string[]): string[] => ['nsenter', `--net=${space(pod)}`, ...argv];

  async function plug(pod: Pod): Promise<void> {
    const [outer, inner] = [`h-${pod.name}`, `p-${pod.name}`];
    await run('sh', '-ec', `: > ${space(pod)}; unshare --net=${space(pod)} true`);
    await run('ip', 'link', 'add', outer, 'type', 'veth', 'peer', 'name', inner);
    await run('ip', 'link', 'set', inner, 'netns', space(pod));
    const lines = [
      'ip link set lo up',
      `ip link set ${inner} name eth0 address ${pod.mac} up`,
      `ip address add ${pod.addresses[0]}/24 dev eth0`,
      `ip -6 address add ${pod.addresses[1]}/64 dev eth0 nodad`,
      `ip route add default via ${gateway[0]}`,
      `ip -6 route add default via ${gateway[1]}`,
      // The switch in user space leaves checksums to whoever sends.
      'ethtool -K eth0 tx off',
    ];
    await run(...within(pod, 'sh', '-ec', lines.join('; ')));
    await run('ip', 'link', 'set', outer, 'up');
    const port = `add-port br-int ${outer} -- set Interface ${outer} external_ids:iface-id=${pod.name}`;
    await run('ovs-vsctl', `--db=unix:${node.OVS_RUNDIR}/db.sock`, '--timeout=5', ...port.split(' '));
  }

  /** Starts the program of a pod. */
  const start = (pod: Pod, ...args: string[]) =>
    bed.daemon(within(pod, process.execPath, ...probeFlags, program, 'probe', ...args), {
      ...probeEnvironment,
      ...downwardOf(subjectOf(pod)),
      POD_IPS: pod.addresses.join(','),
      PATH: String(node.PATH),
    });

  const name = `${networkProbe.service}.kube-system.svc.example.org`;
  const lines = [
    `lr-add both-r -- lrp-add both-r both-out 02:00:00:00:17:01 ${gateway[0]}/24 ${gateway[1]}/64 -- ls-add both`,
    '-- lsp-add both both-up -- lsp-set-type both-up router -- lsp-set-addresses both-up router',
    '-- lsp-set-options both-up router-port=both-out',
    ...[server, client].map((pod) => `-- lsp-add both ${pod.name}`),
    `-- lb-add service-4 ${service[0]}:${echoPort} ${server.addresses[0]}:${echoPort} -- ls-lb-add both service-4`,
    `-- lb-add service-6 [${service[1]}]:${echoPort} [${server.addresses[1]}]:${echoPort} -- ls-lb-add both service-6`,
  ];
  looked({ ...(await nbctl(...lines.join(' ').split(' '))), output: 'switch and router' });
  for (const pod of [server, client])
    looked({
      ...(await nbctl('lsp-set-addresses', pod.name, [pod.mac, ...pod.addresses].join(' '))),
      output: pod.name,
    });
  const records = `records={"${name}"="${service.join(' ')}"}`;
  const named = ['--id=@d', 'create', 'DNS', records, '--', 'add', 'Logical_Switch', 'both', 'dns_records', '@d'];
  looked({ ...(await nbctl(...named)), output: name });
  await plug(server);
  await plug(client);

  executor.know(subjectOf(client));
  const trust = join(executor.directory, 'client');
  await mkdir(trust);
  await writeFile(join(trust, 'ca.crt'), executor.trust()?.authorities ?? '');
  await writeFile(join(trust, 'token'), tokenOf(subjectOf(client)));
  const resolvConf = join(trust, 'resolv.conf');
  await writeFile(resolvConf, 'search kube-system.svc.example.org svc.example.org\n');
  start(server, 'network-server', '--port', String(echoPort));
  const places = ['--trust', trust, '--resolver', gateway[0], '--resolv-conf', resolvConf];
  start(client, 'network-client', '--port', String(evidencePort), '--limit-ms', '3000', ...places);

  const pulling = executor.pulling([evidencePort], {
    limitMs: 20_000,
    ways: () => [async (port) => ({ type: 'open', stream: bed.connect('127.0.0.1', port, space(client)) })],
  });
  const seen = look();
  return {
    server,
    observe: () =>
      observeNetwork({
        ...{ seen, networkStack: 'dual_stack', echoPort, pulling },
        ...{ clock: systemClock, signal: AbortSignal.timeout(30_000) },
      }),
  };
}

/** What the API server would have of them. */
function look(): ClusterLook {
  const whole = clusterLook(1);
  return {
    ...whole,
    pods: whole.pods.flatMap((pod) => {
      const here = [server, client].find((one) => one.name === pod.metadata.name);
      if (here === undefined) return [];
      const status = { ...pod.status, podIPs: here.addresses.map((ip) => ({ ip })) };
      return [{ ...pod, metadata: { ...pod.metadata, uid: subjectOf(here).podUID }, status }];
    }),
    services: whole.services.map((one) => ({
      ...one,
      metadata: { ...one.metadata, name: networkProbe.service },
      spec: { clusterIPs: [...service] },
    })),
  };
}
