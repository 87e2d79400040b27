import { Resolver } from 'node:dns/promises';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { dnsUser } from './accounts.ts';
import { clusterDomain, dnsServiceAddress, serviceAddress } from './addresses.ts';
import { logFile, startDaemon } from './daemon.ts';
import type { KubectlAccess } from './nodeObjects.ts';
import { isAlive } from './processes.ts';
import { mustRun } from './run.ts';
import type { ClusterState, StateFile } from './state.ts';

export interface DnsInput {
  readonly file: StateFile;
  /** Path of CoreDNS. */
  readonly program: string;
  /** Path of the kubeconfig of its account. */
  readonly kubeconfig: string;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

function configuration({ file, kubeconfig }: DnsInput): string {
  const { bridge, ports } = file.current;
  const server = ['errors', `bind ${bridge.address}`, `kubernetes ${clusterDomain} in-addr.arpa {`];
  return `.:${ports.dns} {\n${[...server, `kubeconfig ${kubeconfig}`, 'ttl 2', '}'].join('\n')}\n}\n`;
}

/** Objects that give CoreDNS its rights, as everywhere, and pods its address: a Service whose endpoint is on the host. */
function objects(state: ClusterState): object[] {
  const name = 'kube-dns';
  const metadata = { name, namespace: 'kube-system', labels: { 'k8s-app': name } };
  const read = (apiGroups: string[], resources: string[]) => ({ apiGroups, resources, verbs: ['list', 'watch'] });
  const role = 'system:coredns';
  const portsOf = (port: number) => [
    { name: 'dns', protocol: 'UDP', port },
    { name: 'dns-tcp', protocol: 'TCP', port },
  ];
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: role },
      rules: [
        read([''], ['endpoints', 'services', 'pods', 'namespaces']),
        read(['discovery.k8s.io'], ['endpointslices']),
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: dnsUser.name }],
    },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: dnsServiceAddress, ports: portsOf(53) } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { ...metadata.labels, 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [state.bridge.address], conditions: { ready: true } }],
      ports: portsOf(state.ports.dns),
    },
  ];
}

/**
 * Starts CoreDNS on the host, behind the Service that pods are told of, and waits until it knows the cluster. It needs no
 * pod and no image, so names work as soon as a pod network does, whichever that is.
 * @throws Error with what it wrote when it ends.
 */
export async function startDns(input: DnsInput, access: KubectlAccess): Promise<void> {
  const { file, clock, signal } = input;
  const state = file.current;
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects(state) });
  const kubectl = [access.kubectl, `--kubeconfig=${access.kubeconfig}`];
  await mustRun([...kubectl, 'apply', '--server-side', '-f', '-'], { input: list, limitMs: 60_000 });
  const corefile = join(state.directory, 'Corefile');
  writeFileSync(corefile, configuration(input));
  const process = await startDaemon(file, { name: 'coredns', argv: [input.program, '-conf', corefile] });
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([`${state.bridge.address}:${state.ports.dns}`]);
  await waitFor({
    what: 'CoreDNS to know the API server',
    limitMs: 30_000,
    intervalMs: 100,
    clock,
    ...(signal === undefined ? {} : { signal }),
    probe: async (saw) => {
      if (!isAlive(process)) throw new Error(`CoreDNS ended; see ${logFile(state.directory, 'coredns')}`);
      try {
        const found = await resolver.resolve4(`kubernetes.default.svc.${clusterDomain}`);
        saw(found.join(', '));
        return found.includes(serviceAddress) ? true : undefined;
      } catch (error) {
        saw(String(error));
        return undefined;
      }
    },
  });
}
