import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { layoutAnnotations, layoutBlob, readLayout } from '../../renderer/oci/layout.ts';
import { imageIndexType, imageManifestType } from '../standins/artifacts.ts';
import { type Fault, type StandInRegistry, startRegistry } from '../standins/registry.ts';
import { type Copier, copier, digestsIn, layerOf, oddType, putWholeImage, rootOf, shelfOf } from './mirror-support.ts';
import { withFolder } from './renderer-oci-support.ts';

interface Bed {
  readonly from: StandInRegistry;
  readonly to: StandInRegistry;
  readonly folder: string;
  readonly copy: Copier;
  readonly rules: { match: string; mirror: string }[];
}

/** Two registries with faults that a test may set, and a folder. */
async function bed(
  body: (bed: Bed) => Promise<void>,
  faults: { from?: Fault; to?: Fault } = {},
  signal?: AbortSignal,
): Promise<void> {
  await withFolder(async (folder) => {
    const from = await startRegistry(faults.from === undefined ? {} : { fault: faults.from });
    const to = await startRegistry(faults.to === undefined ? {} : { fault: faults.to });
    const copy = copier([from.host, to.host], folder, signal);
    try {
      await body({ from, to, folder, copy, rules: [{ match: from.host, mirror: `${to.host}/m` }] });
    } finally {
      copy.http.close();
      await from.close();
      await to.close();
    }
  });
}

const shared = layerOf('shared', 40_000);
const gets = (registry: StandInRegistry, what: string, method = 'GET'): string[] =>
  registry.requests.filter((r) => r.method === method && r.path.includes(`/${what}/`)).map((r) => r.path);

test('an image is copied whole: platforms, attestation, tag, and a second run sends nothing', () =>
  bed(async ({ from, to, copy, rules }) => {
    const one = await putWholeImage(shelfOf(from, 'a/one'), 'v1', [shared]);
    const two = await putWholeImage(shelfOf(from, 'a/two'), 'v2', [shared]);
    const roots = [rootOf(from.host, 'a/one', 'v1', one), rootOf(from.host, 'a/two', 'v2', two)];
    const first = await copy.toRegistry(roots, rules);
    assert.equal(first.problems, []);
    assert.is(first.done.length, 2);
    assert.equal(digestsIn(to, 'm/a/one'), digestsIn(from, 'a/one'));
    assert.equal(digestsIn(to, 'm/a/two'), digestsIn(from, 'a/two'));
    const tagged = await fetch(`${to.url}/v2/m/a/one/manifests/v1`);
    assert.is(sha256Digest(Buffer.from(await tagged.arrayBuffer())), one);
    assert.is(tagged.headers.get('content-type'), imageIndexType);
    // The layer that both share was sent once, and taken over by the other repository.
    const uploads = gets(to, 'blobs/uploads', 'PUT').filter((path) =>
      path.includes(encodeURIComponent(sha256Digest(shared))),
    );
    assert.is(uploads.length, 1);
    const before = { puts: gets(to, 'v2', 'PUT').length, blobs: gets(from, 'blobs').length };
    const again = await copy.toRegistry(roots, rules);
    assert.is(again.done.length, 2);
    assert.is(again.progress.bytes.copied, 0);
    assert.is(again.progress.bytes.present, first.progress.bytes.total);
    assert.equal({ puts: gets(to, 'v2', 'PUT').length, blobs: gets(from, 'blobs').length }, before);
  }));

test('content of unknown types is copied as it is, as a manifest or as a blob', () =>
  bed(async ({ from, to, copy, rules }) => {
    const shelf = shelfOf(from, 'a/odd');
    const blob = Buffer.from('a blob of an unknown type');
    const odd = await shelf.manifest(undefined, oddType, { mediaType: oddType, anything: ['goes'] });
    const top = await shelf.manifest('v1', imageIndexType, {
      schemaVersion: 2,
      mediaType: imageIndexType,
      manifests: [
        { mediaType: oddType, digest: odd, size: 1 },
        { mediaType: 'text/plain', digest: await shelf.blob(blob), size: blob.length },
      ],
    });
    const { done, problems } = await copy.toRegistry([rootOf(from.host, 'a/odd', 'v1', top)], rules);
    assert.equal([done.length, problems], [1, []]);
    const copied = await fetch(`${to.url}/v2/m/a/odd/manifests/${odd}`);
    assert.is(copied.headers.get('content-type'), oddType);
    assert.is(sha256Digest(Buffer.from(await copied.arrayBuffer())), odd);
    assert.equal(digestsIn(to, 'm/a/odd'), [sha256Digest(blob)]);
  }));

