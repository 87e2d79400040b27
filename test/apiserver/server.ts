import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TiedDirectory, tiedDirectory } from '../tools/directory.ts';
import { freePort } from '../tools/ports.ts';
import type { ToolOptions } from '../tools/store.ts';
import { ensureTools } from '../tools/tools.ts';
import { type AdminClient, adminClient, untilReady } from './client.ts';
import { type Component, startComponent } from './component.ts';
import {
  adminUser,
  kubeconfigText,
  plainUsers,
  type StaticUser,
  writeServiceAccountKeys,
  writeTokens,
} from './credentials.ts';
import { type Extra, extraTools, startExtra } from './extras.ts';

export interface ApiServerOptions {
  /** etcd waits for the disk; for benchmarks. */
  readonly fsync?: boolean;
  readonly serviceCidr?: string;
  /** Users beside `admin` in the static token file; by default user-1 to user-4, who may do nothing. */
  readonly users?: readonly StaticUser[];
  /** An audit policy (audit.k8s.io/v1 Policy) switches the audit log on. */
  readonly auditPolicy?: object;
  /** Parts of the control plane that the logic tests do without. */
  readonly with?: readonly Extra[];
  readonly extraArgs?: readonly string[];
  readonly etcdArgs?: readonly string[];
  readonly tools?: ToolOptions;
}

/** What a client needs to know of a running server; can be written to a file and read by another process. */
export interface ApiServerHandle {
  readonly url: string;
  /** PEM of the authority that signed the serving certificate. */
  readonly ca: string;
  readonly caFile: string;
  /** The serving certificate and key, valid for 127.0.0.1: a proxy in front can use them too. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Token of `admin` (system:masters). */
  readonly token: string;
  /** Tokens of all static users by name. */
  readonly tokens: Readonly<Record<string, string>>;
  /** The admin's client configuration file. */
  readonly kubeconfig: string;
  readonly directory: string;
  readonly kubectl: string;
  readonly etcdUrl: string;
  readonly auditLog?: string;
}

export interface ApiServer extends ApiServerHandle {
  readonly admin: AdminClient;
  /** Process id of the running kube-apiserver. */
  pid(): number;
  readonly etcdPid: number;
  /** Kills the API server with SIGKILL; etcd keeps running. */
  kill9(): Promise<void>;
  /** Starts the API server again on the same port, certificate and etcd; kills it first when it runs. */
  restart(): Promise<void>;
  /** Kills everything by id and removes the directory. */
  stop(): Promise<void>;
}

const readyLimitMs = 60_000;

/**
 * Starts etcd and kube-apiserver on free loopback ports in a temporary directory and returns when `/readyz` is good.
 * Both die with this process, however it ends; they do not keep it alive.
 */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const extras = options.with ?? [];
  const names = ['etcd', 'kube-apiserver', 'kubectl', ...extras.map((extra) => extraTools[extra])] as const;
  const tools = await ensureTools(names, options.tools);
  for (let attempt = 1; ; attempt += 1) {
    const directory = await tiedDirectory('keelson-apiserver-');
    try {
      return await start(options, tools, directory);
    } catch (error) {
      await directory.remove();
      // A port that was free when it was chosen can be taken before the server listens on it.
      if (attempt === 3 || !String(error).includes('address already in use')) throw error;
    }
  }
}

