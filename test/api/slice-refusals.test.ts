import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations } from '../../constructs/api/constants.ts';
import { generateKeyPair } from '../../constructs/api/signature.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { staticCredentials, until } from './kubeBed.ts';
import { is, payloadMutations, type RunningExecutor, type SliceBed, type StatusView, sliceBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  gate,
  type PhaseInput,
  slicePhases,
  testKey,
} from './slice-payload.ts';

/** Delivers a payload that is to be refused, and answers the status that says so. Nothing of it may have been written. */
async function refused(
  bed: SliceBed,
  built: BuiltPayload,
  options: Parameters<SliceBed['executor']>[0] = {},
  spec: Parameters<SliceBed['applyRelease']>[1] = {},
): Promise<{ status: StatusView; executor: RunningExecutor }> {
  await bed.deliver(built);
  await bed.applyRelease(built, spec);
  const executor = bed.executor(options);
  const status = await bed.untilStatus('it is refused', (s) => is(s, 'Accepted', 'False'));
  assert.equal(payloadMutations(executor.plan, bed.system), [], 'nothing of the payload was written');
  assert.not.ok(status.raw.actual);
  assert.not.ok(executor.plan.mutations().some(({ name }) => name?.startsWith('keelson-ledger-')));
  return { status, executor };
}

const reasons = (status: StatusView): string[] =>
  status.raw.failures.map(({ reason }: { reason: string }) => reason).sort();

const report = async (bed: SliceBed, digest: string): Promise<string> => {
  const found = await bed.get(`/api/v1/namespaces/${bed.system}/configmaps/keelson-report-${digest.slice(7, 19)}`);
  return String((found?.data as JsonObject | undefined)?.['problems.txt'] ?? '');
};

/** Three phases in a namespace that exists, so that the server itself judges everything. */
const plainPhases = (namespace: string, last: JsonObject[]): PhaseInput[] => [
  { name: 'one', manifests: [{ object: configMap(namespace, 'a') }, { object: configMap(namespace, 'b') }] },
  { name: 'two', manifests: [{ object: configMap(namespace, 'c') }] },
  { name: 'three', manifests: last.map((object) => ({ object })) },
];

async function existing(bed: SliceBed): Promise<string> {
  const { namespace } = bed.names;
  await bed.server.admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  });
  return namespace;
}

test('an invalid last object of the last phase: nothing at all is written', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const broken = { ...deployment(namespace, 'server'), spec: { replicas: -1, selector: {}, template: {} } };
    const phases = plainPhases(namespace, [configMap(namespace, 'd'), broken]);
    const built = await buildPayload({ release: bed.names.release, phases, key: testKey });
    const { status, executor } = await refused(bed, built);
    assert.equal(reasons(status), ['ObjectInvalid']);
    assert.match(status.raw.failures[0].object, /Deployment.apps demo-\w+\/server/);
    assert.is(status.condition('Stalled')?.status, 'True', 'nobody tries again what can not become valid');
    assert.is(status.condition('Ready')?.status, 'False');
    assert.is(executor.plan.count({ dryRun: true }), 5, 'the whole batch was tried');
  } finally {
    await bed.close();
  }
});

test('what comes with its own CRD and namespace is judged by their schema, before anything is written', async () => {
  const bed = await sliceBed();
  try {
    const { names } = bed;
    const phases = slicePhases(names, 'one', [
      {
        object: {
          apiVersion: `${names.group}/v1`,
          kind: 'Widget',
          metadata: { name: 'wrong', namespace: names.namespace },
          spec: { size: 0, shape: 'round' },
        },
      },
      { object: { ...configMap(names.namespace, 'typo'), dat: { a: 'b' } } },
    ]);
    const built = await buildPayload({ release: names.release, phases, key: testKey });
    const { status } = await refused(bed, built);
    const text = await report(bed, built.digest);
    assert.is(status.raw.failureCount, 3, text);
    assert.match(text, /Widget.*wrong.*\/spec\/size: must be >= 1/);
    assert.match(text, /Widget.*wrong.*must NOT have additional properties 'shape'/);
    assert.match(text, /ConfigMap.*typo.*must NOT have additional properties 'dat'/);
  } finally {
    await bed.close();
  }
});

