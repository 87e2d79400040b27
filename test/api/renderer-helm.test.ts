/** Rendering with the real Helm: offline, hooks, determinism, kubeVersion; charts and images from a real registry. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { getAt, type JsonObject } from '../../constructs/lib/json.ts';
import { createChartCache } from '../../renderer/charts/cache.ts';
import { chartImageRepositories } from '../../renderer/charts/features.ts';
import { loadChart } from '../../renderer/charts/load.ts';
import type { ChartRequest, Checked } from '../../renderer/charts/types.ts';
import { createProofStore, renderDeterministic } from '../../renderer/helm/determinism.ts';
import { type Helm, openHelm } from '../../renderer/helm/open.ts';
import type { RenderInput } from '../../renderer/helm/types.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { imagesToLock, pinImages } from '../../renderer/images/pin.ts';
import { resolveImages } from '../../renderer/images/resolve.ts';
import { filterHooks } from '../../renderer/network/hooks.ts';
import { toChartObject } from '../../renderer/network/object.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import { type ChartVariant, chartArchive, chartFiles, hookTemplate } from '../standins/chart.ts';
import { startCrane } from '../standins/crane.ts';
import { type StandInServer, startServer } from '../standins/httpserver.ts';
import { kubeVersionCases } from '../standins/kubeversions.ts';
import { pushArtifact, pushBlob } from '../standins/push.ts';
import { ensureTool } from '../tools/tools.ts';

interface Context {
  folder: string;
  /** Where Helm's kubeconfig points. */
  trap: StandInServer;
  helm: Helm;
}

const test = suite<Context>('renderer-helm');

test.before(async (context) => {
  context.folder = await mkdtemp(join(tmpdir(), 'keelson-render-'));
  context.trap = await startServer((_, response) => response.end('{}'));
  const program = await ensureTool('helm', { onProgress: (line) => console.error(line) });
  context.helm = value(
    await openHelm({ program, version: '3.19.2', tempFolder: context.folder, apiServer: context.trap.url }),
  );
});

test.after(async (context) => {
  await context.trap.close();
  await rm(context.folder, { recursive: true });
});

function value<T>(outcome: Checked<T>): T {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value;
}

function inputOf(
  variant: ChartVariant = {},
  more: Partial<RenderInput> & { without?: readonly string[] } = {},
): RenderInput {
  const { without = [], ...rest } = more;
  const files = chartFiles(variant).map((file) => ({ path: file.path.slice('kube-ovn/'.length), bytes: file.bytes }));
  const digest = sha256Digest(JSON.stringify(files.map((file) => [file.path, sha256Digest(file.bytes)])));
  return {
    chart: { name: 'kube-ovn', digest, files, without },
    values: {},
    releaseName: 'ovn',
    namespace: 'kube-system',
    kubernetesVersion: '1.34.2',
    ...rest,
  };
}

const none = (context: Context) => ({
  proofs: createProofStore([], join(context.folder, 'proofs', crypto.randomUUID())),
  clock: systemClock,
});

function named(objects: readonly JsonObject[], name: string): JsonObject {
  const found = objects.find((object) => getAt(object, '/metadata/name') === name);
  if (found === undefined) throw new Error(`no object ${name}`);
  return found;
}

test('an object with a hook that Helm does not know is not lost without a word', async (context) => {
  const outcome = await context.helm.render(
    inputOf({ files: { 'templates/odd.yaml': hookTemplate('post-delete,pre-flight') } }),
    0,
  );
  assert.is(outcome.ok, false);
  assert.equal(outcome.ok ? [] : outcome.problems.map(({ reason, value: words }) => [reason, words]), [
    ['HelmHookRefused', 'post-delete,pre-flight'],
  ]);
});

test('names, values and the Kubernetes version reach the templates; lookups find nothing and nothing is contacted', async (context) => {
  const input = inputOf(
    {},
    { values: { namespace: 'net', MASTER_NODES: '10.0.0.1,10.0.0.2,10.0.0.3' }, namespace: 'net' },
  );
  const { objects } = value(await renderDeterministic(context.helm, input, none(context)));
  const central = named(objects, 'ovn-central');
  assert.is(getAt(central, '/spec/replicas'), 3);
  assert.equal(getAt(central, '/metadata/annotations'), { release: 'ovn/net', kube: 'v1.34.2', nodes: '0' });
  assert.is(getAt(central, '/spec/template/spec/containers/0/env/0/value'), '10.0.0.1,10.0.0.2,10.0.0.3');
  assert.is(context.trap.connections(), 0);
  assert.equal(
    (await readdir(context.folder)).filter((name) => name.startsWith('keelson-helm-')),
    [],
  );
});

test('the TLS template makes keys at random unless it is left out, and that is recorded', async (context) => {
  const values = { networking: { ENABLE_SSL: true } };
  const random = await renderDeterministic(context.helm, inputOf({}, { values }), none(context));
  assert.is(random.ok, false);
  if (!random.ok)
    assert.equal(
      random.problems.map((problem) => [problem.reason, problem.object, problem.path]),
      [['HelmNotDeterministic', 'Secret kube-system/kube-ovn-tls', '/data/cacert']],
    );
  const without = ['templates/ovn-tls-secret.yaml'];
  const fixed = value(await renderDeterministic(context.helm, inputOf({}, { values, without }), none(context)));
  assert.equal(fixed.stripped, without);
  assert.not.ok(fixed.objects.some((object) => object.kind === 'Secret'));
  assert.is(context.trap.connections(), 0);
});

