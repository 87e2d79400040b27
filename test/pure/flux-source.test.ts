import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { releaseSpec } from '../../constructs/api/release.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject, ObjectRef } from '../../executor/kube/types.ts';
import { defaultFluxOptions, type FluxOptions, fluxSource } from '../../executor/source/flux.ts';
import { type FluxSourceRef, judgeSource, serviceOfHost, sourceState } from '../../executor/source/flux-artifact.ts';
import type { Fetched } from '../../executor/source/source.ts';
import { startServer } from '../standins/httpserver.ts';

const ref: FluxSourceRef = { kind: 'GitRepository', namespace: 'flux-system', name: 'keelson', path: 'prod/payload/x' };
const hex = 'ab'.repeat(32);
const artifact = { url: 'http://host/x.tar.gz', revision: 'main@sha1:1', digest: `sha256:${hex}`, size: 10 };

const source = (status: object, generation = 2): KubeObject => ({
  apiVersion: 'source.toolkit.fluxcd.io/v1',
  kind: 'GitRepository',
  metadata: { name: 'keelson', namespace: 'flux-system', generation },
  status: { observedGeneration: 2, conditions: [{ type: 'Ready', status: 'True' }], ...status } as never,
});

const judged = (object: KubeObject | undefined): string => {
  const verdict = judgeSource(ref, object);
  return verdict.type === 'ready' ? 'ready' : `${verdict.type} ${verdict.problem.reason}: ${verdict.problem.message}`;
};

test('an artifact counts only while its source is ready and has seen its own spec', () => {
  assert.is(judged(source({ artifact })), 'ready');
  assert.match(judged(undefined), /^wait ArtifactNotReady: .*does not exist/);
  assert.match(judged(source({})), /^wait ArtifactNotReady: .*no artifact/);
  assert.match(judged(source({ artifact }, 3)), /^wait ArtifactNotReady: .*not looked at the present spec/);
  const failed = { artifact, conditions: [{ type: 'Ready', status: 'False', message: 'no such branch' }] };
  assert.match(judged(source(failed)), /^wait ArtifactNotReady: .*no such branch/);
  assert.match(judged(source({ artifact, conditions: [] })), /^wait ArtifactNotReady/);
});

test('an artifact without a digest, with one that can not be checked, or behind a strange URL is refused', () => {
  const with_ = (change: object): string => judged(source({ artifact: { ...artifact, ...change } }));
  assert.match(with_({ digest: undefined }), /^refused ArtifactWithoutDigest/);
  for (const digest of [`blake3:${hex}`, 'sha256:xyz', hex])
    assert.match(with_({ digest }), /^refused ArtifactRefused/);
  for (const url of ['file:///etc/passwd', 'http://user:word@host/x', 'data:,x', ''])
    assert.match(with_({ url }), /^refused ArtifactRefused/);
  assert.is(with_({ digest: `sha512:${'ab'.repeat(64)}` }), 'ready');
});

test('only what a payload could come from makes a source worth another look', () => {
  const before = sourceState(source({ artifact }));
  const touched = source({ artifact: { ...artifact, lastUpdateTime: 'now' } });
  assert.is(sourceState(touched), before);
  for (const other of [
    source({ artifact: { ...artifact, revision: 'main@sha1:2' } }),
    source({ artifact, conditions: [{ type: 'Ready', status: 'False' }] }),
    source({ artifact }, 3),
  ])
    assert.is.not(sourceState(other), before);
});

test('names of Services are told from all others', () => {
  const service = { namespace: 'flux-system', name: 'source-controller' };
  assert.equal(serviceOfHost('source-controller.flux-system.svc.cluster.local'), service);
  assert.equal(serviceOfHost('source-controller.flux-system.svc'), service);
  for (const host of ['example.com', 'svc.example.com', '10.0.0.1', 'a.b.svcx', 'a.b.c.svc'])
    assert.is(serviceOfHost(host), undefined, host);
});

test('a path leaves the artifact neither in the schema nor in the source', () => {
  const at = (path: string): boolean =>
    releaseSpec.safeParse({
      payload: { digest: `sha256:${hex}` },
      source: { flux: { ...ref, path } },
    }).success;
  assert.ok(at('prod/payload/x'));
  for (const path of ['../x', '/x', '']) assert.not.ok(at(path), path);
});

