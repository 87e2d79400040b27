import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, limits } from '../../constructs/api/constants.ts';
import {
  manifestDigest,
  type PayloadContent,
  type PayloadIndex,
  payloadDigest,
  payloadObjectId,
} from '../../constructs/api/payload.ts';
import { chunkPayload, joinChunks } from '../../constructs/api/payload-chunks.ts';
import {
  decodePayload,
  encodePayload,
  objectFile,
  objectSha256,
  type Payload,
  verifyFiles,
} from '../../constructs/api/payload-codec.ts';
import { generateKeyPair, readTrust, signDigest, verifySignature } from '../../constructs/api/signature.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { canonicalJson } from '../../constructs/lib/json.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import { onePhase, plainEntry } from './payload-support.ts';

const configMap = (name: string, value = 'x'): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'demo' },
  data: { value },
});

const contentOf = (objects: JsonObject[]): PayloadContent =>
  onePhase(
    'configuration',
    objects.map((object, n) =>
      plainEntry(String((object.metadata as JsonObject).name), {
        dir: '10-configuration',
        file: objectFile(n),
        sha256: objectSha256(object),
      }),
    ),
  );

const sha = (c: string): string => `sha256:${c.repeat(64)}`;

function payloadOf(objects: JsonObject[], change: (content: PayloadContent) => PayloadContent = (c) => c): Payload {
  const content = change(contentOf(objects));
  const index: PayloadIndex = {
    formatVersion: 1,
    digest: payloadDigest(content),
    content,
    provenance: {
      keelson: '0.1.0',
      inputs: { specs: sha('1'), lock: sha('2'), inventory: sha('3'), charts: [] },
      filteredHooks: [],
    },
  };
  const entries = index.content.phases.flatMap((p) => p.objects);
  return { index, objects: new Map(entries.map((e, n) => [payloadObjectId(e), objects[n] ?? {}])) };
}

const twelve = Array.from({ length: 12 }, (_, n) => configMap(`c${n}`));

test('a payload survives its archive, and the archive is the same each time', async () => {
  const payload = payloadOf(twelve);
  const archive = await encodePayload(payload);
  assert.equal(Buffer.from(await encodePayload(payload)), Buffer.from(archive));
  const read = await decodePayload(archive);
  assert.ok(read.ok);
  if (read.ok) {
    assert.equal(read.value.index, payload.index);
    assert.equal([...read.value.objects], [...payload.objects]);
  }
});

test('provenance and signature stand outside the digest; every member of content is inside', () => {
  const content = contentOf(twelve);
  const digest = payloadDigest(content);
  assert.is(payloadDigest({ ...content, clusterUID: undefined }), digest);
  const changes: Partial<PayloadContent>[] = [
    { cluster: 'other' },
    { clusterUID: '6ba7b810-9dad-41d1-80b4-00c04fd430c8' },
    { release: { name: 'manifests-demo', domain: 'network' } },
    { manifestDigest: sha('0') },
    { spans: [{ from: 'configuration', to: 'configuration' }] },
    { requires: [{ kind: 'Secret', namespace: 'demo', name: 's', keys: ['k'] }] },
    { phases: content.phases.map((p) => ({ ...p, dir: '11-configuration' })) },
  ];
  for (const change of changes) assert.is.not(payloadDigest({ ...content, ...change }), digest, JSON.stringify(change));
});

test('manifestDigest moves with the order, the phase, the id and the bytes of objects and with nothing else', () => {
  const [phase] = contentOf(twelve).phases;
  assert.ok(phase);
  const base = manifestDigest([phase]);
  const gated = { ...phase, gates: [{ type: 'Established', scope: 'configuration', softLimit: '1m' }] };
  assert.is(manifestDigest([gated]), base);
  assert.is.not(manifestDigest([{ ...phase, objects: phase.objects.toReversed() }]), base);
  assert.is.not(manifestDigest([{ ...phase, name: 'other' }]), base);
  assert.is.not(manifestDigest([{ ...phase, objects: phase.objects.slice(1) }]), base);
});

const filesOf = (payload: Payload): Map<string, Uint8Array> => {
  const files = new Map<string, Uint8Array>();
  files.set('index.json', Buffer.from(canonicalJson(payload.index as unknown as JsonObject)));
  for (const entry of payload.index.content.phases.flatMap((p) => p.objects))
    files.set(entry.file, Buffer.from(canonicalJson(payload.objects.get(payloadObjectId(entry)) ?? {})));
  return files;
};

