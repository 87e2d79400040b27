import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { LedgerEntry } from '../../constructs/api/ledger.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { isOwnedBy } from '../../executor/network/disown.ts';
import { orphanObjects } from '../../executor/network/orphan.ts';
import { groupVersions, namespacedKinds } from '../../executor/network/orphan-strays.ts';
import { digest, sha } from './executor-support.ts';
import { adopted, owner, ownersModel, release, system } from './owners-model.ts';

const guard = { check: () => undefined, release: () => Promise.resolve() };
const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const entryOf = (name: string, uid: string): LedgerEntry => ({
  id: `/ConfigMap/kube-system/${name}`,
  uid,
  state: 'applied',
  sha256: sha('a'),
  phase: 'one',
  payload: digest('1'),
});

async function orphaned(entries: readonly LedgerEntry[], live: readonly KubeObject[], broken: readonly string[] = []) {
  const model = ownersModel(entries, live, broken);
  const problems = await orphanObjects(
    {
      client: model.client,
      release,
      namespace: system,
      installationUID: owner,
      installationNamespace: 'kube-system',
      authorised: true,
      guard,
    },
    AbortSignal.timeout(30_000),
  );
  const owned = [...model.objects.values()].filter(({ metadata }) => isOwnedBy(metadata, owner));
  return { ...model, problems, owned: owned.map(({ metadata }) => metadata.name) };
}

test('what the ledger has lost, and the installation still owns, loses its owner before the installation goes', async () => {
  const live = ['a', 'b'].map((name, n) => adopted(name, uidOf(n)));
  for (const entries of [[], [entryOf('a', uidOf(0))]]) {
    const { problems, owned, objects } = await orphaned(entries, live);
    assert.equal(problems, []);
    assert.equal(owned, [], `${entries.length} of 2 in the ledger`);
    assert.equal(
      live.map(({ metadata }) => objects.get(`/ConfigMap/kube-system/${metadata.name}`)?.data),
      [{ value: 'kept' }, { value: 'kept' }],
    );
  }
});

test('what is not ours to write keeps the installation; its own things without our label go with it', async () => {
  const copy = adopted('copy', uidOf(1), { annotations: { 'keelson.dev/id': '/ConfigMap/kube-system/a' } });
  const told = await orphaned([], [copy]);
  assert.equal([told.problems.map(({ reason }) => reason), told.writes], [['OwnerNotStripped'], []]);
  const canary = await orphaned([], [adopted('canary', uidOf(1), { labels: {} })]);
  assert.equal([canary.problems, canary.writes, canary.owned], [[], [], ['canary']]);
  const elsewhere = await orphaned([], [adopted('a', uidOf(1), { namespace: 'demo' })]);
  assert.equal(elsewhere.writes, [], 'an owner means nothing in another namespace');
});

test('a group that gives no answer keeps the installation: what it holds is not known', async () => {
  for (const path of ['/apis', '/api/v1', '/apis/x.io/v1']) {
    const { problems, writes } = await orphaned([], [adopted('a', uidOf(0))], [path]);
    assert.equal([problems.map(({ reason, object }) => [reason, object]), writes], [[['ApiUnavailable', path]], []]);
  }
});

test('kinds: those of namespaces that can be listed and written, each group in the version that it prefers first', () => {
  const group = (name: string, preferred: string, ...versions: string[]) => ({
    name,
    preferredVersion: { groupVersion: `${name}/${preferred}` },
    versions: versions.map((version) => ({ groupVersion: `${name}/${version}` })),
  });
  const groups = { groups: [group('apps', 'v1', 'v1'), group('x.io', 'v2', 'v1', 'v2')] };
  assert.equal(groupVersions(JSON.stringify(groups)), ['apps/v1', 'x.io/v2', 'x.io/v1']);
  assert.equal([groupVersions('no'), groupVersions('{}')], [[], []]);
  const verbs = ['get', 'list', 'patch'];
  const resources = [
    { name: 'deployments', kind: 'Deployment', namespaced: true, verbs },
    { name: 'deployments/status', kind: 'Deployment', namespaced: true, verbs },
    { name: 'nodes', kind: 'Node', namespaced: false, verbs },
    { name: 'metrics', kind: 'PodMetrics', namespaced: true, verbs: ['get', 'list'] },
  ];
  assert.equal(namespacedKinds('apps/v1', JSON.stringify({ resources })), [
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ]);
});

test.run();