interface World {
  readonly objects: Record<string, KubeObject>;
  readonly asked: string[];
}

const clientOf = ({ objects, asked }: World): KubeClient =>
  ({
    get: async ({ kind, namespace, name }: ObjectRef) => {
      asked.push(`${kind} ${namespace}/${name}`);
      const object = objects[`${kind} ${namespace}/${name}`];
      return object === undefined ? { type: 'absent' } : { type: 'found', object };
    },
  }) as unknown as KubeClient;

const quick: FluxOptions = {
  ...defaultFluxOptions,
  namespaces: ['flux-system'],
  pause: { initialMs: 1, factor: 1, maxMs: 1, jitter: 0 },
};

const reasonOf = (fetched: Fetched): string => {
  if (fetched.type === 'archive') return 'archive';
  const problem = 'problem' in fetched ? fetched.problem : fetched.problems[0];
  return `${problem?.reason}: ${problem?.message}`;
};

const never = new AbortController().signal;

test('nothing is asked for in namespaces that are not allowed, or for a path that climbs', async () => {
  const world: World = { objects: {}, asked: [] };
  const from = fluxSource({ client: clientOf(world), clock: systemClock, random: Math.random, options: quick });
  const elsewhere = await from.fetch({ digest: '', ref: { ...ref, namespace: 'default' } }, never, () => undefined);
  assert.match(reasonOf(elsewhere), /^SourceNotAllowed: .*default; allowed: flux-system/);
  const climbing = await from.fetch({ digest: '', ref: { ...ref, path: 'a/../b' } }, never, () => undefined);
  assert.match(reasonOf(climbing), /^InvalidSpec/);
  assert.equal(world.asked, []);
});

test('the name of a Service leads to its cluster address without any DNS, and the same bytes are not fetched twice', async () => {
  const body = 'no archive at all';
  const server = await startServer((_request, response) => response.end(body));
  try {
    const url = `http://source-controller.flux-system.svc.cluster.local.:${server.port}/a.tar.gz`;
    const fresh = { ...artifact, url, digest: `sha256:${sha256Hex(body)}` };
    const world: World = {
      objects: {
        'GitRepository flux-system/keelson': source({ artifact: fresh }),
        'Service flux-system/source-controller': {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'source-controller' },
          spec: { clusterIP: '127.0.0.1' },
        },
      },
      asked: [],
    };
    const revisions: string[] = [];
    const from = fluxSource({ client: clientOf(world), clock: systemClock, random: Math.random, options: quick });
    const fetch = (): Promise<Fetched> =>
      from.fetch({ digest: `sha256:${hex}`, ref }, never, ({ revision }) => revisions.push(revision));
    assert.match(reasonOf(await fetch()), /^ArtifactUnsafe/);
    assert.match(reasonOf(await fetch()), /^ArtifactUnsafe/);
    assert.is(server.requests.length, 1);
    assert.match(String(server.requests[0]?.headers.host), 'source-controller.flux-system.svc.cluster.local');
    assert.equal(revisions, ['main@sha1:1']);
    world.objects['GitRepository flux-system/keelson'] = source({ artifact: { ...fresh, revision: 'main@sha1:2' } });
    await fetch();
    assert.equal(revisions, ['main@sha1:1', 'main@sha1:2']);
  } finally {
    await server.close();
  }
});

test('a fetch that is given up ends at once', async () => {
  const server = await startServer(() => undefined);
  try {
    const url = `${server.url}/hangs.tar.gz`;
    const world: World = {
      objects: { 'GitRepository flux-system/keelson': source({ artifact: { ...artifact, url } }) },
      asked: [],
    };
    const stop = new AbortController();
    const from = fluxSource({ client: clientOf(world), clock: systemClock, random: Math.random, options: quick });
    const began = performance.now();
    const fetching = from.fetch({ digest: '', ref }, stop.signal, () =>
      setImmediate(() => stop.abort(new Error('given up'))),
    );
    assert.is(await fetching.catch((error: Error) => error.message), 'given up');
    assert.ok(performance.now() - began < 1_000);
  } finally {
    await server.close();
  }
});

test.run();
