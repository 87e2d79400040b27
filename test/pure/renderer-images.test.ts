import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { LockedImage } from '../../constructs/api/lock.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { getAt, type JsonObject } from '../../constructs/lib/json.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { findImages, type ImageSearch } from '../../renderer/images/find.ts';
import { imagesToLock, type PinOptions, pinImage, pinImages } from '../../renderer/images/pin.ts';
import { hostsForImages, resolveImages } from '../../renderer/images/resolve.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import { imageIndexType, imageManifestType, putImage } from '../standins/artifacts.ts';
import { startRegistry } from '../standins/registry.ts';

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;
const locked = (ref: string, digit: string): LockedImage => ({
  ref,
  digest: digest(digit),
  mediaType: imageIndexType,
  platforms: ['linux/amd64'],
});

const workload: JsonObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name: 'kube-ovn-controller',
    namespace: 'kube-system',
    annotations: { note: 'docker.io/kubeovn/kube-ovn:v1' },
  },
  spec: {
    template: {
      spec: {
        initContainers: [{ name: 'init', image: 'kubeovn/kube-ovn:v1' }],
        containers: [
          {
            name: 'main',
            image: 'docker.io/kubeovn/kube-ovn:v1',
            args: [
              '--image=docker.io/kubeovn/kube-ovn:v1',
              '--other',
              'docker.io/kubeovn/kube-ovn:v1',
              '--upstream=kube-ovn:8080',
              '--x=docker.io/foreign/thing:v1',
            ],
            env: [
              { name: 'HELPER', value: 'docker.io/kubeovn/vpc-nat-gateway:v1' },
              { name: 'NAME', value: 'kube-ovn' },
            ],
          },
          { name: 'pinned', image: `quay.test/a/b:v3@${digest('9')}` },
        ],
        ephemeralContainers: [{ name: 'debug', image: 'busybox' }],
        volumes: [{ name: 'model', image: { reference: 'quay.test/models/m:1' } }],
      },
    },
  },
};
const config: JsonObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'ovn-vpc-nat-config', namespace: 'kube-system' },
  data: {
    image: 'docker.io/kubeovn/vpc-nat-gateway:v1\n',
    script:
      'docker run ghcr.test/tools/run:2.1. See ghcr.test/docs/page and https://ghcr.test/x/y:1\nFROM ghcr.test:5000/other:1\n',
    'busybox:80': 'busybox:80',
  },
};
const definition: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'x.test' },
  spec: {
    versions: [{ schema: { description: 'such as ghcr.test/tools/run:2.1', default: 'ghcr.test/tools/run:2.1' } }],
  },
};
const objects = [workload, config, definition];
const search: ImageSearch = { repositories: ['docker.io/kubeovn/vpc-nat-gateway'], imageHosts: ['ghcr.test'] };
const images = [
  locked('docker.io/kubeovn/kube-ovn:v1', '1'),
  locked('kubeovn/vpc-nat-gateway:v1', '2'),
  locked('busybox:latest', '3'),
  locked('quay.test/models/m:1', '4'),
  locked('ghcr.test/tools/run:2.1', '5'),
];
const options: PinOptions = {
  ...search,
  images,
  registries: [{ match: 'docker.io/kubeovn', mirror: 'm.test:5000/hub' }],
};

const main = '/spec/template/spec/containers/0';
const kubeOvn = `m.test:5000/hub/kube-ovn@${digest('1')}`;
const gateway = `m.test:5000/hub/vpc-nat-gateway@${digest('2')}`;
const run = `ghcr.test/tools/run@${digest('5')}`;

