/** Processes of the network probe on loopback, started as their pods would start them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { bundleProbe, probeEnvironment, probeFlags } from '../../images/probe.ts';
import { startNameServer } from '../standins/dns.ts';
import { tiedDirectory } from '../tools/directory.ts';
import { freePort } from '../tools/ports.ts';

const source = (path: string): string => fileURLToPath(new URL(`../../bin/${path}`, import.meta.url));

/** A pod of the probe. */
export interface ProbePod {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly addresses: readonly string[];
}

/** What a kubelet puts into the folder of a client. */
export interface Trust {
  readonly token: string;
  readonly authorities: string;
}

export async function networkProcesses(namespace: string) {
  const directory = await tiedDirectory('keelson-network-probe-');
  const program = await bundleProbe({ entry: source('probe.ts'), offer: source('probe-offer.ts') }, directory.path);
  const dns = await startNameServer();
  const children = new Set<ChildProcess>();
  const echoPort = await freePort();
  /** Every pod has the ports of its own; the processes here share those of loopback. */
  const evidencePorts = new Map<string, number>();
  const resolvConf = join(directory.path, 'resolv.conf');
  await writeFile(resolvConf, `nameserver 192.0.2.1\nsearch ${namespace}.svc.example.org svc.example.org\n`);

  /** Starts what the pod's container would; it is up once it has said `listens` times that it listens. */
  async function start(who: ProbePod, args: readonly string[], listens: number): Promise<ChildProcess> {
    const child = spawn(process.execPath, [...probeFlags, program, 'probe', ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...probeEnvironment,
        POD_NAMESPACE: namespace,
        POD_NAME: who.name,
        POD_UID: who.uid,
        NODE_NAME: who.node,
        POD_IPS: who.addresses.join(','),
      },
    });
    children.add(child);
    const said: string[] = [];
    const up = Promise.withResolvers<void>();
    createInterface({ input: child.stderr }).on('line', (line) => {
      said.push(line);
      if (said.filter((one) => one.includes('listening')).length >= listens) up.resolve();
    });
    const ended = once(child, 'exit').then(() => Promise.reject(new Error(said.join('\n'))));
    ended.catch(() => undefined);
    await Promise.race([up.promise, ended]);
    return child;
  }

  return {
    dns,
    echoPort,
    evidencePorts,
    serviceName: `keelson-network-probe.${namespace}.svc.example.org`,
    /** Starts a server, at addresses of others where it stands for a Service. */
    serve: (who: ProbePod, addresses = who.addresses): Promise<ChildProcess> =>
      start({ ...who, addresses }, ['network-server', '--port', String(echoPort)], addresses.length),
    async ask(who: ProbePod, { token, authorities }: Trust): Promise<ChildProcess> {
      const trust = join(directory.path, who.name);
      await mkdir(trust, { recursive: true });
      await writeFile(join(trust, 'token'), token);
      await writeFile(join(trust, 'ca.crt'), authorities);
      const port = await freePort();
      evidencePorts.set(who.uid, port);
      const places = ['--trust', trust, '--resolver', dns.address, '--resolv-conf', resolvConf];
      return start(who, ['network-client', '--port', String(port), '--limit-ms', '1500', ...places], 1);
    },
    async stop(child: ChildProcess): Promise<void> {
      children.delete(child);
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGKILL');
      await ended;
    },
    async close() {
      await Promise.all([...children].map((child) => this.stop(child)));
      await dns.close();
      await directory.remove();
    },
  };
}
