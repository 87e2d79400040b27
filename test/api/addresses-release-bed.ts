import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import * as assert from 'uvu/assert';
import { addressesApiVersion } from '../../constructs/api/addresses.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { AddressWorker } from '../../executor/addresses/role.ts';
import { runExecutor } from '../../executor/run.ts';
import { addressesRenderer } from '../../renderer/addresses/render.ts';
import { type Rendered, renderCluster } from '../../renderer/render.ts';
import type { AdminClient, Reply } from '../apiserver/client.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { FaultPlan } from '../faults/plan.ts';
import { faultTransport } from '../faults/transport.ts';
import { objectsIn, publicClass } from '../pure/addresses-render-support.ts';
import { startRole as startLedger } from './addresses-role.ts';
import { staticCredentials, until } from './kubeBed.ts';
import { accepted, apply, as, namespace, pathOf, server } from './policies-bed.ts';
import { grantedAtoms, uncovered, unneeded } from './rights-bed.ts';

/** A rendered ledger on the API server of the policies: its executor works as the account that was rendered for it. */

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

const folder = join(import.meta.dirname, '../pure/plain-cluster');

/** A workload of somebody who claims an address, delivered by Keelson as well. */
const app = `apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: app
  annotations: {local.sdn.cozystack.io/ip-address-claim: web}
spec: {type: LoadBalancer, ports: [{port: 80}]}
`;

/** Renders a cluster with these classes and `spec.addresses`. */
export async function renderLedger(classes: readonly string[], settings: string): Promise<Rendered> {
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  const cluster = read('cluster.yaml')
    .replace(/\n {2}releases:[\s\S]*$/, '\n')
    .concat(`  allow: {principals: {admins: [keelson-admins]}}\n  addresses: ${settings}\n`);
  const files = Object.entries({
    'cluster.yaml': cluster,
    'keelson.lock.yaml': read('keelson.lock.yaml'),
    'addresses.yaml': classes.join('---\n'),
    'manifests/app/10-app/app.yaml': app,
  });
  const outcome = await renderCluster({
    source: { folder: 'clusters/plain', files: new Map(files.map(([path, text]) => [path, Buffer.from(text)])) },
    domains: [addressesRenderer],
    keelson: '0.0.0-test',
  });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems, null, 2));
  return outcome.rendered;
}

export const unitOf = (rendered: Rendered, unit: string): JsonObject[] => [
  ...objectsIn(rendered.tree, `sync/${unit}`).values(),
];

/** Releases, payloads and specs as a courier would deliver them. */
export async function deliver(rendered: Rendered): Promise<void> {
  for (const unit of ['20-releases', '30-specs'])
    for (const object of unitOf(rendered, unit)) accepted(await apply(server.admin, object), pathOf(object));
}

/** Definitions of MetalLB's kinds, as far as anything here reads them. */
export async function metallbKinds(): Promise<void> {
  for (const [kind, plural] of [
    ['IPAddressPool', 'ipaddresspools'],
    ['L2Advertisement', 'l2advertisements'],
  ]) {
    await server.admin.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `${plural}.metallb.io` },
        spec: {
          group: 'metallb.io',
          scope: 'Namespaced',
          names: { kind, plural, singular: String(kind).toLowerCase(), listKind: `${kind}List` },
          versions: [
            {
              name: 'v1beta1',
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          ],
        },
      },
    });
    const path = `/apis/metallb.io/v1beta1/${plural}`;
    await until(`${plural} to be served`, async () => (await server.admin.request('GET', path)).status === 200);
  }
}

export const pool = (name: string, addresses: readonly string[]): JsonObject => ({
  apiVersion: 'metallb.io/v1beta1',
  kind: 'IPAddressPool',
  metadata: { name, namespace: 'metallb-system' },
  spec: { addresses: [...addresses], autoAssign: false },
});

export const createNamespace = (name: string): Promise<Reply> =>
  server.admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  });

export const accountClient = async (where: string, name: string): Promise<AdminClient> =>
  as(await serviceAccountToken(server.admin, where, name));

