import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { parse, stringify } from 'yaml';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { acquireChart } from '../../renderer/charts/acquire.ts';
import { createChartCache } from '../../renderer/charts/cache.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import { type LoadedCluster, loadCluster } from '../../renderer/load/load.ts';
import { withArchives } from '../../renderer/mirror/archive.ts';
import { closureOf } from '../../renderer/mirror/closure.ts';
import { copyAll } from '../../renderer/mirror/copy.ts';
import { layoutRoots } from '../../renderer/mirror/layoutroots.ts';
import { layoutSource } from '../../renderer/mirror/layouts.ts';
import { planMirror, registryPlace } from '../../renderer/mirror/plan.ts';
import { registrySource, registryTarget } from '../../renderer/mirror/registries.ts';
import { anonymous } from '../../renderer/oci/credentials.ts';
import { pullSecretsOf, unmirrored } from '../../renderer/oci/mirrors.ts';
import { formatReference, parseReference } from '../../renderer/oci/reference.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import { openSession } from '../../renderer/oci/session.ts';
import { putChart } from '../standins/artifacts.ts';
import { startServer } from '../standins/httpserver.ts';
import { startRegistry } from '../standins/registry.ts';
import { copier } from './mirror-support.ts';
import { type Copy, renderFolder, using } from './render-support.ts';
import { withFolder } from './renderer-oci-support.ts';

const root = (text: string) => {
  const ref = parseReference(text);
  if (ref === undefined) throw new Error(text);
  return { ref };
};

test('everything goes where the mirror rules lead, and what no rule covers is told with the rule to add', () => {
  const roots = ['kubeovn/kube-ovn:v1', 'quay.test/a/b:2', 'ghcr.test/c/d:3', 'reg.test:5000/own/e:4'].map(root);
  const rules = [
    { match: 'docker.io/kubeovn', mirror: 'oci://reg.test:5000/hub/' },
    { match: 'quay.test', mirror: 'other.test/quay' },
  ];
  const shown = (jobs: readonly { to: Parameters<typeof formatReference>[0] }[]) =>
    jobs.map(({ to }) => formatReference(to));
  const to = planMirror(roots, rules, 'reg.test:5000', 'cluster.yaml');
  assert.equal(shown(to.jobs), ['reg.test:5000/hub/kube-ovn:v1', 'reg.test:5000/own/e:4']);
  assert.equal(shown(to.elsewhere), ['other.test/quay/a/b:2']);
  assert.equal(
    to.problems.map((p) => [p.reason, p.value, p.remedy]),
    [
      [
        'MirrorRuleMissing',
        'ghcr.test/c/d:3',
        'add {match: ghcr.test, mirror: reg.test:5000/ghcr.test} to spec.registries',
      ],
    ],
  );
  const all = planMirror(roots, rules, undefined, 'cluster.yaml');
  assert.equal([all.jobs.length, all.elsewhere.length, all.problems.length], [2, 0, 2]);
  const bad = planMirror(roots.slice(1, 2), [{ match: 'quay.test', mirror: 'Not A Host' }], undefined, 'cluster.yaml');
  assert.is(bad.problems[0]?.reason, 'MirrorNameInvalid');
  const missed = planMirror(roots.slice(0, 2), rules, 'typo.test', 'cluster.yaml');
  assert.equal(
    [missed.jobs.length, missed.problems.map((p) => [p.reason, p.value, p.message])],
    [
      0,
      [
        [
          'MirrorRuleMissing',
          'typo.test',
          'no mirror rule leads to that registry; they lead to other.test, reg.test:5000',
        ],
      ],
    ],
  );
});

test('a registry is a host, perhaps with a port and a path', () => {
  assert.equal(
    [
      'reg.test',
      'reg.test:5000/a/b/',
      'oci://127.0.0.1:1',
      '[::1]:2',
      'plain',
      'https://reg.test',
      'Reg/A',
      '',
      'reg.test/a:1',
    ].map(registryPlace),
    ['reg.test', 'reg.test:5000/a/b', '127.0.0.1:1', '[::1]:2', undefined, undefined, undefined, undefined, undefined],
  );
});

test('pull secrets are those of the rules that lead to an image, however the mirror is written', () => {
  const rules = [
    { match: 'docker.io', mirror: 'oci://reg.test/hub/', pullSecret: 'hub' },
    { match: 'quay.test', mirror: 'reg.test/hubris', pullSecret: 'hubris' },
    { match: 'gcr.test', mirror: 'reg.test' },
  ];
  assert.equal(pullSecretsOf('reg.test/hub/a/b@sha256:0', rules), ['hub']);
  assert.equal(pullSecretsOf('docker.io/a/b@sha256:0', rules), []);
  assert.equal(
    unmirrored(rules).map(({ match, mirror }) => [match, mirror]),
    rules.map(() => ['reg.test', 'reg.test']),
  );
});

