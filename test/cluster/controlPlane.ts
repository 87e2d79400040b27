import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { logFile, startDaemon } from './daemon.ts';
import type { Pki } from './pki.ts';
import { isAlive, type ProcessId } from './processes.ts';
import type { ClusterState, StateFile } from './state.ts';

export type ControlPlanePrograms = Readonly<
  Record<'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler', string>
>;

export interface ControlPlaneInput {
  readonly file: StateFile;
  readonly programs: ControlPlanePrograms;
  readonly pki: Pki;
  readonly fsync: boolean;
  readonly apiServerFlags: readonly string[];
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

export function apiServerUrl(state: ClusterState): string {
  return `https://${state.bridge.address}:${state.ports.apiServer}`;
}

export function tokensFile(state: ClusterState): string {
  return join(state.directory, 'pki', 'tokens.csv');
}

export async function startEtcd(input: ControlPlaneInput): Promise<void> {
  const { directory, ports } = input.file.current;
  const client = `http://127.0.0.1:${ports.etcd}`;
  await startDaemon(input.file, {
    name: 'etcd',
    argv: [
      input.programs.etcd,
      `--data-dir=${join(directory, 'etcd')}`,
      ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
      ...['--listen-peer-urls=http://127.0.0.1:0', '--log-level=warn'],
      ...(input.fsync ? [] : ['--unsafe-no-fsync']),
    ],
  });
}

export async function startApiServer(input: ControlPlaneInput): Promise<void> {
  const state = input.file.current;
  const { pki } = input;
  const process = await startDaemon(input.file, {
    name: 'kube-apiserver',
    argv: [
      input.programs['kube-apiserver'],
      `--etcd-servers=http://127.0.0.1:${state.ports.etcd}`,
      ...[`--bind-address=${state.bridge.address}`, `--advertise-address=${state.bridge.address}`],
      `--secure-port=${state.ports.apiServer}`,
      ...[`--tls-cert-file=${pki.serverCert}`, `--tls-private-key-file=${pki.serverKey}`],
      ...[`--client-ca-file=${pki.caCert}`, `--token-auth-file=${tokensFile(state)}`],
      `--service-cluster-ip-range=${state.serviceCIDR}`,
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      ...[`--service-account-key-file=${pki.accountPublicKey}`, `--service-account-signing-key-file=${pki.accountKey}`],
      ...['--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction', '--allow-privileged=true'],
      '--kubelet-preferred-address-types=InternalIP',
      '--enable-aggregator-routing=true',
      '--profiling=false',
      ...input.apiServerFlags,
    ],
  });
  await waitForApiServer(input, process);
}

async function waitForApiServer(input: ControlPlaneInput, process: ProcessId): Promise<void> {
  const state = input.file.current;
  const ca = readFileSync(input.pki.caCert);
  const log = logFile(state.directory, 'kube-apiserver');
  const agent = new Agent({ ca, keepAlive: false });
  await waitFor({
    what: 'kube-apiserver to be ready',
    limitMs: 60_000,
    intervalMs: 100,
    clock: input.clock,
    ...(input.signal === undefined ? {} : { signal: input.signal }),
    probe: async (saw) => {
      if (!isAlive(process)) throw new Error(`kube-apiserver ended: ${readFileSync(log, 'utf8').slice(-1500)}`);
      const status = await statusOf(`${apiServerUrl(state)}/readyz`, agent);
      saw(String(status));
      return status === 200 ? true : undefined;
    },
  });
}

function statusOf(url: string, agent: Agent): Promise<number | string> {
  return new Promise((resolve) => {
    const call = request(url, { agent, timeout: 2_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    call.on('timeout', () => call.destroy(new Error('no answer within 2 s')));
    call.on('error', (error) => resolve(error.message));
    call.end();
  });
}

/** Starts the controller-manager, with its signers, and the scheduler. */
export async function startControllers(
  input: ControlPlaneInput,
  kubeconfigs: { readonly manager: string; readonly scheduler: string },
): Promise<void> {
  const { pki, programs } = input;
  await startDaemon(input.file, {
    name: 'kube-controller-manager',
    argv: [
      programs['kube-controller-manager'],
      `--kubeconfig=${kubeconfigs.manager}`,
      '--use-service-account-credentials=true',
      ...[`--root-ca-file=${pki.caCert}`, `--service-account-private-key-file=${pki.accountKey}`],
      ...[`--cluster-signing-cert-file=${pki.caCert}`, `--cluster-signing-key-file=${pki.caKey}`],
      ...['--allocate-node-cidrs=false', '--leader-elect=false', '--secure-port=0', '--profiling=false'],
      ...['--node-monitor-grace-period=20s', '--kube-api-qps=100', '--kube-api-burst=150'],
    ],
  });
  await startDaemon(input.file, {
    name: 'kube-scheduler',
    argv: [
      programs['kube-scheduler'],
      `--kubeconfig=${kubeconfigs.scheduler}`,
      ...['--leader-elect=false', '--secure-port=0', '--profiling=false'],
    ],
  });
}