test('every problem is told at once, in the status up to ten and in the report all of them', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const { admin } = bed.server;
    await admin.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, { body: configMap(namespace, 'b') });
    const many = Array.from({ length: 12 }, (_, n) => ({
      ...deployment(namespace, `server-${n}`),
      spec: { replicas: 1, selector: { matchLabels: { a: 'b' } }, template: { metadata: { labels: { a: 'c' } } } },
    }));
    const webhook: JsonObject = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: `${bed.names.release}-hook` },
      webhooks: [
        {
          name: 'all.example.com',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { url: 'https://127.0.0.1:1/' },
          rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }],
        },
      ],
    };
    const content = { requires: [{ kind: 'Secret' as const, namespace, name: 'needed', keys: ['token'] }] };
    const phases = plainPhases(namespace, [...many, webhook]);
    const built = await buildPayload({ release: bed.names.release, phases, content, key: testKey });
    const { status } = await refused(bed, built, {}, { dependsOn: [{ name: 'manifests-other' }] });
    const text = await report(bed, built.digest);
    assert.is(status.raw.failureCount, 16, text);
    assert.is(status.raw.failures.length, 10);
    assert.is((text.match(/remedy:/g) ?? []).length > 2, true);
    for (const reason of [
      'AlreadyExists',
      'WebhookUnsafe',
      'RequirementMissing',
      'DependencyNotReady',
      'ObjectInvalid',
    ])
      assert.match(text, `[${reason}]`);
    assert.is((text.match(/\[ObjectInvalid\]/g) ?? []).length, 12);
    const { body: untouched } = await admin.expect('GET', `/api/v1/namespaces/${namespace}/configmaps/b`);
    assert.is(untouched.metadata.managedFields.length, 1);
  } finally {
    await bed.close();
  }
});

test('a payload that nobody trusted signed is refused; unsigned only passes under its flag, and is told', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const phases = plainPhases(namespace, [configMap(namespace, 'd')]);
    const foreign = await buildPayload({ release: bed.names.release, phases, key: generateKeyPair() });
    const { status, executor } = await refused(bed, foreign);
    assert.is(status.condition('Accepted')?.reason, 'SignatureUntrusted');
    assert.is(executor.plan.count({ dryRun: true }), 0, 'nothing of an untrusted payload is sent anywhere');
    const unsigned = await buildPayload({ release: bed.names.release, phases });
    await bed.deliver(unsigned);
    await bed.applyRelease(unsigned);
    await bed.untilStatus(
      'unsigned is refused',
      (s) =>
        s.condition('Accepted')?.reason === 'SignatureUntrusted' ||
        (s.raw.desired === unsigned.digest && is(s, 'Accepted', 'False')),
    );
    await executor.stop();
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    const loose = bed.executor({ allowUnsigned: true });
    const ready = await bed.untilStatus('it is in place', (s) => is(s, 'Ready', 'True'));
    assert.is(ready.condition('Unverified')?.status, 'True');
    assert.is(ready.raw.sync.verified, false);
    assert.is(ready.raw.history[0].acceptedRisks, 'the payload is not signed');
    await loose.stop();
  } finally {
    await bed.close();
  }
});

test('an altered chunk, a payload of another release and one for another cluster are refused', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const phases = plainPhases(namespace, [configMap(namespace, 'd')]);
    const other = await buildPayload({ release: 'manifests-other', phases, key: testKey });
    const { status, executor } = await refused(bed, other);
    assert.match(status.condition('Accepted')?.message ?? '', /rendered for Release manifests-other/);
    await executor.stop();
    const content = { clusterUID: '00000000-0000-4000-8000-000000000000' };
    const elsewhere = await buildPayload({ release: bed.names.release, phases, content, key: testKey });
    const second = await refused(bed, elsewhere);
    await bed.untilStatus('the cluster is compared', (s) => s.condition('Accepted')?.reason === 'ClusterMismatch');
    assert.is(second.executor.plan.count({ dryRun: true }), 0);
  } finally {
    await bed.close();
  }
});

test('a field that another manager holds is told with manager and field, and nothing is forced', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const phases = (replicas: number): PhaseInput[] =>
      plainPhases(namespace, [deployment(namespace, 'server', replicas)]);
    const first = await buildPayload({ release: bed.names.release, phases: phases(2), key: testKey });
    await bed.deliver(first);
    await bed.applyRelease(first);
    const executor = bed.executor();
    await bed.untilStatus('it is in place', (s) => is(s, 'Ready', 'True'));
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/server`;
    await bed.server.admin.expect('PATCH', path, {
      body: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'server' }, spec: { replicas: 5 } },
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'autoscaler', force: 'true' },
    });
    executor.plan.resetLog();
    const second = await buildPayload({ release: bed.names.release, phases: phases(3), key: testKey });
    await bed.deliver(second);
    await bed.applyRelease(second);
    const status = await bed.untilStatus(
      'the conflict is told',
      (s) => is(s, 'Accepted', 'False') && s.raw.desired === second.digest,
    );
    const refusal = status.raw.failures.find(({ reason }: { reason: string }) => reason === 'FieldConflict');
    assert.match(refusal?.message ?? '', /autoscaler \(Apply\) holds \.spec\.replicas/);
    assert.is(status.condition('Accepted')?.reason, 'FieldConflict');
    assert.equal(payloadMutations(executor.plan, bed.system), []);
    assert.equal(executor.plan.violations, []);
    assert.is(status.raw.actual, first.digest, 'the payload before stays in force');
    const live = await bed.get(path);
    assert.equal((live?.spec as JsonObject | undefined)?.replicas, 5);
    // The conflict goes when the other manager lets go; no change of the spec is needed.
    const { body } = await bed.server.admin.expect('GET', path);
    const value = body.metadata.managedFields.filter(({ manager }: { manager: string }) => manager !== 'autoscaler');
    await bed.server.admin.expect('PATCH', path, {
      body: [{ op: 'replace', path: '/metadata/managedFields', value }],
      type: 'application/json-patch+json',
    });
    assert.ok(await report(bed, second.digest));
    await bed.untilStatus('it goes on by itself', (s) => s.raw.actual === second.digest && is(s, 'Ready', 'True'));
    await until('the report of what is over is gone', async () => (await report(bed, second.digest)) === '');
  } finally {
    await bed.close();
  }
});

test('an account without rights: every missing rule is named at once', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const { admin, tokens } = bed.server;
    await admin.expect('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${bed.system}/rolebindings`, {
      body: {
        metadata: { name: 'executor' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'User', name: 'user-1', apiGroup: 'rbac.authorization.k8s.io' }],
      },
    });
    const phases = plainPhases(namespace, [deployment(namespace, 'server')]);
    const built = await buildPayload({ release: bed.names.release, phases, key: testKey });
    const { status } = await refused(bed, built, { credentials: staticCredentials(bed.server, tokens['user-1']) });
    const text = await report(bed, built.digest);
    for (const rule of [
      'get configmaps in',
      'patch configmaps in',
      'create configmaps in',
      'get deployments.apps in',
      'patch deployments.apps in',
      'create deployments.apps in',
    ])
      assert.match(text, `may not ${rule} ${namespace}`);
    assert.ok(status.raw.failureCount >= 6);
  } finally {
    await bed.close();
  }
});