test('pods that pull through a mirror and do not name its Secret are told of, and nothing is added to them', () =>
  using(async (copy) => {
    const cluster = copy.read('cluster.yaml');
    const rule = (more: string): string =>
      `${cluster}  registries: [{match: registry.example.com/demo, mirror: "oci://m.test/d/"${more}}]\n`;
    const warned = async (): Promise<string[]> => {
      const outcome = await renderFolder(copy.folder);
      if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
      const texts = [...outcome.rendered.tree].map(([, bytes]) => Buffer.from(bytes).toString());
      assert.ok(texts.some((text) => text.includes(`image: m.test/d/web@${digestOf('2')}`)));
      return outcome.rendered.warnings.map((w) => `${w.reason} ${w.object} ${w.path}`);
    };
    copy.write('cluster.yaml', rule(''));
    assert.equal(await warned(), []);
    copy.write('cluster.yaml', rule(', pullSecret: demo-pull'));
    assert.equal(await warned(), ['PullSecretUnnamed Deployment.apps demo/web spec.template.spec.imagePullSecrets']);
    const web = copy.read('manifests/demo/30-web/web.yaml');
    copy.write(
      'manifests/demo/30-web/web.yaml',
      web.replace(
        '      serviceAccountName: web\n',
        '      serviceAccountName: web\n      imagePullSecrets: [{name: demo-pull}]\n',
      ),
    );
    assert.equal(await warned(), []);
    copy.write('manifests/demo/30-web/web.yaml', web);
    const config = copy.read('manifests/demo/20-config/config.yaml');
    copy.write(
      'manifests/demo/20-config/config.yaml',
      config.replace('kind: ServiceAccount\n', 'kind: ServiceAccount\nimagePullSecrets: [{name: demo-pull}]\n'),
    );
    assert.equal(await warned(), []);
  }));

async function loaded(copy: Copy): Promise<LoadedCluster> {
  const { source } = await readClusterFolder(copy.folder, 'clusters/plain');
  const read = loadCluster(source, new Set());
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.loaded;
}

const digestOf = (n: string): string => `sha256:${n.repeat(64)}`;

test('the closure is what the lock names, and what specs pin themselves', () =>
  using(async (copy) => {
    copy.write(
      'manifests/demo/30-web/pinned.yaml',
      `apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: demo}\nspec:\n  containers:\n    - {name: p, image: "quay.test/p/q:9@${digestOf('3')}"}\n`,
    );
    const found = await closureOf(await loaded(copy), []);
    assert.ok(found.ok);
    if (!found.ok) return;
    assert.equal(
      found.closure.roots.map(({ ref }) => formatReference(ref)),
      [
        `quay.test/p/q@${digestOf('3')}`,
        `registry.example.com/demo/web:1.4@${digestOf('2')}`,
        `registry.example.com/keelson/keelson:0.1.0@${digestOf('1')}`,
      ],
    );
    copy.write(
      'manifests/demo/30-web/new.yaml',
      copy
        .read('manifests/demo/30-web/pinned.yaml')
        .replace(/@sha256:3+/, '')
        .replace('name: p,', 'name: other,'),
    );
    const unlocked = await closureOf(await loaded(copy), []);
    assert.equal(unlocked.ok ? [] : unlocked.problems.map((p) => [p.reason, p.value]), [
      ['ImageNotLocked', 'quay.test/p/q:9'],
    ]);
    copy.remove('keelson.lock.yaml');
    const without = await closureOf(await loaded(copy), []);
    assert.is(without.ok ? '' : without.problems[0]?.reason, 'LockMissing');
  }));

