import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { objectOf, objectsOf } from '../../constructs/lib/json.ts';
import { coreWorker } from '../../executor/addresses/core/core-worker.ts';
import { SharedObjects } from '../../executor/addresses/shared.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { runKeelson, type Said } from '../commandline.ts';
import { type LedgerPlace, ledgerPlace } from './addresses-bed.ts';
import { type Edge, edgeOf } from './kubeBed.ts';

/** The commands of the address ledger against a real server, with a core and as much of a driver as they wait for. */

export const pin = 'metallb.io/loadBalancerIPs';

/** The command line of a person in a folder of their own. */
interface Person {
  readonly folder: string;
  keelson(...args: string[]): Promise<Said>;
  leave(): void;
}

export function person(kubeconfig: string): Person {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-person-'));
  const env = { PATH: process.env.PATH ?? '', HOME: folder };
  return {
    folder,
    keelson: (...args) => runKeelson([...args, '--kubeconfig', kubeconfig], { cwd: folder, env }),
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

/** The core, without its Lease. */
const startCore = (client: KubeClient): Actor =>
  acting((signal) =>
    coreWorker(new Registry(), Date.now).run(
      {
        client,
        clock: systemClock,
        random: Math.random,
        uniqueId: () => Math.random().toString(36).slice(2, 12),
        identity: 'core',
        log: () => undefined,
        shared: new SharedObjects(),
      },
      signal,
    ),
  );

/** Services by the addresses of the claims that they name. */
async function usersOf({ server, namespace, get }: LedgerPlace): Promise<Map<string, string>> {
  const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/services`);
  const users = new Map<string, string>();
  for (const { metadata } of body.items as KubeObject[]) {
    const claim = metadata.annotations?.[addressAnnotations.claim];
    const status = claim === undefined ? undefined : (await get('IPAddressClaim', claim))?.status;
    if (status?.phase !== 'Bound') continue;
    for (const { name } of objectsOf(status.addresses)) users.set(String(name), metadata.name ?? '');
  }
  return users;
}

/** Of a driver no more than that it records which Service uses an address, and that none does any more. */
const startDriver = (place: LedgerPlace): Actor =>
  acting(async (signal) => {
    while (!signal.aborted) {
      const users = await usersOf(place);
      for (const { metadata, status } of await place.list('IPAddress')) {
        const name = users.get(metadata.name ?? '');
        if (objectOf(status?.associatedTo).name === name) continue;
        const associatedTo = name === undefined ? null : { kind: 'Service', namespace: place.namespace, name };
        await place.merge('IPAddress', metadata.name ?? '', { status: { associatedTo } }, true);
      }
      await systemClock.sleep(20, signal);
    }
  });

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
  const server = await startApiServer({ tools: { onProgress: (line) => console.error(line) } });
  const namespace = 'tenant-a';
  await server.admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
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
      actors = [startCore(edge.client), startDriver(place)];
    },
    async empty() {
      await stop();
      for (const kind of ['IPAddressClaim', 'IPAddress', 'IPAddressClass'] as const)
        for (const { metadata } of await place.list(kind)) {
          await place.merge(kind, metadata.name ?? '', { metadata: { finalizers: null } });
          await place.remove(kind, metadata.name ?? '');
        }
      const services = `/api/v1/namespaces/${namespace}/services`;
      for (const { metadata } of (await server.admin.expect('GET', services)).body.items as KubeObject[])
        await server.admin.expect('DELETE', `${services}/${metadata.name}`);
    },
    async close() {
      await stop();
      await edge.transport.close();
      admin.leave();
      await server.stop();
    },
  };
}
