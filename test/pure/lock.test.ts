import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { validateDocument } from '../../constructs/api/validate.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import type { DomainRenderer } from '../../renderer/domain.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import { collectNeeds, type LockNeeds } from '../../renderer/lock/collect.ts';
import { type LockResult, makeLock, parseUpdate } from '../../renderer/lock/lock.ts';
import { copyExample } from './render-support.ts';

/** A domain that renders one object from a chart, and says so. */
const charted = (image: string): DomainRenderer => ({
  domain: 'network',
  kinds: [],
  async render() {
    const pod = { containers: [{ name: 'a', image, args: [`--sidecar=${image}`] }] };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'demo' }, spec: pod };
    return {
      releases: [
        {
          name: 'network-a',
          domain: 'network',
          phases: [{ name: 'a', dir: '10-a', gates: [], objects: [{ object, origin: 'chart a' }] }],
          installations: [],
          requires: [],
          spans: [],
          charts: [`sha256:${'c'.repeat(64)}`],
          filteredHooks: [],
        },
      ],
      problems: [],
      warnings: [],
    };
  },
});

const web = 'registry.example.com/demo/web:1.4';
const executor = 'registry.example.com/keelson/keelson:0.1.0';
const chartImage = 'docker.io/kubeovn/kube-ovn:v1';

const kinds = ['network.keelson.dev/KubeOVNInstallation'];

const networkYaml = (image: string): string => `apiVersion: network.keelson.dev/v1alpha1
kind: KubeOVNInstallation
metadata: {name: probed, namespace: kube-system}
spec:
  mode: full
  version: 1.16.13
  chart: {source: "oci://registry.example.com/charts/kube-ovn:v1.16.13", digest: "sha256:${'c'.repeat(64)}"}
  networkProbe: {image: "${image}"}
`;

/** What the example needs; with an image of the network probe where one is named. */
async function needs(probe?: string): Promise<LockNeeds> {
  const copy = copyExample();
  try {
    if (probe !== undefined) writeFileSync(join(copy.folder, 'network.yaml'), networkYaml(probe));
    const { source } = await readClusterFolder(copy.folder, 'clusters/example');
    const collected = await collectNeeds(source, () => [charted(probe ?? chartImage)], kinds);
    if (!collected.ok) throw new Error(JSON.stringify(collected.problems));
    return collected.needs;
  } finally {
    copy.dispose();
  }
}

async function lock(
  wanted: LockNeeds,
  update?: string,
): Promise<{ asked: readonly string[]; result: LockResult | undefined; problems: readonly { reason: string }[] }> {
  let asked: readonly string[] = [];
  const outcome = await makeLock(wanted, {
    update: parseUpdate(update),
    helm: '3.19.2',
    async resolve(texts) {
      asked = texts;
      const images = texts.map((ref) => ({
        ref,
        digest: `sha256:${'f'.repeat(64)}`,
        mediaType: 'application/vnd.oci.image.index.v1+json',
        platforms: ['linux/amd64'],
      }));
      return { images, problems: [] };
    },
  });
  return { asked, result: outcome.ok ? outcome.result : undefined, problems: outcome.ok ? [] : outcome.problems };
}

test('only what the lock does not hold is resolved; the rest stays as it is', async () => {
  const { asked, result } = await lock(await needs());
  assert.equal(asked, [chartImage]);
  const images = result?.lock.spec.images ?? [];
  assert.equal(
    images.map((i) => [i.ref, i.digest.slice(7, 9)]),
    [
      [chartImage, 'ff'],
      [web, '22'],
      [executor, '11'],
    ],
  );
  assert.equal(
    result?.changes.map((c) => [c.what, c.from === undefined]),
    [['image', true]],
  );
});

for (const [update, expected] of [
  ['executor', [chartImage, executor]],
  ['chart', [chartImage]],
  [web, [chartImage, web]],
  ['registry.example.com/demo/web', [chartImage, web]],
  ['web', [chartImage, web]],
] as const)
  test(`--update ${update} resolves ${expected.at(-1)} again`, async () => {
    assert.equal((await lock(await needs(), update)).asked, expected);
  });

test('the image of the network probe moves with the probes, and not with the chart', async () => {
  const probe = 'registry.example.com/keelson/network-probe:0.1.0';
  const wanted = await needs(probe);
  assert.equal((await lock(wanted)).asked, [probe], 'locked once, as anything else');
  const held = { ...wanted, loaded: { ...wanted.loaded, lock: (await lock(wanted)).result?.lock } };
  assert.equal((await lock(held, 'probe')).asked, [probe]);
  assert.equal(
    (await lock(held, 'chart')).problems.map(({ reason }) => reason),
    ['UnknownLockEntry'],
  );
});

test('an update of something that is not there is refused', async () => {
  for (const update of ['nothing', 'probe']) {
    const { result, problems, asked } = await lock(await needs(), update);
    assert.equal([result, asked, problems.map((p) => p.reason)], [undefined, [], ['UnknownLockEntry']]);
  }
});

test('the file is valid, says the same twice, and loses what is no longer used', async () => {
  const wanted = await needs();
  const first = await lock(wanted);
  const value = parseYaml(Buffer.from(first.result?.bytes ?? '').toString(), 'lock').documents[0]?.value as JsonObject;
  const read = validateDocument(value, { file: 'keelson.lock.yaml' });
  assert.ok(read.ok, JSON.stringify(read));
  const again = await lock({ ...wanted, images: [...wanted.images].reverse() });
  assert.equal(again.result?.bytes, first.result?.bytes);
  const fewer = await lock({ ...wanted, images: [executor] });
  assert.equal(
    fewer.result?.lock.spec.images.map((i) => i.ref),
    [executor],
  );
  assert.ok(fewer.result?.changes.some((c) => c.name === web && c.to === undefined));
});

test('problems of the registry leave no lock', async () => {
  const problems = [{ reason: 'ImageUnresolved', message: 'no such tag', remedy: 'correct it' }];
  const outcome = await makeLock(await needs(), {
    update: parseUpdate(undefined),
    helm: undefined,
    resolve: async () => ({ images: [], problems }),
  });
  assert.ok(!outcome.ok && outcome.problems[0]?.reason === 'ImageUnresolved');
});

test.run();