/** Charts as a lock names them: by tag, by digest alone, and at a URL. */
test('charts are mirrored by the digest of their archive, and come back by it from wherever rules lead', () =>
  withFolder(async (folder) => {
    const origin = await startRegistry();
    const mirror = await startRegistry();
    const [tagged, bare, archive] = ['tagged', 'bare', 'by URL'].map((text) => Buffer.from(`a chart ${text}`));
    if (tagged === undefined || bare === undefined || archive === undefined) throw new Error('no charts');
    const shop = await startServer((request, response) => {
      response.writeHead(request.path === '/charts/kube-ovn-v1.tgz' ? 200 : 404).end(archive);
    });
    const hosts = [origin.host, mirror.host, shop.host];
    const copy = copier(hosts, folder);
    try {
      putChart(origin, 'charts/one', 'v1', tagged);
      origin.putBlob('charts/two', bare);
      const entry = (source: string, bytes: Buffer) => ({
        source,
        digest: sha256Digest(bytes),
        name: 'kube-ovn',
        version: 'v1.15.0+2',
        appVersion: '1.15.0',
        size: bytes.length,
      });
      const charts = [
        entry(`oci://${origin.host}/charts/one:v1`, tagged),
        entry(`oci://${origin.host}/charts/two`, bare),
        entry(`${shop.url}/charts/kube-ovn-v1.tgz`, archive),
      ];
      const rules = [
        { match: origin.host, mirror: `${mirror.host}/o` },
        { match: shop.host, mirror: `${mirror.host}/s` },
      ];
      await using(async (cluster) => {
        const lock = parse(cluster.read('keelson.lock.yaml'));
        lock.spec.charts = charts;
        lock.spec.images = [];
        cluster.write('keelson.lock.yaml', stringify(lock));
        cluster.write(
          'cluster.yaml',
          cluster.read('cluster.yaml').replace('keelson:0.1.0', `keelson@${digestOf('1')}`),
        );
        cluster.remove('manifests/demo/30-web');
        const found = await closureOf(await loaded(cluster), []);
        if (!found.ok) throw new Error(JSON.stringify(found.problems));
        const { roots, made, urls } = found.closure;
        const wanted = roots.filter(({ chart }) => chart !== undefined);
        assert.is(wanted.length, 3);
        const plan = planMirror(wanted, rules, mirror.host, 'cluster.yaml');
        const session = openSession({ http: copy.http, credentials: anonymous });
        const run = {
          source: withArchives(registrySource(session), made, urls, copy.http),
          target: registryTarget(session, folder, {
            clock: systemClock,
            random: () => 0.5,
            retry: { attempts: 1, initialMs: 1, factor: 1, maxMs: 1, jitter: 0 },
          }),
          concurrency: 2,
          onProgress: () => undefined,
          onDone: () => undefined,
          signal: new AbortController().signal,
        };
        const result = await copyAll(plan.jobs, run);
        assert.equal(result.problems, []);
        // Helm finds them by its own convention.
        for (const path of [
          'o/charts/one/manifests/v1',
          'o/charts/two/manifests/v1.15.0_2',
          's/charts/kube-ovn-v1/manifests/v1.15.0_2',
        ])
          assert.is((await fetch(`${mirror.url}/v2/${path}`)).status, 200, path);

        // Into a layout and out of it again, with nothing but the layout.
        const layout = `${folder}/layout`;
        const toLayout = await copy.toLayout(
          wanted.filter(({ ref }) => ref.repository === 'charts/one'),
          layout,
        );
        assert.is(toLayout.done.length, 1);
        const back = await layoutRoots(layout, await loaded(cluster));
        assert.is(back.roots.length, 1);
        assert.is(back.missing.length, 2, JSON.stringify(back.missing));
        const again = planMirror(back.roots, [{ match: origin.host, mirror: `${mirror.host}/again` }], undefined, '');
        const fromLayout = await copyAll(again.jobs, { ...run, source: layoutSource(layout) });
        assert.equal([fromLayout.done.length, fromLayout.problems], [1, []]);
        assert.is((await fetch(`${mirror.url}/v2/again/charts/one/manifests/v1`)).status, 200);
      });

      // The places that specs name are gone; what is rendered is the same.
      await origin.close();
      await shop.close();
      const registry = createRegistryClient({ http: copy.http, credentials: anonymous, registries: rules });
      const cache = createChartCache(`${folder}/cache`, 1_000_000);
      for (const [n, { source, digest }] of charts.entries()) {
        const got = await acquireChart(
          {
            source,
            digest,
            version: '1',
            kubernetesVersion: '1.34.0',
            places: { source: {}, digest: {}, version: {}, kubernetesVersion: {} },
          },
          { http: copy.http, registry, cache, allowedHosts: hosts },
        );
        assert.ok(got.ok, JSON.stringify(got));
        if (got.ok)
          assert.equal(
            [got.value.digest, got.value.bytes.toString()],
            [digest, [tagged, bare, archive][n]?.toString()],
          );
      }
    } finally {
      copy.http.close();
      await mirror.close();
    }
  }));

test.run();
