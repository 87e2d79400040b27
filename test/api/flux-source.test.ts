import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { defaultFluxOptions } from '../../executor/source/flux.ts';
import type { FluxSourceRef } from '../../executor/source/flux-artifact.ts';
import { type FluxBed, fluxBed, type Offer, packed, treeFiles } from './flux-source-bed.ts';
import { is, type RunningExecutor, type SliceBed, type StatusView, sliceBed } from './slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, namespaceObject, testKey } from './slice-payload.ts';
import { tarOf } from './tar-entries.ts';

/** Payloads out of artifacts of Flux: the real definitions, statuses written as source-controller writes them. */

const folder = 'prod/payload/it';
const maxBytes = 200_000;

const impatient = {
  ...defaultFluxOptions,
  maxBytes,
  timings: { connectMs: 500, silenceMs: 300, totalMs: 900 },
  attempts: 2,
  pause: { initialMs: 5, factor: 1, maxMs: 5, jitter: 0 },
};

interface World {
  readonly bed: SliceBed;
  readonly flux: FluxBed;
  readonly ref: FluxSourceRef;
  payload(value: string, signed?: boolean): Promise<BuiltPayload>;
  /** An artifact with a payload in it. */
  artifact(built: BuiltPayload, revision: string): Promise<Offer>;
  /** Asks for a payload from the artifact. */
  want(built: BuiltPayload, ref?: FluxSourceRef): Promise<void>;
  run(options?: Parameters<SliceBed['executor']>[0]): RunningExecutor;
  /** What the ConfigMap of the payload in place says. */
  value(): Promise<unknown>;
}

async function world(body: (w: World) => Promise<void>): Promise<void> {
  const bed = await sliceBed();
  const flux = await fluxBed(bed.server);
  const { names, system } = bed;
  const ref: FluxSourceRef = { kind: 'GitRepository', namespace: system, name: 'rendered', path: folder };
  const config = `/api/v1/namespaces/${names.namespace}/configmaps/settings`;
  try {
    await body({
      bed,
      flux,
      ref,
      payload: (value, signed = true) =>
        buildPayload({
          release: names.release,
          phases: [
            {
              name: 'all',
              manifests: [
                { object: namespaceObject(names.namespace) },
                { object: configMap(names.namespace, 'settings', { value }) },
              ],
            },
          ],
          ...(signed ? { key: testKey } : {}),
        }),
      artifact: async (built, revision) => ({ revision, bytes: await packed(treeFiles(built, folder)) }),
      want: (built, from = ref) => bed.applyRelease(built, { source: { flux: from } }),
      run: (options = {}) => bed.executor({ flux: { ...impatient, namespaces: [system] }, ...options }),
      value: async () => ((await bed.get(config))?.data as JsonObject | undefined)?.value,
    });
  } finally {
    await bed.close();
    await flux.close();
  }
}

const ready = (w: World, built: BuiltPayload): Promise<StatusView> =>
  w.bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True') && s.raw.actual === built.digest);

const refusedWith = (w: World, reason: string, revision: string, words: RegExp): Promise<StatusView> =>
  w.bed.untilStatus(
    `${reason} at ${revision}`,
    (s) =>
      is(s, 'Accepted', 'False') &&
      s.raw.failures[0]?.reason === reason &&
      s.raw.lastAttemptedRevision === revision &&
      words.test(s.raw.failures[0].message) &&
      (reason === 'ArtifactSkew' || is(s, 'Ready', 'False')),
  );

test('a payload out of an artifact is carried out; the revision is told in status, copies and Events', () =>
  world(async (w) => {
    const { bed, flux } = w;
    const first = await w.payload('one');
    await w.want(first);
    // Nothing but the watch of the source can end a wait as long as this one.
    const slow = { initialMs: 60_000, factor: 1, maxMs: 60_000, jitter: 0 };
    const executor = w.run({ worker: { reconcileMs: 60_000, backoff: slow } });
    const waiting = await bed.untilStatus('it waits', (s) => s.raw.failures?.[0]?.reason === 'ArtifactNotReady');
    assert.match(waiting.raw.failures[0].message, 'does not exist');
    assert.is(waiting.condition('Ready')?.status, 'Unknown', 'waiting for a source is no failure');
    await flux.offer(w.ref, { ...(await w.artifact(first, 'main@sha1:one')), origin: 'specs@sha1:abc' });
    const done = await ready(w, first);
    assert.is(done.raw.lastAttemptedRevision, 'main@sha1:one');
    assert.is(done.raw.lastAppliedRevision, 'main@sha1:one');
    assert.is(await w.value(), 'one');
    await executor.stop();
    const found = await bed.get(`/api/v1/namespaces/${bed.system}/events`);
    const completed = ((found?.items ?? []) as JsonObject[]).find(({ reason }) => reason === 'Completed');
    const notes = ((completed?.metadata as JsonObject | undefined)?.annotations ?? {}) as JsonObject;
    assert.is(notes[annotations.revision], 'main@sha1:one');
    assert.is(notes[annotations.originRevision], 'specs@sha1:abc');

    // Another process runs from the retained copy: the artifact is not fetched again, and the revision is not forgotten.
    const fetched = flux.files.requests.length;
    const next = w.run();
    await bed.annotate('reconcile.fluxcd.io/requestedAt', 'now');
    const after = await bed.untilStatus('the request is answered', (s) => s.raw.lastHandledReconcileAt === 'now');
    assert.is(after.raw.lastAppliedRevision, 'main@sha1:one');
    assert.is(flux.files.requests.length, fetched);
    await next.stop();
  }));

