import { crdOf } from '../../constructs/api/crd.ts';
import { ipAddressKind } from '../../constructs/api/kinds/ipaddress.ts';
import { ipAddressClaimKind } from '../../constructs/api/kinds/ipaddressclaim.ts';
import { ipAddressClassKind } from '../../constructs/api/kinds/ipaddressclass.ts';
import { crdName, type Kind, kindApiVersion } from '../../constructs/api/kinds/kind.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { clientLedgerApi } from '../../executor/addresses/client-api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import type { PassKey } from '../../executor/addresses/core/wake.ts';
import { LedgerEngine } from '../../executor/addresses/engine.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import type { Reply } from '../apiserver/client.ts';
import type { ApiServer } from '../apiserver/server.ts';

/** The ledger on a real API server of its own: a worker of it looks at every class there is. */

const ledgerKinds: Readonly<Record<LedgerKind, Kind>> = {
  IPAddressClass: ipAddressClassKind,
  IPAddress: ipAddressKind,
  IPAddressClaim: ipAddressClaimKind,
};

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

const collectionOf = (kind: Kind, namespace: string): string =>
  `/apis/${kind.group}/${kind.version}/${kind.scope === 'Namespaced' ? `namespaces/${namespace}/` : ''}${kind.plural}`;

/** Puts the definitions in place, or others of the same names. */
export async function install({ admin }: ApiServer, definition: (kind: Kind) => JsonObject = crdOf): Promise<void> {
  for (const kind of Object.values(ledgerKinds)) {
    const path = `${crds}/${crdName(kind)}`;
    const present = await admin.request('GET', path);
    if (present.status === 200)
      await admin.expect('PUT', path, {
        body: { ...definition(kind), metadata: { ...present.body.metadata } },
      });
    else await admin.expect('POST', crds, { body: definition(kind) });
    await waitFor({
      what: `${kind.kind} to be served`,
      limitMs: 30_000,
      intervalMs: 50,
      clock: systemClock,
      probe: async () =>
        (await admin.request('GET', collectionOf(kind, 'default'))).status === 200 ? true : undefined,
    });
  }
}

export interface LedgerPlace {
  readonly server: ApiServer;
  readonly namespace: string;
  path(kind: LedgerKind, name: string): string;
  create(kind: LedgerKind, name: string, spec: JsonObject, metadata?: JsonObject): Promise<KubeObject>;
  get(kind: LedgerKind, name: string): Promise<KubeObject | undefined>;
  list(kind: LedgerKind): Promise<KubeObject[]>;
  merge(kind: LedgerKind, name: string, body: JsonObject, status?: boolean): Promise<Reply>;
  remove(kind: LedgerKind, name: string): Promise<void>;
}

export function ledgerPlace(server: ApiServer, namespace: string): LedgerPlace {
  const { admin } = server;
  const path = (kind: LedgerKind, name: string): string => `${collectionOf(ledgerKinds[kind], namespace)}/${name}`;
  return {
    server,
    namespace,
    path,
    create: async (kind, name, spec, metadata = {}) =>
      (
        await admin.expect('POST', collectionOf(ledgerKinds[kind], namespace), {
          body: { apiVersion: kindApiVersion(ledgerKinds[kind]), kind, metadata: { ...metadata, name }, spec },
        })
      ).body,
    async get(kind, name) {
      const reply = await admin.request('GET', path(kind, name));
      return reply.status === 200 ? reply.body : undefined;
    },
    list: async (kind) => (await admin.expect('GET', collectionOf(ledgerKinds[kind], namespace))).body.items,
    merge: (kind, name, body, status = false) =>
      admin.request('PATCH', `${path(kind, name)}${status ? '/status' : ''}`, {
        body,
        type: 'application/merge-patch+json',
      }),
    async remove(kind, name) {
      await admin.expect('DELETE', path(kind, name));
    },
  };
}

/** One process of the core without a watch: it lists, works until nothing is left, and ends. */
export async function work(client: KubeClient, now: () => number, signal: AbortSignal): Promise<void> {
  const queue = new Set<PassKey>();
  const engine = new LedgerEngine<PassKey>({
    api: clientLedgerApi(client),
    ledger: new LedgerStore(),
    controllers: coreControllers,
    now,
    wake: (key) => queue.add(key),
    tell: () => undefined,
    onProblem: (key, message) => {
      if (!signal.aborted) throw new Error(`${key}: ${message}`);
    },
  });
  // Deletions are what a watch would tell: here another list does.
  for (let before = ''; ; ) {
    const seen: string[] = [];
    for (const kind of Object.values(ledgerKinds)) {
      const listed = await client.list({ apiVersion: kindApiVersion(kind), kind: kind.kind }, { signal });
      if (listed.type !== 'listed') throw new Error(listed.message);
      for (const object of listed.items) engine.seen(object);
      const present = new Set(listed.items.map(({ metadata }) => metadata.uid));
      for (const view of [...engine.ledger.every(kind.kind as LedgerKind)])
        if (!present.has(view.uid)) engine.deleted(view.object);
      seen.push(...listed.items.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`));
    }
    for (const key of queue) {
      queue.delete(key);
      await engine.pass(key, signal);
    }
    const after = seen.join(',');
    if (after === before) return;
    before = after;
  }
}
