import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { staticCredentials, until } from './kubeBed.ts';
import { type SliceBed, sliceBed } from './slice-bed.ts';
import { buildPayload, configMap, deployment, gate, testKey } from './slice-payload.ts';

const rbac = 'rbac.authorization.k8s.io';

/** An account that may do everything in two namespaces, and elsewhere reads only what acceptance looks at. */
async function narrowAccount(bed: SliceBed): Promise<string> {
  const { admin } = bed.server;
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: 'cluster-admin' };
  // An account of this file alone: the server's plain users are those of other files too.
  const account = 'narrow';
  const token = await serviceAccountToken(admin, bed.system, account);
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: bed.system }];
  for (const namespace of [bed.system, bed.names.namespace])
    await admin.expect('POST', `/apis/${rbac}/v1/namespaces/${namespace}/rolebindings`, {
      body: { metadata: { name: 'executor' }, roleRef, subjects },
    });
  const name = `${bed.names.release}-looks`;
  const look = ['get', 'list', 'watch'];
  const rules = [
    { apiGroups: [''], resources: ['namespaces'], verbs: look },
    { apiGroups: ['apiextensions.k8s.io'], resources: ['*'], verbs: look },
    { apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: look },
    { apiGroups: ['apps'], resources: ['deployments', 'daemonsets'], verbs: look },
    { apiGroups: ['authorization.k8s.io'], resources: ['*'], verbs: ['create'] },
  ];
  await admin.expect('POST', `/apis/${rbac}/v1/clusterroles`, { body: { metadata: { name }, rules } });
  await admin.expect('POST', `/apis/${rbac}/v1/clusterrolebindings`, {
    body: { metadata: { name }, roleRef: { apiGroup: rbac, kind: 'ClusterRole', name }, subjects },
  });
  return token;
}

test('while a gate is waited for, by an account that may only list in its namespaces: what is in place is kept', async () => {
  const bed = await sliceBed();
  try {
    const { namespace, release } = bed.names;
    const { admin } = bed.server;
    await admin.expect('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } });
    const token = await narrowAccount(bed);
    const phases = [
      { name: 'base', manifests: [{ object: configMap(namespace, 'a') }, { object: configMap(namespace, 'b') }] },
      {
        name: 'workloads',
        gates: [gate('WorkloadsReady', 'workloads')],
        manifests: [{ object: deployment(namespace, 'server') }],
      },
      { name: 'last', manifests: [{ object: configMap(namespace, 'c') }] },
    ];
    const built = await buildPayload({ release, phases, key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const executor = bed.executor({ credentials: staticCredentials(bed.server, token) });
    await bed.untilStatus('the gate is waited for', (s) => s.raw.phases?.[1]?.state === 'Waiting');
    const path = (name: string): string => `/api/v1/namespaces/${namespace}/configmaps/${name}`;
    await until('the namespace is watched', () =>
      executor.plan.requests({ verb: 'watch' }).some((r) => r.resource === 'configmaps' && r.namespace === namespace),
    );
    await admin.expect('PATCH', path('a'), {
      body: { data: { value: 'theirs' } },
      type: 'application/merge-patch+json',
      query: { fieldManager: 'kubectl-patch' },
    });
    await admin.expect('DELETE', path('b'));
    const value = async (name: string): Promise<unknown> =>
      ((await bed.get(path(name)))?.data as { value?: string })?.value;
    await until('both are back', async () => (await value('a')) === 'one' && (await value('b')) === 'one');
    const still = await bed.status();
    assert.is(still.raw.phases[1].state, 'Waiting');
    assert.is(await value('c'), undefined, 'the next phase waits all the same');
    const everywhere = executor.plan.requests(
      (r) => r.verb === 'watch' && r.resource === 'configmaps' && r.namespace === undefined,
    );
    assert.equal(everywhere, [], 'nothing is watched that may not be');
    assert.equal(executor.plan.violations, []);
  } finally {
    await bed.close();
  }
});

test.run();