test('random text, times and even the date of today are found', async (context) => {
  const expressions = ['randAlphaNum 12', 'now | unixEpoch', 'now | date "2006-01-02"', 'uuidv4', 'now | htmlDate'];
  for (const expression of expressions) {
    const template = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seed}\ndata:\n  value: "{{ ${expression} }}"\n`;
    const outcome = await renderDeterministic(
      context.helm,
      inputOf({ files: { 'templates/seed.yaml': template } }),
      none(context),
    );
    assert.is(outcome.ok, false, expression);
    if (!outcome.ok)
      assert.equal(
        outcome.problems.map((problem) => problem.path),
        ['/data/value'],
        expression,
      );
  }
});

test('hooks of upgrade, delete and test are left out, an install hook is refused', async (context) => {
  for (const [hook, kept] of [
    ['pre-upgrade', true],
    ['post-delete,post-upgrade', true],
    ['test', true],
    ['post-install', false],
    ['pre-install,pre-upgrade', false],
  ] as const) {
    const input = inputOf({ files: { 'templates/hook.yaml': hookTemplate(hook) } });
    const { objects } = value(await renderDeterministic(context.helm, input, none(context)));
    const { problems, kept: left } = filterHooks(
      objects.map((object) => toChartObject(object)).filter((object) => object !== undefined),
    );
    assert.is(problems.length === 0, kept, hook);
    assert.not.ok(left.some((object) => object.kind === 'Job'));
  }
});

test('a template that fails, and one that renders no YAML, are told with their names', async (context) => {
  const failing = await context.helm.render(
    inputOf({ files: { 'templates/fail.yaml': '{{ fail "both endpoints are required" }}' } }),
    0,
  );
  assert.is(failing.ok, false);
  if (!failing.ok) assert.match(failing.problems[0]?.message ?? '', /fail\.yaml.*both endpoints are required/);
  const twice = await context.helm.render(
    inputOf({
      files: {
        'templates/twice.yaml':
          'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: "1"}\ndata: {b: "1"}\n',
      },
    }),
    0,
  );
  assert.is(twice.ok, false);
});

test('our reading of kubeVersion is that of Helm', async (context) => {
  for (const [kubernetesVersion, kubeVersion, expected] of kubeVersionCases) {
    const parses = kubernetesVersion !== 'one';
    const outcome = await context.helm.render(
      inputOf({ kubeVersion }, { kubernetesVersion: parses ? kubernetesVersion : 'x' }),
      0,
    );
    assert.is(outcome.ok, expected === true, `${kubernetesVersion} against ${kubeVersion}`);
  }
});

test('from a real registry to pinned objects', async (context) => {
  const { host, close } = await startCrane();
  const http = createHttpClient({
    allowedHosts: [host],
    allowField: 'spec.allow.chartHosts',
    clock: systemClock,
    random: Math.random,
  });
  try {
    const archive = await chartArchive();
    const layer = await pushBlob(host, 'charts/kube-ovn', archive);
    await pushArtifact(host, 'charts/kube-ovn', 'v1.16.2', {
      config: {},
      layers: [
        { mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', digest: layer, size: archive.length },
      ],
    });
    const config = { os: 'linux', architecture: 'amd64' };
    for (const name of ['kube-ovn', 'vpc-nat-gateway'])
      await pushArtifact(host, `kubeovn/${name}`, 'v1.16.2', { config, layers: [] });

    const registries = [{ match: 'registry.test', mirror: host }];
    const client = createRegistryClient({ http, credentials: anonymous, registries });
    const cache = createChartCache(join(context.folder, 'cache'), 1024 * 1024);
    const place = { file: 'network.yaml', path: 'spec.chart' };
    const places: ChartRequest['places'] = { source: place, digest: place, version: place, kubernetesVersion: place };
    const source = `oci://${host}/charts/kube-ovn:v1.16.2`;
    const request = { source, digest: layer, version: 'v1.16.2', kubernetesVersion: '1.34.2', places };
    const chart = value(await loadChart(request, { http, registry: client, cache, allowedHosts: [host] }));
    const input = inputOf({}, { chart: { name: 'kube-ovn', digest: chart.digest, files: chart.files, without: [] } });
    const { objects } = value(await renderDeterministic(context.helm, input, none(context)));

    const search = { repositories: chartImageRepositories(chart.values), imageHosts: [] };
    const texts = imagesToLock(objects, search);
    assert.equal(texts, ['registry.test/kubeovn/kube-ovn:v1.16.2', 'registry.test/kubeovn/vpc-nat-gateway:v1.16.2']);
    const { images, problems } = await resolveImages(texts, client);
    assert.equal(problems, []);
    assert.equal(
      images.map((image) => image.platforms),
      [['linux/amd64'], ['linux/amd64']],
    );
    const pinned = pinImages(objects, { ...search, images, registries });
    assert.equal(pinned.problems, []);
    assert.is(
      getAt(named(pinned.objects, 'ovn-vpc-nat-config'), '/data/image'),
      `${host}/kubeovn/vpc-nat-gateway@${images[1]?.digest}`,
    );
    assert.is(
      getAt(named(pinned.objects, 'ovn-central'), '/spec/template/spec/containers/0/image'),
      `${host}/kubeovn/kube-ovn@${images[0]?.digest}`,
    );
  } finally {
    http.close();
    await close();
  }
});

test.run();