const problemsOf = (files: Map<string, Uint8Array>, form: 'archive' | 'tree' = 'archive'): string[] => {
  const read = verifyFiles(files, form);
  return read.ok ? [] : read.problems.map((p) => `${p.reason}: ${p.file ?? ''} ${p.path ?? ''} ${p.message}`);
};

test('a file that is missing, extra, changed, not canonical or another object is found, all at once', () => {
  const files = filesOf(payloadOf(twelve));
  files.delete(objectFile(0));
  files.set(objectFile(1), Buffer.from(canonicalJson(configMap('c1', 'changed'))));
  files.set(objectFile(2), Buffer.from(`${canonicalJson(configMap('c2'))}\n`));
  files.set('objects/9999.json', Buffer.from('{}'));
  const problems = problemsOf(files);
  assert.is(problems.length, 4);
  for (const [n, part] of ['is missing', 'sha256', 'not canonical', 'not listed'].entries())
    assert.match(problems[n] ?? '', part);
});

test('an index that lists a file under another name is refused', () => {
  const payload = payloadOf(twelve, (content) => {
    const phases = content.phases.map((p) => ({
      ...p,
      objects: p.objects.map((o, n) => (n === 3 ? { ...o, name: 'somebody-else' } : o)),
    }));
    return { ...content, phases, manifestDigest: manifestDigest(phases) };
  });
  assert.equal(problemsOf(filesOf(payload)).length, 1);
  assert.match(problemsOf(filesOf(payload))[0] ?? '', 'another object');
});

test('wrong digests, duplicates, empty payloads and spans of nothing are refused', () => {
  const wrong: [(content: PayloadContent) => PayloadContent, string][] = [
    [(c) => ({ ...c, manifestDigest: sha('0') }), 'manifestDigest'],
    [(c) => ({ ...c, spans: [{ from: 'a', to: 'b' }] }), 'span a..b'],
    [
      (c) => {
        const phases = [...c.phases, ...c.phases];
        return { ...c, phases, manifestDigest: manifestDigest(phases) };
      },
      'more than once',
    ],
    [
      (c) => {
        const phases = c.phases.map((p) => ({ ...p, objects: [] }));
        return { ...c, phases, manifestDigest: manifestDigest(phases) };
      },
      'no object',
    ],
  ];
  for (const [change, part] of wrong) {
    const problems = problemsOf(filesOf(payloadOf(twelve, change)));
    assert.ok(
      problems.some((p) => p.includes(part)),
      `${part}: ${problems.join('; ')}`,
    );
  }
  const payload = payloadOf(twelve);
  const forged = { ...payload, index: { ...payload.index, digest: sha('f') } };
  assert.match(problemsOf(filesOf(forged))[0] ?? '', 'digest is');
});

test('unknown members of the index are refused; a newer format says that the executor is too old', () => {
  const files = filesOf(payloadOf(twelve));
  const index = JSON.parse(Buffer.from(files.get('index.json') ?? []).toString());
  files.set('index.json', Buffer.from(JSON.stringify({ ...index, surprise: true })));
  assert.match(problemsOf(files)[0] ?? '', 'PayloadIntegrity');
  files.set('index.json', Buffer.from(JSON.stringify({ ...index, formatVersion: 2 })));
  assert.match(problemsOf(files)[0] ?? '', 'ExecutorTooOld');
  files.set('index.json', Buffer.from('{'));
  assert.match(problemsOf(files)[0] ?? '', 'PayloadIntegrity');
});

test('a rendered tree verifies to the same payload, whatever its YAML looks like', () => {
  const payload = payloadOf(twelve);
  const files = new Map([['index.json', filesOf(payload).get('index.json') ?? new Uint8Array()]]);
  for (const entry of payload.index.content.phases.flatMap((p) => p.objects))
    files.set(entry.yaml, Buffer.from(`# a comment\n${dumpYaml(payload.objects.get(payloadObjectId(entry)) ?? {})}`));
  assert.equal(problemsOf(files, 'tree'), []);
});