test('the four rules find fields, text of known repositories and allowed hosts, and nothing else', () => {
  const found = findImages(objects, search).map((use) => `${use.rule} ${use.index}${use.pointer} ${use.text}`);
  assert.equal(
    found.sort(),
    [
      'field 0/spec/template/spec/initContainers/0/image kubeovn/kube-ovn:v1',
      `field 0${main}/image docker.io/kubeovn/kube-ovn:v1`,
      `field 0/spec/template/spec/containers/1/image quay.test/a/b:v3@${digest('9')}`,
      'field 0/spec/template/spec/ephemeralContainers/0/image busybox',
      'field 0/spec/template/spec/volumes/0/image/reference quay.test/models/m:1',
      'repository 0/metadata/annotations/note docker.io/kubeovn/kube-ovn:v1',
      `repository 0${main}/args/0 docker.io/kubeovn/kube-ovn:v1`,
      `repository 0${main}/args/2 docker.io/kubeovn/kube-ovn:v1`,
      `repository 0${main}/env/0/value docker.io/kubeovn/vpc-nat-gateway:v1`,
      'repository 1/data/image docker.io/kubeovn/vpc-nat-gateway:v1',
      'host 1/data/script ghcr.test/tools/run:2.1',
      'host 2/spec/versions/0/schema/default ghcr.test/tools/run:2.1',
    ].sort(),
  );
});

test('every reference becomes name@sha256 through the mirrors; the rest of the text stays', () => {
  const before = structuredClone(objects);
  const pinned = pinImages(objects, options);
  assert.equal(pinned.problems, []);
  assert.equal(objects, before);
  const [deployment = {}, configMap = {}, crd = {}] = pinned.objects;
  assert.is(getAt(deployment, `${main}/image`), kubeOvn);
  assert.is(getAt(deployment, '/spec/template/spec/initContainers/0/image'), kubeOvn);
  assert.is(getAt(deployment, '/spec/template/spec/containers/1/image'), `quay.test/a/b@${digest('9')}`);
  assert.is(
    getAt(deployment, '/spec/template/spec/ephemeralContainers/0/image'),
    `docker.io/library/busybox@${digest('3')}`,
  );
  assert.is(getAt(deployment, '/spec/template/spec/volumes/0/image/reference'), `quay.test/models/m@${digest('4')}`);
  assert.equal(getAt(deployment, `${main}/args`), [
    `--image=${kubeOvn}`,
    '--other',
    kubeOvn,
    '--upstream=kube-ovn:8080',
    '--x=docker.io/foreign/thing:v1',
  ]);
  assert.is(getAt(deployment, `${main}/env/0/value`), gateway);
  assert.equal(getAt(configMap, '/data'), {
    image: `${gateway}\n`,
    script: `docker run ${run}. See ghcr.test/docs/page and https://ghcr.test/x/y:1\nFROM ghcr.test:5000/other:1\n`,
    'busybox:80': 'busybox:80',
  });
  assert.is(getAt(crd, '/spec/versions/0/schema/default'), run);
  assert.is(getAt(crd, '/spec/versions/0/schema/description'), 'such as ghcr.test/tools/run:2.1');
  assert.equal(
    pinImages(pinned.objects, { ...options, images: [], repositories: ['m.test:5000/hub/vpc-nat-gateway'] }),
    { objects: pinned.objects, problems: [] },
  );
});

test('a tag without a lock entry is told with object and pointer in fields, args, env and ConfigMaps', () => {
  const { problems } = pinImages(objects, { ...options, images: [] });
  assert.ok(
    problems.every(
      (problem) => problem.reason === 'ImageNotLocked' && problem.remedy !== undefined && problem.value !== undefined,
    ),
  );
  const where = problems.map((problem) => `${problem.object} ${problem.path}`);
  for (const expected of [
    `Deployment.apps kube-system/kube-ovn-controller ${main}/image`,
    `Deployment.apps kube-system/kube-ovn-controller ${main}/args/0`,
    `Deployment.apps kube-system/kube-ovn-controller ${main}/args/2`,
    `Deployment.apps kube-system/kube-ovn-controller ${main}/env/0/value`,
    'Deployment.apps kube-system/kube-ovn-controller /spec/template/spec/ephemeralContainers/0/image',
    'ConfigMap kube-system/ovn-vpc-nat-config /data/image',
    'ConfigMap kube-system/ovn-vpc-nat-config /data/script',
  ])
    assert.ok(where.includes(expected), expected);
  assert.is(problems.length, 11);
});