/** The executor as its account, until it is stopped. */
export async function startExecutor(): Promise<{ plan: FaultPlan; stop(): Promise<void> }> {
  const plan = new FaultPlan();
  const stopping = new AbortController();
  const token = await serviceAccountToken(server.admin, namespace, 'keelson-executor');
  const ended = runExecutor(
    {
      credentials: staticCredentials(server, token),
      clock: systemClock,
      random: Math.random,
      uniqueId: () => randomBytes(6).toString('hex'),
      identity: 'test',
      namespace,
      allowUnsigned: true,
      engine: { gatePollMs: 100 },
      worker: { reconcileMs: 1_000, backoff: { initialMs: 100, factor: 2, maxMs: 1_000, jitter: 0.1 } },
      timings: { statusQuietMs: 300, statusRetryMs: 100, lastWordsMs: 1_000 },
      wrapTransport: (inner) => faultTransport(inner, plan),
    },
    stopping.signal,
  );
  return {
    plan,
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

/** Waits until the status of a Release says so. */
export async function untilRelease(name: string, what: string, probe: (release: Loose) => boolean): Promise<Loose> {
  const path = `/apis/keelson.dev/v1alpha1/namespaces/${namespace}/releases/${name}`;
  let seen: Loose;
  await until(
    `${what}`,
    async () => {
      seen = (await server.admin.expect('GET', path)).body;
      return probe(seen);
    },
    30_000,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; it said ${JSON.stringify(seen?.status, undefined, 1)}`);
  });
  return seen;
}

/** Whether a condition of the present generation has a value. */
export const isNow = (release: Loose, type: string, status: string): boolean =>
  release.status?.observedGeneration === release.metadata.generation &&
  release.status.conditions?.some((c: Loose) => c.type === type && c.status === status) === true;

export const claim = (name: string, spec: JsonObject, annotations: JsonObject = {}): JsonObject => ({
  apiVersion: addressesApiVersion,
  kind: 'IPAddressClaim',
  metadata: { name, namespace: 'tenant', annotations },
  spec,
});
export const service = (
  name: string,
  annotations: JsonObject = {},
  where = 'tenant',
  spec: JsonObject = {},
): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: where, annotations },
  spec: { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports: [{ port: 80 }], ...spec },
});
export const address = (name: string, text: string, more: JsonObject = {}): JsonObject => ({
  apiVersion: addressesApiVersion,
  kind: 'IPAddress',
  metadata: { name },
  spec: { className: 'public', address: text, source: { fromClass: {} }, ...more },
});

export const merge = (body: JsonObject) => ({ type: 'application/merge-patch+json', body });
export const create = async (client: AdminClient, object: JsonObject): Promise<Loose> => {
  const path = pathOf(object);
  return (await client.expect('POST', path.slice(0, path.lastIndexOf('/')), { body: object })).body;
};

export const live = async (object: JsonObject): Promise<Loose> =>
  (await server.admin.request('GET', pathOf(object))).body;
export const phase = (object: JsonObject, wanted: string): Promise<void> =>
  until(`${pathOf(object)} to be ${wanted}`, async () => (await live(object)).status?.phase === wanted);
export const gone = (object: JsonObject): Promise<void> =>
  until(`${pathOf(object)} to go`, async () => (await server.admin.request('GET', pathOf(object))).status === 404);

/** A worker of the role as the account of the role. Its first change of each of these resources comes too late. */
export async function startRole(
  worker: (registry: Registry) => AddressWorker,
  late: readonly string[],
): Promise<{ readonly plan: FaultPlan; stop(): Promise<void> }> {
  const plan = new FaultPlan();
  for (const resource of late)
    plan.inject({ match: { resource, verb: 'patch' }, fault: { kind: 'status', code: 409, reason: 'Conflict' } });
  const role = startLedger({
    server,
    workers: (registry) => [worker(registry)],
    leaseNamespace: namespace,
    token: await serviceAccountToken(server.admin, namespace, 'keelson-addresses'),
    wrapTransport: (inner) => faultTransport(inner, plan),
  });
  return { plan, stop: role.stop };
}

/** Whether a worker was let do all that it asked for, by its own rights, and needed each of them. */
export async function provenMinimal({ log }: FaultPlan, settings: string): Promise<void> {
  const atoms = grantedAtoms(await renderLedger([publicClass], settings), 'keelson-addresses');
  const requests = log.filter(({ resource }) => resource !== '');
  const denied = requests.filter(({ status }) => status === 403).map(({ verb, path }) => `${verb} ${path}`);
  assert.equal(denied, [], 'a right is missing');
  assert.equal(uncovered(atoms, requests), [], 'a right is missing, and that of another worker had to serve');
  assert.equal(unneeded(atoms, requests), [], 'a right is granted that nothing needs');
}