test('everything that is missing is told at once, and keeps nothing else back', () => {
  const gone = new Set<string>();
  const fault: Fault = (request, response) => {
    if (![...gone].some((text) => request.path.includes(text))) return false;
    response.writeHead(404);
    response.end();
    return true;
  };
  return bed(
    async ({ from, to, copy, rules }) => {
      const whole = await putWholeImage(shelfOf(from, 'a/whole'), 'v1', [shared]);
      const torn = await putWholeImage(shelfOf(from, 'a/torn'), 'v1', [layerOf('torn one'), layerOf('torn two')]);
      for (const seed of ['torn one', 'torn two']) gone.add(sha256Digest(layerOf(seed)));
      const result = await copy.toRegistry(
        [
          rootOf(from.host, 'a/whole', 'v1', whole),
          rootOf(from.host, 'a/torn', 'v1', torn),
          rootOf(from.host, 'a/none', 'v1', sha256Digest('none')),
        ],
        rules,
      );
      assert.equal(
        result.done.map(({ to: ref }) => ref.repository),
        ['m/a/whole'],
      );
      assert.is(result.problems.length, 3, JSON.stringify(result.problems));
      assert.ok(result.problems.every(({ reason }) => reason === 'MirrorContentMissing'));
      // A name leads to nothing before all of it is there.
      assert.is((await fetch(`${to.url}/v2/m/a/torn/manifests/v1`)).status, 404);
    },
    { from: fault },
  );
});

test('other bytes than a digest names never arrive, whoever sends them', () => {
  let evil = '';
  const fault: Fault = (request, response) => {
    if (evil === '' || !request.path.endsWith(`/blobs/${evil}`)) return false;
    response.writeHead(200, { 'content-length': String(shared.length) });
    response.end(Buffer.alloc(shared.length, 'evil'));
    return true;
  };
  return bed(
    async ({ from, to, copy, rules, folder }) => {
      const one = await putWholeImage(shelfOf(from, 'a/one'), 'v1', [shared]);
      evil = sha256Digest(shared);
      const roots = [rootOf(from.host, 'a/one', 'v1', one)];
      const layout = join(folder, 'layout');
      for (const result of [await copy.toRegistry(roots, rules), await copy.toLayout(roots, layout)]) {
        assert.equal(result.done, []);
        assert.match(result.problems[0]?.message ?? '', /the blob received is sha256:/);
      }
      assert.not.ok(digestsIn(to, 'm/a/one').includes(evil));
      assert.not.ok(readdirSync(join(layout, 'blobs/sha256')).includes(evil.slice(7)));
      evil = '';
      assert.is((await copy.toRegistry(roots, rules)).done.length, 1);
    },
    { from: fault },
  );
});

