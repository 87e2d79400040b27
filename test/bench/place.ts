/** Where one run takes place: an etcd that waits for the disk and an API server, fresh, with what every contender finds. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemNamespace } from '../../constructs/api/constants.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { corpusNamespaces, customGroup, settingDefinition } from './corpus.ts';
import { type EtcdView, etcdView } from './etcd.ts';
import { busyShare, childOf, cpuSeconds } from './proc.ts';

export interface Place {
  readonly server: ApiServer;
  readonly etcd: EtcdView;
  /** CPU seconds of the API server and of etcd until now. */
  serverCpu(): { readonly apiserver: number; readonly etcd: number };
  /** Waits until the machine is quiet, for a while; answers which share of it others keep busy. */
  settle(): Promise<number>;
  /** Applies an object as the person who sets the place up, and waits for a definition to be served. */
  setUp(object: JsonObject): Promise<void>;
  close(): Promise<void>;
}

const quiet = 0.15;
const settleLimitMs = 6_000;

export async function openPlace(progress: (line: string) => void): Promise<Place> {
  const server = await startApiServer({ fsync: true, tools: { onProgress: progress } });
  const etcdPid = childOf(process.pid, 'etcd');
  const setUp = (object: JsonObject): Promise<void> => apply(server, object);
  const place: Place = {
    server,
    etcd: etcdView(server.etcdUrl),
    serverCpu: () => ({ apiserver: cpuSeconds(server.pid()), etcd: cpuSeconds(etcdPid) }),
    async settle() {
      const deadline = performance.now() + settleLimitMs;
      for (;;) {
        const busy = await busyShare();
        if (busy <= quiet || performance.now() > deadline) return busy;
      }
    },
    setUp,
    close: () => server.stop(),
  };
  try {
    for (const name of [...corpusNamespaces, systemNamespace])
      await setUp({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await setUp(settingDefinition());
    await untilListed(server, `/apis/${customGroup}/v1/settings`);
    return place;
  } catch (error) {
    await place.close();
    throw error;
  }
}

/** Objects of all YAML files of a folder. */
export function objectsOf(folder: string): JsonObject[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return files.flatMap((file) =>
    parseYaml(readFileSync(join(folder, file), 'utf8'), file).documents.flatMap(({ value }) =>
      isObject(value) ? [value] : [],
    ),
  );
}

const plurals: Readonly<Record<string, string>> = {
  Namespace: 'api/v1/namespaces',
  Secret: 'api/v1/namespaces/NS/secrets',
  ConfigMap: 'api/v1/namespaces/NS/configmaps',
  CustomResourceDefinition: 'apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  Release: 'apis/keelson.dev/v1alpha1/namespaces/NS/releases',
  GitRepository: 'apis/source.toolkit.fluxcd.io/v1/namespaces/NS/gitrepositories',
  Kustomization: 'apis/kustomize.toolkit.fluxcd.io/v1/namespaces/NS/kustomizations',
};

/** The path of an object that a run sets up. @throws for a kind that no run sets up. */
export function pathOf(object: JsonObject): string {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const plural = plurals[String(object.kind)];
  if (plural === undefined) throw new TypeError(`no run sets up a ${String(object.kind)}`);
  return `/${plural.replace('NS', String(metadata.namespace))}/${String(metadata.name)}`;
}

const servedLimitMs = 20_000;

/** The first list of a new kind finds the server's cache empty; a kind that is in use has passed that. */
async function untilListed({ admin }: ApiServer, path: string): Promise<void> {
  const deadline = performance.now() + servedLimitMs;
  while ((await admin.request('GET', path)).status !== 200) {
    if (performance.now() > deadline) throw new Error(`${path} can not be listed`);
    await delay(50);
  }
}

async function apply({ admin }: ApiServer, object: JsonObject): Promise<void> {
  const path = pathOf(object);
  const query = { fieldManager: 'bench-setup', force: 'true' };
  await admin.expect('PATCH', path, { body: object, type: 'application/apply-patch+yaml', query });
  if (object.kind !== 'CustomResourceDefinition') return;
  const deadline = performance.now() + servedLimitMs;
  for (;;) {
    const { body } = await admin.expect('GET', path);
    const conditions: readonly { type: string; status: string }[] = body.status?.conditions ?? [];
    if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return;
    if (performance.now() > deadline) throw new Error(`${path} is not served`);
    await delay(20);
  }
}