test('whatever is wrong with an artifact has its own reason, and the old payload stays enforced', () =>
  world(async (w) => {
    const { bed, flux } = w;
    const first = await w.payload('one');
    await flux.offer(w.ref, await w.artifact(first, 'main@sha1:one'));
    await w.want(first);
    w.run();
    await ready(w, first);
    const second = await w.payload('two');
    const { bytes } = await w.artifact(second, '');
    await w.want(second);
    await bed.untilStatus('the old artifact is not enough', (s) => s.raw.failures?.[0]?.reason === 'ArtifactSkew');

    let n = 0;
    const faulty = async (reason: string, words: RegExp, offer: Partial<Offer>): Promise<void> => {
      const revision = `main@sha1:bad${++n}`;
      await flux.offer(w.ref, { revision, bytes, ...offer });
      const status = await refusedWith(w, reason, revision, words);
      assert.is(status.raw.actual, first.digest, reason);
      assert.is(status.condition('Stalled'), undefined, `${reason}: a new revision may heal it`);
      assert.is(status.raw.lastAppliedRevision, 'main@sha1:one');
      assert.is(await w.value(), 'one', reason);
    };
    const half = Buffer.from(bytes.subarray(0, bytes.byteLength / 2));
    await faulty('ArtifactUnavailable', /tried 2 times/, {
      answer: (r) => {
        r.writeHead(200, { 'content-length': bytes.byteLength });
        r.write(half, () => r.destroy());
      },
    });
    await faulty('ArtifactDigestMismatch', /the bytes have sha256:/, { answer: (r) => r.end(half) });
    await faulty('ArtifactDigestMismatch', /the source states sha256:0{64}/, { digest: `sha256:${'0'.repeat(64)}` });
    await faulty('ArtifactRefused', /302 and points to http:\/\/elsewhere/, {
      answer: (r) => r.writeHead(302, { location: 'http://elsewhere.example/x' }).end(),
    });
    await faulty('ArtifactRefused', /answers 403/, { answer: (r) => r.writeHead(403).end() });
    await faulty('ArtifactUnavailable', /answers 503; tried 2 times/, { answer: (r) => r.writeHead(503).end() });
    await faulty('ArtifactUnavailable', /no end after 900 ms|Timeout/i, { answer: () => undefined });
    await faulty('ArtifactUnavailable', /no end after 900 ms/, {
      answer: (r) => {
        const drip = setInterval(() => r.write('x'), 50);
        r.on('close', () => clearInterval(drip));
      },
    });
    await faulty('ArtifactTooLarge', /larger than 200000 bytes/, {
      answer: (r) => r.writeHead(200, { 'content-length': maxBytes + 1 }).end(Buffer.alloc(maxBytes + 1)),
    });
    await faulty('ArtifactTooLarge', /larger than 200000 bytes/, {
      // Without a length, in parts.
      answer: (r) => {
        r.write(Buffer.alloc(maxBytes));
        r.end(Buffer.alloc(maxBytes));
      },
    });
    await faulty('ArtifactGone', /answers 404/, { answer: (r) => r.writeHead(404).end() });
    const link = { name: `${folder}/index.json`, type: 'symlink', linkname: '/etc/passwd' } as const;
    for (const [words, entries] of [
      [/symlink/, [link]],
      [/is a link/, [{ ...link, type: 'link' }]],
      [/leaves its folder/, [{ name: `${folder}/../../../x`, body: 'x' }]],
      [/absolute path/, [{ name: '/etc/cron.d/x', body: 'x' }]],
      [/unpacks to more/, [{ name: `${folder}/zeros`, body: Buffer.alloc(15 * 1024 * 1024) }]],
    ] as const)
      await faulty('ArtifactUnsafe', words, { bytes: await tarOf(entries) });

    // A source that is not ready, or has not seen its own spec, still shows an artifact: that is not taken.
    await flux.offer(w.ref, { revision: 'main@sha1:late', bytes, ready: 'False' });
    await bed.untilStatus('it waits', (s) => s.raw.failures?.[0]?.message.includes('no such branch'));
    await flux.offer(w.ref, { revision: 'main@sha1:late', bytes, observed: 0 });
    await bed.untilStatus('it waits', (s) => s.raw.failures?.[0]?.message.includes('not looked at the present spec'));

    // The old payload is enforced all the while.
    await bed.server.admin.expect('DELETE', `/api/v1/namespaces/${bed.names.namespace}/configmaps/settings`);
    await flux.offer(w.ref, { revision: 'main@sha1:no', bytes: await packed(treeFiles(second, 'elsewhere')) });
    const skewed = await refusedWith(w, 'ArtifactSkew', 'main@sha1:no', /holds no payload below prod\/payload\/it/);
    assert.is(skewed.raw.actual, first.digest);
    await untilValue(w, 'one');

    // The server answers 404 because the source has moved on just now.
    const good = await w.artifact(second, 'main@sha1:two');
    await flux.offer(w.ref, {
      revision: 'main@sha1:gone',
      bytes,
      answer: async (r) => {
        await flux.offer(w.ref, good);
        r.writeHead(404).end();
      },
    });
    const healed = await ready(w, second);
    assert.is(healed.raw.lastAppliedRevision, 'main@sha1:two');
    assert.is(await w.value(), 'two');
  }));