test('cut connections, 429 with Retry-After, 500 and lost answers are tried again, within limits', () => {
  const seen = new Map<string, number>();
  /** Counts how often a request of this kind came, by path. */
  const nth = (method: string, path: string): number => {
    const key = `${method} ${path.replace(/uploads\/.*digest=/, 'uploads/')}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return seen.get(key) ?? 0;
  };
  const from: Fault = (request, response) => {
    const n = nth(request.method, request.path);
    if (!request.path.includes('/blobs/') || n > 2) return false;
    if (n === 1) response.writeHead(429, { 'retry-after': '1' }).end();
    else {
      response.writeHead(200, { 'content-length': '1000000' });
      response.write('half');
      response.destroy();
    }
    return true;
  };
  const to: Fault = (request, response) => {
    const n = nth(request.method, request.path);
    if (request.method !== 'PUT' || n > 1) return false;
    // The connection goes in the middle of an upload, or the server gives up on a manifest.
    if (request.path.includes('/blobs/')) response.destroy();
    else response.writeHead(503).end();
    return true;
  };
  return bed(
    async ({ from: source, to: target, copy, rules }) => {
      const one = await putWholeImage(shelfOf(source, 'a/one'), 'v1', [shared]);
      const result = await copy.toRegistry([rootOf(source.host, 'a/one', 'v1', one)], rules);
      assert.equal(result.problems, []);
      assert.equal(digestsIn(target, 'm/a/one'), digestsIn(source, 'a/one'));
      // What an attempt received before it failed is not counted twice.
      assert.is(result.progress.bytes.copied, result.progress.bytes.total);
    },
    { from, to },
  );
});

test('a registry that only ever refuses is given up, and told', () => {
  const fault: Fault = (request, response) => {
    if (request.method !== 'PUT') return false;
    response.writeHead(507, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ errors: [{ code: 'DENIED', message: 'quota of m is used up' }] }));
    return true;
  };
  return bed(
    async ({ from, to, copy, rules }) => {
      const one = await putWholeImage(shelfOf(from, 'a/one'), 'v1', []);
      const { problems } = await copy.toRegistry([rootOf(from.host, 'a/one', 'v1', one)], rules);
      assert.match(problems[0]?.message ?? '', /answered 507 \(DENIED quota of m is used up\)/);
      const puts = gets(to, 'blobs/uploads', 'PUT').filter((p) =>
        p.includes(encodeURIComponent(digestsIn(from, 'a/one')[0] ?? '-')),
      );
      assert.is(puts.length, 4);
    },
    { to: fault },
  );
});

test('a registry that is gone is given up after a few requests, and one answer takes that back', () => {
  let gone = true;
  const fault: Fault = (_request, response) => {
    if (gone) response.writeHead(503).end();
    return gone;
  };
  return bed(
    async ({ from, to, copy, rules }) => {
      const layers = Array.from({ length: 12 }, (_, n) => layerOf(`layer ${n}`));
      const one = await putWholeImage(shelfOf(from, 'a/one'), 'v1', layers);
      const roots = [rootOf(from.host, 'a/one', 'v1', one)];
      const { problems } = await copy.toRegistry(roots, rules);
      assert.ok(problems.length > 0 && problems.every(({ reason }) => reason === 'MirrorInterrupted'));
      // Three at a time, four attempts each, and not for each of the fifteen blobs.
      assert.ok(to.requests.length <= 20, `${to.requests.length} requests`);
      gone = false;
      assert.is((await copy.toRegistry(roots, rules)).done.length, 1);
    },
    { to: fault },
  );
});

test('a layout names what was asked for, is whole, and takes up what is damaged', () =>
  bed(async ({ from, copy, folder }) => {
    const one = await putWholeImage(shelfOf(from, 'a/one'), 'v1', [shared]);
    const two = await putWholeImage(shelfOf(from, 'a/two'), 'v2', [shared]);
    const layout = join(folder, 'layout');
    const root = rootOf(from.host, 'a/one', 'v1', one);
    for (const folderOf of [layout, join(from.host, 'none'), process.execPath])
      assert.is((await readLayout(folderOf)).kind, 'none', 'a file is no layout either');
    assert.is((await copy.toLayout([root], layout)).done.length, 1);
    assert.equal(JSON.parse(readFileSync(join(layout, 'oci-layout'), 'utf8')), { imageLayoutVersion: '1.0.0' });
    const names = async (): Promise<(string | undefined)[]> => {
      const read = await readLayout(layout);
      return read.kind === 'read' ? read.entries.map((e) => e.annotations?.[layoutAnnotations.name]) : [read.kind];
    };
    assert.equal(await names(), [`${from.host}/a/one:v1`]);
    for (const name of readdirSync(join(layout, 'blobs/sha256')))
      assert.is(sha256Digest(readFileSync(join(layout, 'blobs/sha256', name))), `sha256:${name}`);
    assert.equal(readdirSync(layout).sort(), ['blobs', 'index.json', 'oci-layout']);

    // One blob was cut, one has other bytes, one is gone: all of them come back, and nothing else is fetched.
    const [cut, wrong, lost] = digestsIn(from, 'a/one');
    for (const digest of [cut, wrong, lost]) assert.ok(digest);
    const file = (digest: string | undefined): string => layoutBlob(layout, digest as `sha256:${string}`);
    writeFileSync(file(cut), readFileSync(file(cut)).subarray(1));
    writeFileSync(file(wrong), Buffer.alloc(readFileSync(file(wrong)).length));
    rmSync(file(lost));
    const before = gets(from, 'blobs').length;
    await copy.toLayout([root, rootOf(from.host, 'a/two', 'v2', two)], layout);
    const fetched = gets(from, 'blobs').slice(before);
    assert.is(fetched.filter((path) => path.includes('/a/one/')).length, 3, fetched.join());
    assert.equal(await names(), [`${from.host}/a/one:v1`, `${from.host}/a/two:v2`]);
    for (const digest of [cut, wrong, lost]) assert.is(sha256Digest(readFileSync(file(digest))), digest);
  }));

test('manifests that do not name their type keep it on the way through a layout', () =>
  bed(async ({ from, to, copy, folder, rules }) => {
    const shelf = shelfOf(from, 'a/plain');
    const config = Buffer.from('{"os":"linux","architecture":"amd64"}');
    const content = {
      schemaVersion: 2,
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        digest: await shelf.blob(config),
        size: config.length,
      },
      layers: [],
    };
    const digest = await shelf.manifest('amd64', imageManifestType, content);
    const top = await shelf.manifest('v1', imageIndexType, {
      schemaVersion: 2,
      manifests: [{ mediaType: imageManifestType, digest, size: JSON.stringify(content).length }],
    });
    const root = rootOf(from.host, 'a/plain', 'v1', top);
    const layout = join(folder, 'layout');
    await copy.toLayout([root], layout);
    const { problems, progress } = await copy.fromLayout(layout, [root], rules);
    assert.ok(progress.bytes.total > 0);
    assert.equal([progress.bytes.copied, progress.bytes.present], [progress.bytes.total, 0]);
    assert.equal(problems, []);
    const typeOf = async (name: string): Promise<string | null> =>
      (await fetch(`${to.url}/v2/m/a/plain/manifests/${name}`)).headers.get('content-type');
    assert.equal([await typeOf('v1'), await typeOf(digest)], [imageIndexType, imageManifestType]);
  }));

test('a run that is cancelled leaves a layout from which the next one goes on', async () => {
  const controller = new AbortController();
  let blobs = 0;
  const fault: Fault = (request, response) => {
    if (!request.path.includes('/blobs/') || ++blobs !== 4) return false;
    response.writeHead(200, { 'content-length': '100000' });
    response.write('the first bytes of many', () => controller.abort(new Error('stopped by SIGINT')));
    return true;
  };
  await bed(
    async ({ from, folder, copy }) => {
      const roots = [];
      for (const name of ['one', 'two', 'three']) {
        const digest = await putWholeImage(shelfOf(from, `a/${name}`), 'v1', [layerOf(name, 9_000)]);
        roots.push(rootOf(from.host, `a/${name}`, 'v1', digest));
      }
      const layout = join(folder, 'layout');
      const began = performance.now();
      try {
        await copy.toLayout(roots, layout);
        assert.unreachable('it was not cancelled');
      } catch (error) {
        assert.is((error as Error).message, 'stopped by SIGINT');
      }
      assert.ok(performance.now() - began < 1_500);
      assert.equal(readdirSync(layout).sort(), ['blobs', 'oci-layout']);
      assert.is((await readLayout(layout)).kind, 'none');
      const kept = readdirSync(join(layout, 'blobs/sha256')).length;
      const next = copier([from.host], folder);
      const result = await next.toLayout(roots, layout);
      next.http.close();
      assert.is(result.done.length, 3);
      assert.ok(kept > 0 && result.progress.bytes.present > 0, `${kept} blobs were kept`);
    },
    { from: fault },
    controller.signal,
  );
});

test.run();