test('damaged archives are refused, not thrown', async () => {
  const archive = await encodePayload(payloadOf(twelve));
  for (const bytes of [
    archive.subarray(0, 100),
    new Uint8Array(),
    Buffer.from('not gzip'),
    new Uint8Array(limits.archiveBytes + 1),
  ]) {
    const read = await decodePayload(bytes);
    assert.is(read.ok, false);
    if (!read.ok) assert.is(read.problems[0]?.reason, 'PayloadIntegrity');
  }
});

const chunkTarget = { release: 'manifests-demo', digest: sha('a'), namespace: 'keelson-system' };

test('any archive survives its chunks in any order; each chunk is within the limit', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 700_000 }), fc.infiniteStream(fc.nat(255)), (size, stream) => {
      const seed = stream.next().value ?? 0;
      const archive = Uint8Array.from({ length: size }, (_, n) => (n * 31 + seed) % 256);
      const chunks = chunkPayload('payload', chunkTarget, archive);
      for (const chunk of chunks)
        assert.ok(Buffer.from(chunk.binaryData.payload ?? '', 'base64').length <= limits.chunkBytes);
      const read = joinChunks(chunkTarget.digest, chunks.toReversed());
      assert.ok(read.ok);
      if (read.ok) assert.is(Buffer.compare(Buffer.from(read.value), Buffer.from(archive)), 0);
    }),
    { numRuns: 15 },
  );
});

test('a missing chunk waits; a changed, doubled or mixed one does not pass', () => {
  const archive = new Uint8Array(300_000).fill(7);
  const chunks = chunkPayload('payload', chunkTarget, archive);
  assert.is(chunks.length, 3);
  const reasonOf = (list: typeof chunks): string => {
    const read = joinChunks(chunkTarget.digest, list);
    return read.ok ? 'ok' : (read.problems[0]?.reason ?? '');
  };
  assert.is(reasonOf([]), 'PayloadIncomplete');
  assert.is(reasonOf(chunks.slice(1)), 'PayloadIncomplete');
  const [first, ...rest] = chunks;
  assert.ok(first);
  assert.is(reasonOf([{ ...first, binaryData: { payload: 'AAAA' } }, ...rest]), 'PayloadIntegrity');
  assert.is(reasonOf([...chunks, first]), 'PayloadIntegrity');
  const other = chunkPayload('payload', chunkTarget, new Uint8Array(300_000).fill(8));
  assert.is(reasonOf([first, ...other.slice(1)]), 'PayloadIncomplete');
  const foreign = chunkPayload('payload', { ...chunkTarget, digest: sha('b') }, archive);
  assert.is(reasonOf([...foreign, ...chunks]), 'ok');
  const huge = {
    ...first,
    metadata: { ...first.metadata, annotations: { ...first.metadata.annotations, [annotations.chunk]: '0/4000' } },
  };
  assert.is(reasonOf([huge]), 'PayloadIntegrity');
});

test('a signature holds for its digest and its key alone', () => {
  const [a, b] = [generateKeyPair(), generateKeyPair()];
  const { trust, problems } = readTrust({ a: a.publicKey, b: b.publicKey });
  assert.equal(problems, []);
  const signed = signDigest(sha('1'), a.privateKey);
  assert.equal(verifySignature(sha('1'), signed, trust), { kind: 'valid', keyId: a.keyId });
  assert.is(verifySignature(sha('2'), signed, trust).kind, 'invalid');
  assert.is(verifySignature(sha('1'), { ...signed, keyId: b.keyId }, trust).kind, 'invalid');
  assert.is(verifySignature(sha('1'), undefined, trust).kind, 'unsigned');
  const onlyB = readTrust({ b: b.publicKey }).trust;
  assert.equal(verifySignature(sha('1'), signed, onlyB), { kind: 'unknownKey', keyId: a.keyId, trusted: [b.keyId] });
});

test('a trust set takes public ed25519 keys only and names what it leaves out', () => {
  const key = generateKeyPair();
  const { trust, problems } = readTrust({ bad: 'nonsense', good: key.publicKey, private: key.privateKey });
  assert.equal([...trust.keys()], [key.keyId]);
  assert.equal(
    problems.map((p) => [p.reason, p.path]),
    [
      ['TrustKeyInvalid', 'bad'],
      ['TrustKeyInvalid', 'private'],
    ],
  );
});

test.run();