async function untilValue(w: World, value: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await w.value()) !== value) if (performance.now() > deadline) throw new Error(`settings is not ${value}`);
}

test('a damaged or unsigned payload is refused, and nothing of it is written', () =>
  world(async (w) => {
    const { flux } = w;
    const unsigned = await w.payload('unsigned', false);
    await flux.offer(w.ref, await w.artifact(unsigned, 'main@sha1:a'));
    await w.want(unsigned);
    w.run();
    await refusedWith(w, 'SignatureMissing', 'main@sha1:a', /not signed/);
    const built = await w.payload('two');
    const files = treeFiles(built, folder).map((file) =>
      file.path.includes('settings') ? { ...file, bytes: Buffer.from(`${file.bytes}#`.replace('two', 'three')) } : file,
    );
    await flux.offer(w.ref, { revision: 'main@sha1:b', bytes: await packed(files) });
    await w.want(built);
    await refusedWith(w, 'PayloadIntegrity', 'main@sha1:b', /does not have the sha256/);
    assert.is(await w.value(), undefined, 'nothing was ever written');
    const third = await w.payload('three');
    const extra = [...treeFiles(third, folder), { path: `${folder}/10-all/extra.yaml`, bytes: Buffer.from('a: b\n') }];
    await flux.offer(w.ref, { revision: 'main@sha1:c', bytes: await packed(extra) });
    await w.want(third);
    await refusedWith(w, 'PayloadIntegrity', 'main@sha1:c', /not listed in the index/);
    const fourth = await w.payload('four');
    await flux.offer(w.ref, await w.artifact(fourth, 'main@sha1:d'));
    await w.want(fourth);
    await ready(w, fourth);
  }));

test('every kind of source serves, and none of a namespace that is not allowed', () =>
  world(async (w) => {
    const { bed, flux } = w;
    w.run();
    for (const kind of ['OCIRepository', 'Bucket', 'ExternalArtifact'] as const) {
      const built = await w.payload(kind);
      const ref = { ...w.ref, kind };
      await flux.offer(ref, await w.artifact(built, `latest@sha256:${kind}`));
      await w.want(built, ref);
      const done = await ready(w, built);
      assert.is(done.raw.lastAppliedRevision, `latest@sha256:${kind}`);
    }
    const other = await w.payload('other');
    const before = flux.files.requests.length;
    await flux.offer({ ...w.ref, namespace: 'default' }, await w.artifact(other, 'main@sha1:x'));
    await w.want(other, { ...w.ref, namespace: 'default' });
    const refused = (s: StatusView): boolean => s.raw.failures?.[0]?.reason === 'SourceNotAllowed';
    await bed.untilStatus('it is refused', (s) => refused(s) && is(s, 'Stalled', 'True'));
    assert.is(flux.files.requests.length, before);
    assert.is(await w.value(), 'ExternalArtifact');
    for (const path of ['a/../b', 'a//b', './a']) {
      const { status } = await bed.server.admin.request(
        'PATCH',
        `/apis/keelson.dev/v1alpha1/namespaces/${bed.system}/releases/${bed.names.release}`,
        { body: { spec: { source: { flux: { ...w.ref, path } } } }, type: 'application/merge-patch+json' },
      );
      assert.is(status, 422, path);
    }
  }));

test.run();
