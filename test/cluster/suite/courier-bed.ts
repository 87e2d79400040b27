import { join } from 'node:path';
import { conditionsFor, type OutcomeKind } from '../../../constructs/api/conditions.ts';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { sha256Digest } from '../../../constructs/lib/digest.ts';
import { gzipFixed, packTar } from '../../../constructs/lib/tar.ts';
import { readTreeFolder } from '../../../gitops/publish/folder.ts';
import { startApiServer } from '../../apiserver/server.ts';
import { type Program, startProgram } from '../../bench/contenders/program.ts';
import { runKeelson } from '../../commandline.ts';
import { type Copy, copyExample } from '../../pure/render-support.ts';
import { startServer } from '../../standins/httpserver.ts';
import { readDefinitions } from '../../tools/definitions.ts';
import { freePort } from '../../tools/ports.ts';
import { ensureTool } from '../../tools/tools.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read replies loosely
type Loose = any;

/** The real kustomize-controller beside a real API server, carrying the rendered tree of the plain cluster. */
export interface CourierBed {
  readonly specs: Copy;
  keelson(...args: string[]): Promise<string>;
  /** Renders the specs into the folder that `--from` names. */
  render(): Promise<string>;
  /** Makes what is rendered the artifact of the repository; the revision. */
  publish(): Promise<string>;
  get(path: string): Promise<Loose>;
  /** As `kubectl` does: by a merge patch under one of its own managers. */
  kubectl(verb: string, path: string, body: unknown): Promise<void>;
  delete(path: string): Promise<void>;
  /** Waits until the object says so; the time-out tells what it was. */
  until(what: string, path: string, probe: (object: Loose) => boolean, limitMs?: number): Promise<Loose>;
  /** Writes the status of a Release as the executor would after an outcome. */
  report(release: string, outcome: OutcomeKind, message: string): Promise<void>;
  close(): Promise<void>;
}

const namespace = 'flux-system';
const repository = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${namespace}/gitrepositories/keelson`;

export async function openCourierBed(): Promise<CourierBed> {
  const binary = await ensureTool('kustomize-controller');
  const server = await startApiServer();
  const { admin } = server;
  const specs = copyExample();
  const out = join(specs.folder, '../../out');
  let archive: Uint8Array = new Uint8Array();
  let revision = 0;
  let program: Program | undefined;
  const files = await startServer((_, response) => response.end(archive));
  const get = async (path: string): Promise<Loose> => {
    const reply = await admin.request('GET', path);
    return reply.status === 200 ? reply.body : undefined;
  };
  const bed: CourierBed = {
    specs,
    get,
    async keelson(...args) {
      const env = { PATH: process.env.PATH ?? '', HOME: specs.folder, KUBECONFIG: server.kubeconfig };
      const said = await runKeelson([...args, '-c', specs.folder], { env, cwd: specs.folder });
      const told = [said.out, said.err].filter((text) => text !== '').join('\n');
      if (said.code !== 0) throw new Error(`keelson ${args.join(' ')} ended with ${said.code}: ${told}`);
      return told;
    },
    async render() {
      await bed.keelson('render', '--out', out);
      return join(out, 'example');
    },
    async publish() {
      const tree = await readTreeFolder(await bed.render());
      archive = gzipFixed(await packTar([...tree].map(([path, bytes]) => ({ path: `example/${path}`, bytes }))));
      revision += 1;
      const named = `main@sha1:${String(revision).padStart(40, '0')}`;
      const time = new Date().toISOString();
      const ready = { type: 'Ready', status: 'True', reason: 'Succeeded', message: named, lastTransitionTime: time };
      const artifact = {
        url: `${files.url}/${revision}.tar.gz`,
        path: `${revision}.tar.gz`,
        revision: named,
        digest: sha256Digest(archive),
        lastUpdateTime: time,
        size: archive.byteLength,
      };
      const { metadata } = (await admin.expect('GET', repository)).body;
      await admin.expect('PATCH', `${repository}/status`, {
        body: { status: { observedGeneration: metadata.generation, conditions: [ready], artifact } },
        type: 'application/merge-patch+json',
      });
      return named;
    },
    async kubectl(verb, path, body) {
      const query = { fieldManager: `kubectl-${verb}` };
      await admin.expect('PATCH', path, { body, type: 'application/merge-patch+json', query });
    },
    async delete(path) {
      await admin.expect('DELETE', path);
    },
    async until(what, path, probe, limitMs = 60_000) {
      const deadline = performance.now() + limitMs;
      for (;;) {
        const object = await get(path);
        if (probe(object)) return object;
        if (performance.now() > deadline)
          throw new Error(`not within ${limitMs} ms: ${what}; it was ${JSON.stringify(object?.status ?? object)}`);
        await systemClock.sleep(200);
      }
    },
    async report(release, kind, message) {
      const path = `/apis/keelson.dev/v1alpha1/namespaces/keelson-system/releases/${release}`;
      const { metadata } = (await admin.expect('GET', path)).body;
      const conditions = conditionsFor({
        outcome: { kind, reason: 'Applying', message },
        previous: [],
        generation: metadata.generation,
        now: Date.now(),
      });
      await admin.expect('PATCH', `${path}/status`, {
        body: { status: { observedGeneration: metadata.generation, conditions } },
        type: 'application/merge-patch+json',
        query: { fieldManager: 'keelson-status' },
      });
    },
    async close() {
      await program?.stop();
      await files.close();
      await server.stop();
      specs.dispose();
    },
  };
  await admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  });
  for (const module of ['source-controller', 'kustomize-controller'] as const)
    for (const definition of await readDefinitions(module))
      await admin.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: definition });
  await bed.until(
    'Flux to be served',
    '/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations',
    (list) => list !== undefined,
  );
  program = startProgram(
    binary,
    [
      '--enable-leader-election=false',
      '--events-addr=',
      '--requeue-dependency=2s',
      `--metrics-addr=127.0.0.1:${await freePort()}`,
      `--health-addr=127.0.0.1:${await freePort()}`,
    ],
    {
      PATH: process.env.PATH,
      HOME: server.directory,
      TMPDIR: server.directory,
      KUBECONFIG: server.kubeconfig,
      RUNTIME_NAMESPACE: namespace,
    },
  );
  await program.says('Starting workers', 60_000);
  return bed;
}