async function start(
  options: ApiServerOptions,
  tools: Readonly<Record<string, string>>,
  directory: TiedDirectory,
): Promise<ApiServer> {
  const dir = directory.path;
  const program = (name: string): string => tools[name] ?? name;
  const etcdUrl = `http://127.0.0.1:${await freePort()}`;
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const tokens = await writeTokens(join(dir, 'tokens.csv'), [adminUser, ...(options.users ?? plainUsers)]);
  const token = tokens[adminUser.name] ?? '';
  const keys = await writeServiceAccountKeys(dir);
  const args = await serverArgs(options, dir, { port, etcdUrl, ...keys });
  const etcd = startComponent('etcd', program('etcd'), etcdArgs(etcdUrl, dir, options), dir);
  const launch = (): Component => startComponent('kube-apiserver', program('kube-apiserver'), args, dir);
  let server = launch();
  const parts: Component[] = [];
  const killAll = async (): Promise<void> => {
    for (const part of [...parts, server, etcd]) await part.kill();
  };
  try {
    const [certFile, keyFile] = [join(dir, 'certs', 'apiserver.crt'), join(dir, 'certs', 'apiserver.key')];
    const ca = await servingCa(certFile, () => {
      etcd.alive();
      server.alive();
    });
    const caFile = join(dir, 'ca.crt');
    await writeFile(caFile, ca);
    const kubeconfig = join(dir, 'admin.kubeconfig');
    await writeFile(kubeconfig, kubeconfigText({ url, ca, token }), { mode: 0o600 });
    const admin = adminClient({ url, ca, token });
    const ready = (): Promise<void> => untilReady(admin, readyLimitMs, () => server.alive());
    await ready();
    for (const extra of options.with ?? []) {
      const [name, extraArgs] = await startExtra(extra, { kubeconfig, caFile, directory: dir, ...keys });
      parts.push(startComponent(name, program(name), extraArgs, dir));
    }
    return {
      ...{ url, ca, caFile, certFile, keyFile, token, tokens, kubeconfig, etcdUrl, admin },
      directory: dir,
      kubectl: program('kubectl'),
      ...(options.auditPolicy === undefined ? {} : { auditLog: join(dir, 'audit.log') }),
      pid: () => server.pid,
      etcdPid: etcd.pid,
      kill9: () => server.kill(),
      async restart() {
        await server.kill();
        server = launch();
        await ready();
      },
      async stop() {
        await killAll();
        await admin.close();
        await directory.remove();
      },
    };
  } catch (error) {
    await killAll();
    throw error;
  }
}

function etcdArgs(url: string, dir: string, options: ApiServerOptions): string[] {
  return [
    '--name=test',
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://127.0.0.1:0',
    '--log-level=warn',
    ...(options.fsync === true ? [] : ['--unsafe-no-fsync']),
    ...(options.etcdArgs ?? []),
  ];
}

interface Wiring {
  readonly port: number;
  readonly etcdUrl: string;
  readonly privateKey: string;
  readonly publicKey: string;
}

async function serverArgs(options: ApiServerOptions, dir: string, wiring: Wiring): Promise<string[]> {
  const audit: string[] = [];
  if (options.auditPolicy !== undefined) {
    await writeFile(join(dir, 'audit-policy.json'), JSON.stringify(options.auditPolicy));
    audit.push(`--audit-policy-file=${join(dir, 'audit-policy.json')}`, `--audit-log-path=${join(dir, 'audit.log')}`);
  }
  // Without a controller manager nobody makes the accounts that this admission plug-in asks for.
  const accounts = options.with?.includes('controllers') === true;
  return [
    `--etcd-servers=${wiring.etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${wiring.port}`,
    `--cert-dir=${join(dir, 'certs')}`,
    `--token-auth-file=${join(dir, 'tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--allow-privileged=true',
    `--service-cluster-ip-range=${options.serviceCidr ?? '10.96.0.0/16'}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${wiring.publicKey}`,
    `--service-account-signing-key-file=${wiring.privateKey}`,
    '--endpoint-reconciler-type=none',
    '--shutdown-delay-duration=0s',
    '--profiling=false',
    ...(accounts ? [] : ['--disable-admission-plugins=ServiceAccount']),
    ...audit,
    ...(options.extraArgs ?? []),
  ];
}

/** The authority's certificate stands last in the chain file that the server writes when it first starts. */
async function servingCa(certFile: string, alive: () => void): Promise<string> {
  const deadline = performance.now() + readyLimitMs;
  for (;;) {
    const chain = await readFile(certFile, 'utf8').catch(() => '');
    const certificates = chain.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----\n?/g) ?? [];
    const last = certificates.at(-1);
    if (certificates.length >= 2 && last !== undefined) return last;
    alive();
    if (performance.now() > deadline) throw new Error('the API server wrote no serving certificate');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
