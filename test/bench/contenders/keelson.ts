/** Our executor as its own process, from the bundle that images hold. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemNamespace, trustSecret } from '../../../constructs/api/constants.ts';
import { chunkPayload } from '../../../constructs/api/payload-chunks.ts';
import { isObject, type JsonObject } from '../../../constructs/lib/json.ts';
import { imageEnvironment } from '../../../images/base.ts';
import { bundleInParts } from '../../../images/bundle.ts';
import { type BuiltPayload, buildPayload, gate, testKey } from '../../api/slice-payload.ts';
import { type CorpusObject, corpusPhases } from '../corpus.ts';
import { objectsOf, type Place, pathOf } from '../place.ts';
import { startProgram } from './program.ts';
import type { Contender, Deed, Worker } from './types.ts';

const release = 'manifests-bench';
const top = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** Bundles the executor as users run it, and one that asks the server for no dry run; answers their files. */
export async function bundleExecutors(folder: string): Promise<{ product: string; withoutDryRun: string }> {
  await mkdir(folder, { recursive: true });
  await bundleInParts(top('bin/keelson.ts'), join(folder, 'product'));
  await bundleInParts(top('test/bench/executor.ts'), join(folder, 'without'));
  return { product: join(folder, 'product', 'keelson.mjs'), withoutDryRun: join(folder, 'without', 'executor.mjs') };
}

const payloadOf = (objects: readonly CorpusObject[]): Promise<BuiltPayload> =>
  buildPayload({
    release,
    key: testKey,
    phases: corpusPhases.flatMap((name) => {
      const manifests = objects.filter(({ phase }) => phase === name).map(({ object }) => ({ object }));
      if (manifests.length === 0) return [];
      return [{ name, manifests, gates: name === 'definitions' ? [gate('Established', name)] : [] }];
    }),
  });

async function deliver(place: Place, { digest, archive }: BuiltPayload): Promise<void> {
  for (const chunk of chunkPayload('payload', { release, digest, namespace: systemNamespace }, archive))
    await place.setUp(chunk as unknown as JsonObject);
}

const releaseOf = (digest: string): JsonObject => ({
  apiVersion: 'keelson.dev/v1alpha1',
  kind: 'Release',
  metadata: { name: release, namespace: systemNamespace },
  spec: {
    payload: { digest },
    source: { configMaps: {} },
    approval: { mode: 'never' },
    prune: { maxPercent: 100, maxCount: 10_000 },
  },
});

const statusOf = (object: unknown): JsonObject => (isObject(object) && isObject(object.status) ? object.status : {});

function completed(digest: string, object: unknown): boolean {
  const status = statusOf(object);
  if (status.state === 'Error') throw new Error(`the release failed: ${JSON.stringify(status.failures)}`);
  const [newest] = Array.isArray(status.history) ? status.history : [];
  return isObject(newest) && newest.digest === digest && newest.state === 'Completed';
}

export interface KeelsonOptions {
  readonly name: 'keelson' | 'keelsonWithoutDryRun';
  readonly title: string;
  /** The bundle. */
  readonly program: string;
  /** Folder for CPU profiles; empty for none. */
  readonly profile: string;
}

/** The executor from a bundle. */
export function keelson(options: KeelsonOptions): Contender {
  return { name: options.name, title: options.title, open: (place, objects) => open(options, place, objects) };
}

async function open(options: KeelsonOptions, place: Place, objects: readonly CorpusObject[]): Promise<Worker> {
  for (const definition of objectsOf(top('constructs/api/generated/crds'))) await place.setUp(definition);
  const metadata = { name: trustSecret, namespace: systemNamespace };
  await place.setUp({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { key: testKey.publicKey } });
  const { kubeconfig } = place.server;
  const profiling = options.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`];
  const args = [
    ...profiling,
    ...[options.program, 'executor', '--kubeconfig', kubeconfig],
    ...['--namespace', systemNamespace, '--metrics-port', '0'],
  ];
  const { NODE_OPTIONS } = imageEnvironment;
  const program = startProgram(process.execPath, args, { PATH: process.env.PATH, NODE_OPTIONS });
  await program.says('lease leading', 30_000);
  const statusKey = `keelson.dev/releases/${systemNamespace}/${release}`;
  const toward = async (wanted: readonly CorpusObject[]): Promise<Deed> => {
    const payload = await payloadOf(wanted);
    await deliver(place, payload);
    return {
      statusKey,
      begin: () => place.setUp(releaseOf(payload.digest)),
      done: (object) => completed(payload.digest, object),
    };
  };
  return {
    cold: () => toward(objects),
    async again() {
      const asked = new Date().toISOString();
      return {
        statusKey,
        async begin() {
          await place.server.admin.expect('PATCH', pathOf(releaseOf('')), {
            body: { metadata: { annotations: { 'reconcile.fluxcd.io/requestedAt': asked } } },
            type: 'application/merge-patch+json',
          });
        },
        done: (object) => statusOf(object).lastHandledReconcileAt === asked,
      };
    },
    repair: async () => undefined,
    keep: toward,
    usage: () => program.usage(),
    close: () => program.stop(),
  };
}