test('a limit that passes fails its gate with object, elapsed time and limit', async () => {
  const bed = await sliceBed();
  try {
    const namespace = await existing(bed);
    const phases: PhaseInput[] = [
      {
        name: 'workloads',
        gates: [gate('WorkloadsReady', 'workloads', { softLimit: '100ms', limit: '4s' })],
        manifests: [{ object: deployment(namespace, 'server') }],
      },
    ];
    const built = await buildPayload({ release: bed.names.release, phases, key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    bed.executor();
    await bed.untilStatus(
      'it is slow',
      (s) => s.condition('Failing')?.status === 'Unknown' && s.condition('Failing')?.reason === 'GateSlow',
    );
    const status = await bed.untilStatus(
      'the limit has passed',
      (s) => s.condition('Failing')?.reason === 'GateExpired',
    );
    assert.match(
      status.condition('Failing')?.message ?? '',
      /WorkloadsReady\(workloads\) NotObserved: Deployment.apps .*\/server: .*limit 4s/,
    );
    assert.is(status.condition('Ready')?.status, 'False');
  } finally {
    await bed.close();
  }
});

/** What may become of a ledger behind the executor's back. */
const losses: Readonly<Record<string, (bed: SliceBed, path: string) => Promise<unknown>>> = {
  'is gone': ({ server }, path) => server.admin.expect('DELETE', path),
  'is no JSON': ({ server }, path) =>
    server.admin.expect('PATCH', path, {
      body: { data: { 'entries.json': '[{"id":"x' } },
      type: 'application/merge-patch+json',
    }),
  'has no entries': ({ server }, path) =>
    server.admin.expect('PATCH', path, { body: { data: null }, type: 'application/merge-patch+json' }),
  'lacks a shard': ({ server }, path) =>
    server.admin.expect('PATCH', path, {
      body: { metadata: { annotations: { [annotations.shards]: '2' } } },
      type: 'application/merge-patch+json',
    }),
};

for (const [what, lose] of Object.entries(losses))
  test(`a ledger that ${what}: nothing is written or removed, and nobody is told to delete what is there`, async () => {
    const bed = await sliceBed();
    try {
      const namespace = await existing(bed);
      const payload = (value: string, last: JsonObject[]) =>
        buildPayload({
          release: bed.names.release,
          phases: [
            { name: 'one', manifests: [{ object: configMap(namespace, 'a', { value }) }] },
            { name: 'two', manifests: last.map((object) => ({ object })) },
          ],
          key: testKey,
        });
      const first = await payload('one', [configMap(namespace, 'b'), configMap(namespace, 'c')]);
      await bed.deliver(first);
      await bed.applyRelease(first);
      const before = bed.executor();
      await bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True'));
      await before.stop();
      await lose(bed, `/api/v1/namespaces/${bed.system}/configmaps/keelson-ledger-${bed.names.release}-0`);
      await bed.server.admin.expect('DELETE', `/api/v1/namespaces/${namespace}/configmaps/a`);
      const second = await payload('two', [configMap(namespace, 'b')]);
      await bed.deliver(second);
      await bed.applyRelease(second, { prune: { maxPercent: 100 } });
      const after = bed.executor();
      const status = await bed.untilStatus('it is told', (s) => reasons(s).includes('LedgerUnreadable'));
      assert.is(status.condition('Ready')?.status, 'False');
      assert.match(status.raw.failures[0].message, bed.names.release);
      assert.not.match(JSON.stringify(status.raw), /AlreadyExists|delete it/);
      assert.equal(payloadMutations(after.plan, bed.system), []);
      assert.ok(await bed.get(`/api/v1/namespaces/${namespace}/configmaps/c`), 'nothing was removed');
    } finally {
      await bed.close();
    }
  });

test.run();
