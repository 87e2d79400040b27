/** kustomize-controller outside of a cluster: its source's status is written by hand, its artifact comes from a plain server. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sha256Digest } from '../../../constructs/lib/digest.ts';
import { isObject, type JsonObject } from '../../../constructs/lib/json.ts';
import { gzipFixed, packTar } from '../../../constructs/lib/tar.ts';
import { startServer } from '../../standins/httpserver.ts';
import { readDefinitions } from '../../tools/definitions.ts';
import { freePort } from '../../tools/ports.ts';
import { ensureTool } from '../../tools/tools.ts';
import type { CorpusObject } from '../corpus.ts';
import { type Place, pathOf } from '../place.ts';
import { startProgram } from './program.ts';
import type { Contender, Deed, Worker } from './types.ts';

const namespace = 'flux-system';
const name = 'bench';
const statusKey = `kustomize.toolkit.fluxcd.io/kustomizations/${namespace}/${name}`;

export const kustomizeController: Contender = {
  name: 'kustomizeController',
  title: 'kustomize-controller',
  open,
};

const source: JsonObject = {
  apiVersion: 'source.toolkit.fluxcd.io/v1',
  kind: 'GitRepository',
  metadata: { name, namespace },
  spec: { url: 'https://git.example/bench.git', interval: '60m', ref: { branch: 'main' } },
};

/** Pruning and drift correction on, waiting for health off, as for the other contenders. */
const kustomization: JsonObject = {
  apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
  kind: 'Kustomization',
  metadata: { name, namespace },
  spec: {
    interval: '60m',
    timeout: '10m',
    path: './',
    prune: true,
    wait: false,
    sourceRef: { kind: 'GitRepository', name },
  },
};

async function artifactOf(objects: readonly CorpusObject[]): Promise<Uint8Array> {
  const files = objects.map(({ object }, n) => ({
    path: `${String(n).padStart(4, '0')}.yaml`,
    bytes: Buffer.from(JSON.stringify(object, undefined, 2)),
  }));
  return gzipFixed(await packTar(files));
}

async function open(place: Place, objects: readonly CorpusObject[]): Promise<Worker> {
  const binary = await ensureTool('kustomize-controller');
  const { server } = place;
  await place.setUp({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  for (const module of ['source-controller', 'kustomize-controller'] as const)
    for (const definition of await readDefinitions(module)) await place.setUp(definition);
  let archive: Uint8Array = new Uint8Array();
  const files = await startServer((_, response) => response.end(archive));
  const args = [
    '--enable-leader-election=false',
    '--events-addr=',
    `--metrics-addr=127.0.0.1:${await freePort()}`,
    `--health-addr=127.0.0.1:${await freePort()}`,
  ];
  const env = {
    PATH: process.env.PATH,
    HOME: server.directory,
    TMPDIR: server.directory,
    KUBECONFIG: server.kubeconfig,
    RUNTIME_NAMESPACE: namespace,
  };
  await place.setUp(source);
  const program = startProgram(binary, args, env);
  await program.says('Starting workers', 60_000);
  let revision = 0;
  /** Packs an artifact, which a source has done before anybody hears of it; `announce` tells of it. */
  const pack = async (wanted: readonly CorpusObject[]): Promise<{ named: string; announce: () => Promise<void> }> => {
    revision += 1;
    archive = await artifactOf(wanted);
    const named = `main@sha1:${String(revision).padStart(40, '0')}`;
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'Succeeded',
      message: `stored artifact for revision '${named}'`,
      lastTransitionTime: new Date().toISOString(),
      observedGeneration: 1,
    };
    const artifact = {
      url: `${files.url}/${revision}.tar.gz`,
      path: join(name, `${revision}.tar.gz`),
      revision: named,
      digest: sha256Digest(archive),
      lastUpdateTime: new Date().toISOString(),
      size: archive.byteLength,
    };
    const announce = async (): Promise<void> => {
      await server.admin.expect('PATCH', `${pathOf(source)}/status`, {
        body: { status: { observedGeneration: 1, conditions: [condition], artifact } },
        type: 'application/merge-patch+json',
      });
    };
    return { named, announce };
  };
  const asked = async (): Promise<Deed> => {
    const at = new Date().toISOString();
    return {
      statusKey,
      async begin() {
        await server.admin.expect('PATCH', pathOf(kustomization), {
          body: { metadata: { annotations: { 'reconcile.fluxcd.io/requestedAt': at } } },
          type: 'application/merge-patch+json',
        });
      },
      done: (object) => finished(object) && statusOf(object).lastHandledReconcileAt === at,
    };
  };
  return {
    async cold() {
      const { named, announce } = await pack(objects);
      await announce();
      // The controller sees the source through a watch; the Kustomization is what begins the work.
      await delay(500);
      return {
        statusKey,
        begin: () => place.setUp(kustomization),
        done: (object) => finished(object) && statusOf(object).lastAppliedRevision === named,
      };
    },
    again: asked,
    repair: asked,
    async keep(wanted) {
      const { named, announce } = await pack(wanted);
      return {
        statusKey,
        begin: announce,
        done: (object) => finished(object) && statusOf(object).lastAppliedRevision === named,
      };
    },
    usage: () => program.usage(),
    async close() {
      await program.stop();
      await files.close();
    },
  };
}

const statusOf = (object: unknown): JsonObject => (isObject(object) && isObject(object.status) ? object.status : {});

/** Whether it is Ready and at rest. @throws when it says that applying failed. */
function finished(object: unknown): boolean {
  const { conditions } = statusOf(object);
  const all = (Array.isArray(conditions) ? conditions : []).filter(isObject);
  const ready = all.find(({ type }) => type === 'Ready');
  if (ready?.status === 'False') throw new Error(`kustomize-controller failed: ${String(ready.message)}`);
  return ready?.status === 'True' && !all.some(({ type }) => type === 'Reconciling');
}