test('a field that is no reference is told', () => {
  for (const image of ['', 'UPPER/case:1', 'a b', 'x:y:z', '{{ .image }}']) {
    const pod: JsonObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image }] },
    };
    const { problems } = pinImages([pod], options);
    assert.equal(
      problems.map((problem) => problem.reason),
      ['ImageInvalid'],
      image,
    );
  }
});

test('several mentions in one text are all replaced', () => {
  const text: JsonObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'c' },
    data: { a: 'ghcr.test/tools/run:2.1,ghcr.test/tools/run:2.1 (ghcr.test/tools/run:2.1)' },
  };
  const {
    objects: [out = {}],
  } = pinImages([text], options);
  assert.is(getAt(out, '/data/a'), `${run},${run} (${run})`);
});

test('what a lock has to resolve: one spelling of each image, pinned ones left out', () => {
  assert.equal(imagesToLock(objects, search), [
    'busybox',
    'docker.io/kubeovn/kube-ovn:v1',
    'docker.io/kubeovn/vpc-nat-gateway:v1',
    'ghcr.test/tools/run:2.1',
    'quay.test/models/m:1',
  ]);
  assert.equal(hostsForImages(imagesToLock(objects, search), options.registries), [
    'auth.docker.io',
    'ghcr.test',
    'm.test:5000',
    'quay.test',
    'registry-1.docker.io',
  ]);
});

test('a single reference of a specification', () => {
  const place = { file: 'cluster.yaml', path: 'spec.images.executor' };
  assert.equal(pinImage('kubeovn/kube-ovn:v1', options, place), { ok: true, value: kubeOvn });
  assert.equal(pinImage(`kubeovn/kube-ovn@${digest('7')}`, options, place), {
    ok: true,
    value: `m.test:5000/hub/kube-ovn@${digest('7')}`,
  });
  for (const [text, reason] of [
    ['kubeovn/kube-ovn:v2', 'ImageNotLocked'],
    ['Not One', 'ImageInvalid'],
  ] as const) {
    const outcome = pinImage(text, options, place);
    if (outcome.ok) throw new Error('expected a problem');
    assert.equal(
      outcome.problems.map((problem) => [problem.reason, problem.file, problem.path]),
      [[reason, 'cluster.yaml', 'spec.images.executor']],
    );
  }
});

test('resolving: digest, media type and platforms of every image; failures beside successes', async () => {
  const registry = await startRegistry();
  const http = createHttpClient({
    allowedHosts: [registry.host],
    allowField: 'spec.allow.imageHosts',
    clock: systemClock,
    random: () => 0.5,
    retry: { attempts: 1 },
  });
  try {
    const index = putImage(registry, 'hub/kube-ovn', 'v1', ['linux/amd64', 'linux/arm64']);
    const single = putImage(registry, 'demo/one', 'latest', ['linux/amd64']);
    const client = createRegistryClient({
      http,
      credentials: anonymous,
      registries: [{ match: 'docker.io/kubeovn', mirror: `${registry.host}/hub` }],
    });
    const one = `${registry.host}/demo/one`;
    const texts = [
      'kubeovn/kube-ovn:v1',
      one,
      `${registry.host}/demo/absent:1`,
      'far.test/x:1',
      'NOT',
      one,
      ...Array.from({ length: 9 }, (_, n) => `${registry.host}/demo/gone:${n}`),
    ];
    const { images: entries, problems } = await resolveImages(texts, client);
    assert.equal(entries, [
      { ref: one, digest: single, mediaType: imageManifestType, platforms: ['linux/amd64'] },
      {
        ref: 'kubeovn/kube-ovn:v1',
        digest: index,
        mediaType: imageIndexType,
        platforms: ['linux/amd64', 'linux/arm64'],
      },
    ]);
    assert.is(problems.length, 12);
    assert.match(problems.find((problem) => problem.value === 'far.test/x:1')?.message ?? '', 'is not allowed');
    assert.match(problems.find((problem) => problem.value?.endsWith('absent:1'))?.message ?? '', '404');
    const again = pinImage(one, { images: entries, registries: [] }, {});
    assert.equal(again, { ok: true, value: `${one}@${single}` });
  } finally {
    http.close();
    await registry.close();
  }
});

test.run();
