import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { labels } from '../../constructs/api/constants.ts';
import { bundleInParts } from '../../images/bundle.ts';
import { type SliceBed, sliceBed } from '../api/slice-bed.ts';
import { buildPayload, configMap, type PhaseInput, testKey } from '../api/slice-payload.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { Replica } from './replica.ts';

/** One release of the run: what was delivered last, and what of it the run itself has touched. */
export interface Model {
  readonly bed: SliceBed;
  /** Begins the names of its objects: the releases share a namespace. */
  readonly prefix: string;
  /** Wanted ConfigMaps: name to value. */
  wanted: ReadonlyMap<string, string>;
  digest: string;
  /** UIDs of objects that are wanted without a break since they were seen, and that nobody but the executor may replace. */
  readonly uids: Map<string, string>;
  /** How often the run has changed a value of an object behind the executor's back: it gives up repairing after three. */
  readonly edits: Map<string, number>;
  /** Keys that another manager has added to objects: name to value. They are none of ours. */
  readonly foreign: Map<string, string>;
  /** Objects beside the payload, by name, with the version they must keep. */
  readonly bystanders: Map<string, string>;
  /** Objects whose value another manager holds by force; given back before everything is counted. */
  readonly taken: Set<string>;
}

export interface World {
  readonly server: ApiServer;
  readonly models: readonly Model[];
  readonly replicas: Replica[];
  deliver(model: Model, wanted: ReadonlyMap<string, string>): Promise<void>;
  close(): Promise<void>;
}

const phasesOf = (namespace: string, wanted: ReadonlyMap<string, string>): PhaseInput[] => {
  const names = [...wanted.keys()].sort();
  const half = Math.ceil(names.length / 2);
  return [names.slice(0, half), names.slice(half)].map((part, n) => ({
    name: `phase-${n + 1}`,
    manifests: part.map((name) => ({ object: configMap(namespace, name, { value: wanted.get(name) ?? '' }) })),
  }));
};

/** A real API server, releases without gates, and two replicas of the bundled executor, each behind its own proxy. */
export async function openWorld(releases: number): Promise<World> {
  const server = await startApiServer();
  const folder = await mkdtemp(join(tmpdir(), 'keelson-soak-'));
  await bundleInParts(new URL('../../bin/keelson.ts', import.meta.url).pathname, join(folder, 'program'));
  const first = await sliceBed(server);
  const models: Model[] = [];
  for (let n = 0; n < releases; n += 1) {
    const bed = n === 0 ? first : await sliceBed(server, first);
    models.push(await modelOf(bed, `r${n}-`));
  }
  await server.admin.expect('PATCH', `/api/v1/namespaces/${first.system}`, {
    body: { metadata: { labels: { [labels.testCluster]: 'true' } } },
    type: 'application/merge-patch+json',
  });
  const program = join(folder, 'program', 'keelson.mjs');
  const replicas = [0, 1].map(
    (n) => new Replica({ server, program, folder, name: `replica-${n}`, namespace: first.system }),
  );
  const deliver = async (model: Model, wanted: ReadonlyMap<string, string>): Promise<void> => {
    const { bed } = model;
    const phases = phasesOf(bed.names.namespace, wanted).filter(({ manifests }) => manifests.length > 0);
    const built = await buildPayload({ release: bed.names.release, phases, key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built, { approval: { mode: 'never' }, prune: { maxPercent: 100, maxCount: 1_000 } });
    for (const name of model.wanted.keys()) {
      if (wanted.has(name)) continue;
      // Should it be wanted again, it may be another object by then.
      model.uids.delete(name);
      model.foreign.delete(name);
    }
    model.wanted = wanted;
    model.digest = built.digest;
  };
  return {
    server,
    models,
    replicas,
    deliver,
    async close() {
      for (const replica of replicas) await replica.end();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function modelOf(bed: SliceBed, prefix: string): Promise<Model> {
  const { admin } = bed.server;
  const { namespace } = bed.names;
  await admin.request('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  });
  const bystanders = new Map<string, string>();
  for (let n = 0; n < 3; n += 1) {
    const name = `bystander-${n}-${randomBytes(2).toString('hex')}`;
    const { body } = await admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: configMap(namespace, name, { value: 'mine' }),
    });
    bystanders.set(name, body.metadata.resourceVersion);
  }
  return {
    bed,
    prefix,
    wanted: new Map(),
    digest: '',
    uids: new Map(),
    edits: new Map(),
    foreign: new Map(),
    bystanders,
    taken: new Set(),
  };
}
