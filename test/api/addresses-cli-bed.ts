import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { type Clock, systemClock } from '../../constructs/lib/clock.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { metallbWorker } from '../../executor/addresses/metallb/metallb-worker.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import type { AddressWorker } from '../../executor/addresses/role.ts';
import { SharedObjects } from '../../executor/addresses/shared.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { runKeelson, type Said } from '../commandline.ts';
import { type LedgerPlace, ledgerPlace } from './addresses-bed.ts';
import { type Edge, edgeOf } from './kubeBed.ts';

/** The commands of the address ledger against a real server, with core and driver. */

export const pin = 'metallb.io/loadBalancerIPs';

/** The command line of a person in a folder of their own. */
interface Person {
  readonly folder: string;
  keelson(...args: string[]): Promise<Said>;
  /** The same, with a clock that runs ten times as fast: for what looks at something for half a minute. */
  hurried(...args: string[]): Promise<Said>;
  leave(): void;
}

const hurriedClock: Clock = {
  now: systemClock.now,
  monotonic: () => systemClock.monotonic() * 10,
  sleep: (ms, signal) => systemClock.sleep(ms / 10, signal),
};

export function person(kubeconfig: string): Person {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-person-'));
  const env = { PATH: process.env.PATH ?? '', HOME: folder };
  return {
    folder,
    keelson: (...args) => runKeelson([...args, '--kubeconfig', kubeconfig], { cwd: folder, env }),
    hurried: (...args) => runKeelson([...args, '--kubeconfig', kubeconfig], { cwd: folder, env, clock: hurriedClock }),
    leave: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A Service that MetalLB would have given its address. */
export async function balanced(
  { admin }: ApiServer,
  namespace: string,
  name: string,
  ip: string,
  annotations: Readonly<Record<string, string>> = { [pin]: ip },
): Promise<KubeObject> {
  const path = `/api/v1/namespaces/${namespace}/services`;
  const body = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, annotations },
    spec: { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports: [{ port: 80 }] },
  };
  await admin.expect('POST', path, { body });
  const status = { loadBalancer: { ingress: [{ ip, ipMode: 'VIP' }] } };
  const merge = { body: { status }, type: 'application/merge-patch+json' };
  return (await admin.expect('PATCH', `${path}/${name}/status`, merge)).body;
}

interface Actor {
  stop(): Promise<void>;
}

const acting = (work: (signal: AbortSignal) => Promise<void>): Actor => {
  const stop = new AbortController();
  const running = work(stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    stop: () => {
      stop.abort();
      return running;
    },
  };
};

/** A worker of the role, without its Lease. */
const startWorker = (client: KubeClient, worker: AddressWorker): Actor =>
  acting((signal) =>
    worker.run(
      {
        client,
        clock: systemClock,
        random: Math.random,
        uniqueId: () => randomBytes(6).toString('hex'),
        identity: worker.name,
        log: () => undefined,
        shared: new SharedObjects(),
      },
      signal,
    ),
  );

/** Where the driver has its placeholders and its pools. Nobody gives addresses to the former: the Services of these tests have theirs. */
const settings: MetallbSettings = {
  metallbNamespace: 'metallb-system',
  placeholderNamespace: 'metallb-iad-system',
  forcedRelease: 'deleted',
};

/** A server of its own, with everything that the commands need. */
export interface CommandPlace {
  readonly server: ApiServer;
  readonly namespace: string;
  readonly place: LedgerPlace;
  readonly edge: Edge;
  /** Who may do everything. */
  readonly admin: Person;
  /** Starts core and driver, anew where they run. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Takes everything out that controllers would hold: claims, addresses, classes, Services. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

export async function commandPlace(): Promise<CommandPlace> {
  const tools = { onProgress: (line: string) => console.error(line) };
  const server = await startApiServer({ serviceCidr: '10.96.0.0/16,fd00:96::/112', tools });
  const namespace = 'tenant-a';
  for (const name of [namespace, settings.metallbNamespace, settings.placeholderNamespace])
    await server.admin.expect('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    });
  const [place, edge, admin] = [ledgerPlace(server, namespace), edgeOf(server), person(server.kubeconfig)];
  let actors: Actor[] = [];
  const stop = async (): Promise<void> => {
    for (const actor of actors.splice(0)) await actor.stop();
  };
  return {
    server,
    namespace,
    place,
    edge,
    admin,
    stop,
    async start() {
      await stop();
      actors = [coreWorker(new Registry(), Date.now), metallbWorker(new Registry(), Date.now, settings)].map((worker) =>
        startWorker(edge.client, worker),
      );
    },
    async empty() {
      await stop();
      for (const kind of ['IPAddressClaim', 'IPAddress', 'IPAddressClass'] as const)
        for (const { metadata } of await place.list(kind)) {
          await place.merge(kind, metadata.name ?? '', { metadata: { finalizers: null } });
          await place.remove(kind, metadata.name ?? '');
        }
      // Placeholders go as the garbage collector would take them.
      for (const where of [namespace, settings.placeholderNamespace])
        await server.admin.expect('DELETE', `/api/v1/namespaces/${where}/services`);
    },
    async close() {
      await stop();
      await edge.transport.close();
      admin.leave();
      await server.stop();
    },
  };
}
