import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type DriftBed, driftBed, holdAnnotation, quiesceAnnotation } from './drift-bed.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations } from './slice-bed.ts';
import { configMap, deployment, namespaceObject } from './slice-payload.ts';

const applied = (bed: DriftBed, name: string, data?: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: bed.names.namespace },
  ...(data === undefined ? {} : { data }),
});

/** Short pauses, so that a test can see one end. */
const quick = {
  fight: {
    repairs: 3,
    windowMs: 3_600_000,
    backoff: { initialMs: 1_500, factor: 1, maxMs: 1_500, jitter: 0 },
  },
};

const change = (bed: DriftBed, name: string, value: string): Promise<string> =>
  bed.kubectl('patch', `configmap/${name}`, '--type=merge', '-p', JSON.stringify({ data: { value } }));

/** Requests about one object of the payload. */
const about = (bed: DriftBed, name: string): string[] =>
  bed.plan
    .requests((r) => r.name === name && r.namespace === bed.names.namespace)
    .map(({ verb, dryRun }) => (dryRun ? `dry ${verb}` : verb));

test('another manager’s apply is a fight at once, a value that returns after three repairs is one then', async () => {
  const bed = await driftBed({
    drift: quick,
    phases: ({ names: { namespace } }) => [
      { name: 'base', manifests: [{ object: namespaceObject(namespace) }] },
      {
        name: 'maps',
        manifests: ['applied', 'returning', 'calm'].map((name) => ({ object: configMap(namespace, name) })),
      },
    ],
  });
  try {
    const { admin } = bed.server;
    const path = `/api/v1/namespaces/${bed.names.namespace}/configmaps/applied`;
    bed.plan.resetLog();
    const apply = (data: JsonObject | undefined, force: boolean): Promise<unknown> =>
      admin.expect('PATCH', path, {
        body: applied(bed, 'applied', data),
        type: 'application/apply-patch+yaml',
        query: { fieldManager: 'team-b', ...(force ? { force: 'true' } : {}) },
      });
    await apply({ value: 'theirs' }, true);
    const fought = await bed.untilStatus('the fight is told', (s) => is(s, 'DriftFight', 'True'));
    assert.is(fought.condition('Ready')?.status, 'False');
    assert.is(fought.condition('Ready')?.reason, 'DriftFight');
    assert.is(fought.condition('Available')?.status, 'True');
    assert.is(fought.condition('Failing')?.reason, 'DriftFight');
    const fights = `keelson_drift_fights{release="${bed.names.release}"}`;
    assert.is(await bed.metric(fights), `${fights} 1`);
    const message = fought.condition('DriftFight')?.message ?? '';
    assert.match(message, /ConfigMap demo-\w+\/applied \.data\.value: team-b applies another value than keelson does/);
    assert.is((await bed.object('configmaps', 'applied')).data.value, 'theirs');
    assert.equal(payloadMutations(bed.plan, bed.system), [], 'nothing was written');
    // It is looked at again when its pause is over, and left alone in between.
    const looks = about(bed, 'applied').length;
    await bed.untilStatus('a pause is over', () => about(bed, 'applied').length > looks);
    assert.equal([...new Set(about(bed, 'applied'))], ['get']);
    // Who gives the field up leaves it to us.
    await apply(undefined, false);
    await bed.untilObject('configmaps', 'applied', 'the value is back', (o) => o.data?.value === 'one');
    await bed.untilStatus(
      'the fight is over',
      (s) => is(s, 'Ready', 'True') && s.condition('DriftFight') === undefined,
    );

    for (const value of ['a', 'b', 'c']) {
      await change(bed, 'returning', value);
      await bed.untilObject('configmaps', 'returning', `${value} is undone`, (o) => o.data.value === 'one');
    }
    await change(bed, 'returning', 'd');
    const again = await bed.untilStatus('it is told', (s) => is(s, 'DriftFight', 'True'));
    assert.match(
      again.condition('DriftFight')?.message ?? '',
      /returning \.data\.value: kubectl-patch keeps changing what keelson sets back/,
    );
    assert.is(again.raw.failures[0].reason, 'DriftFight');
    assert.is((await bed.object('configmaps', 'returning')).data.value, 'd', 'not set back while the pause runs');
    // Others are not made to wait for it.
    await change(bed, 'calm', 'x');
    await bed.untilObject('configmaps', 'calm', 'another object is set back', (o) => o.data.value === 'one');
    await bed.untilObject('configmaps', 'returning', 'one more try is made', (o) => o.data.value === 'one');
    await bed.untilStatus('it stayed', (s) => is(s, 'Ready', 'True') && s.condition('DriftFight') === undefined);
    const lines = (await bed.events()).filter((line) => line.startsWith('DriftFight'));
    assert.ok(lines.some((line) => line.includes('returning')) && lines.some((line) => line.includes('applied')));
    assert.equal(bed.plan.violations, []);
  } finally {
    await bed.close();
  }
});

test('a change through another API version of the object is set back like any other, and is no fight', async () => {
  const bed = await driftBed({
    phases: ({ names: { namespace } }) => [
      {
        name: 'all',
        manifests: [
          { object: namespaceObject(namespace) },
          { object: configMap(namespace, 'beside') },
          {
            object: {
              apiVersion: 'autoscaling/v2',
              kind: 'HorizontalPodAutoscaler',
              metadata: { name: 'scaler', namespace },
              spec: {
                maxReplicas: 3,
                scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'server' },
                metrics: [
                  {
                    type: 'Resource',
                    resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } },
                  },
                ],
              },
            },
          },
        ],
      },
    ],
  });
  try {
    const scaler = async (): Promise<JsonObject> =>
      (await bed.get(`/apis/autoscaling/v2/namespaces/${bed.names.namespace}/horizontalpodautoscalers/scaler`)) ?? {};
    const patch = (spec: JsonObject): Promise<string> =>
      bed.kubectl('patch', 'hpa.v1.autoscaling/scaler', '--type=merge', '-p', JSON.stringify({ spec }));
    await patch({ maxReplicas: 9 });
    await until('it is set back', async () => ((await scaler()).spec as JsonObject).maxReplicas === 3);
    const written = (await scaler()).metadata as { managedFields: { manager: string; apiVersion: string }[] };
    assert.not.ok(
      written.managedFields.some(({ manager }) => manager === 'kubectl-patch'),
      'its entry is gone',
    );
    await until('it is told', async () => (await bed.events()).some((line) => /^DriftRepaired scaler: /.test(line)));
    // This field has no place of its own in our version: nobody holds what differs there, and it is set back all the same.
    await patch({ targetCPUUtilizationPercentage: 90 });
    await until('it is set back too', async () =>
      JSON.stringify((await scaler()).spec).includes('"averageUtilization":60'),
    );
    assert.is((await bed.status()).condition('DriftFight'), undefined);
    assert.equal(bed.plan.violations, []);
  } finally {
    await bed.close();
  }
});

test('an object that is deleted again and again is a fight too, and no pass creates it meanwhile', async () => {
  const fight = { ...quick.fight, backoff: { initialMs: 60_000, factor: 2, maxMs: 120_000, jitter: 0 } };
  const bed = await driftBed({
    drift: { fight },
    phases: ({ names: { namespace } }) => [
      { name: 'all', manifests: [{ object: namespaceObject(namespace) }, { object: configMap(namespace, 'hunted') }] },
    ],
  });
  try {
    const uids = new Set<string>();
    for (let n = 0; n < 3; n += 1) {
      uids.add((await bed.object('configmaps', 'hunted')).metadata.uid);
      await bed.kubectl('delete', 'configmap/hunted', '--wait=false');
      await bed.untilObject('configmaps', 'hunted', 'it is there again', (o) => !uids.has(o.metadata.uid));
    }
    await bed.kubectl('delete', 'configmap/hunted', '--wait=false');
    const told = await bed.untilStatus('the fight is told', (s) => is(s, 'DriftFight', 'True'));
    assert.match(
      told.condition('DriftFight')?.message ?? '',
      /ConfigMap demo-\w+\/hunted: somebody deletes it again and again/,
    );
    await bed.annotate('reconcile.fluxcd.io/requestedAt', 'now');
    await bed.untilStatus('a pass is over', (s) => s.raw.lastHandledReconcileAt === 'now');
    assert.is(await bed.object('configmaps', 'hunted'), undefined);
    const status = await bed.status();
    assert.match(status.condition('Held')?.message ?? '', /hunted \(it is deleted again and again\)/);
    assert.is(status.condition('Ready')?.reason, 'DriftFight');
    const entry = (await bed.ledger())[`/ConfigMap/${bed.names.namespace}/hunted`];
    assert.is(entry?.state, 'applied', 'it is not forgotten');
  } finally {
    await bed.close();
  }
});

test('held, overridden, quiesced, created once, given up, suspended, paused: none of these is set back', async () => {
  const bed = await driftBed({
    phases: ({ names: { namespace } }) => [
      { name: 'base', manifests: [{ object: namespaceObject(namespace) }] },
      {
        name: 'maps',
        manifests: [
          ...['held', 'overridden', 'quiesced', 'plain'].map((name) => ({ object: configMap(namespace, name) })),
          { object: configMap(namespace, 'once'), flags: { createOnly: true } },
          {
            object: deployment(namespace, 'scaled'),
            flags: { conflict: 'yield', yieldFields: ['/spec/replicas'] },
          },
        ],
      },
      { name: 'last', manifests: [{ object: configMap(namespace, 'suspended') }] },
    ],
  });
  try {
    const { release, namespace } = bed.names;
    const rest = async (spec: JsonObject): Promise<void> => {
      const path = `/apis/keelson.dev/v1alpha1/namespaces/${bed.system}/releases/${release}`;
      const body = { spec };
      const { body: object } = await bed.server.admin.expect('PATCH', path, {
        body,
        type: 'application/merge-patch+json',
      });
      const taken = object.metadata.generation;
      await bed.untilStatus(
        'the spec is taken up',
        (s) => s.raw.observedGeneration === taken && s.raw.sync !== undefined,
      );
    };
    await bed.kubectl('annotate', 'configmap/held', `${holdAnnotation}=looking`);
    await bed.kubectl('annotate', 'configmap/quiesced', `${quiesceAnnotation}=upgrade`);
    await rest({
      overrides: [{ group: '', kind: 'ConfigMap', namespace, name: 'overridden' }],
      suspendPhases: ['last'],
    });
    await bed.untilStatus('the phase is suspended', (s) => s.raw.phases?.at(-1)?.state === 'Suspended');
    bed.plan.resetLog();
    await bed.kubectl('scale', 'deployment/scaled', '--replicas=7');
    for (const name of ['held', 'overridden', 'quiesced', 'once', 'suspended', 'plain'])
      await change(bed, name, 'theirs');
    await bed.untilObject('configmaps', 'plain', 'only this is set back', (o) => o.data.value === 'one');
    for (const name of ['held', 'overridden', 'quiesced', 'once', 'suspended'])
      assert.is((await bed.object('configmaps', name)).data.value, 'theirs', name);
    assert.is((await bed.object('deployments', 'scaled')).spec.replicas, 7);
    assert.equal(
      payloadMutations(bed.plan, bed.system).map(({ verb, name }) => `${verb} ${name}`),
      ['patch plain', 'apply plain'],
    );
    // What the deployment does not give up is set back all the same, and the rest stays given up.
    await bed.kubectl('set', 'image', 'deployment/scaled', 'main=registry.example/other:1');
    const back = await bed.untilObject('deployments', 'scaled', 'the image is back', (o) =>
      o.spec.template.spec.containers[0].image.startsWith('registry.example/app@'),
    );
    assert.is(back.spec.replicas, 7);
    // What stood in the way goes: so does the drift.
    await bed.kubectl('annotate', 'configmap/held', `${holdAnnotation}-`);
    await bed.kubectl('annotate', 'configmap/quiesced', `${quiesceAnnotation}-`);
    await rest({ suspendPhases: [] });
    for (const name of ['held', 'quiesced', 'suspended'])
      await bed.untilObject('configmaps', name, `${name} is set back`, (o) => o.data.value === 'one');

    for (const [still, end] of [
      [() => rest({ paused: true }), () => rest({ paused: false })],
      [() => bed.annotate(quiesceAnnotation, 'upgrade'), () => bed.annotate(quiesceAnnotation, null)],
    ] as const) {
      await still();
      bed.plan.resetLog();
      await change(bed, 'plain', 'theirs');
      await end();
      await bed.untilObject('configmaps', 'plain', 'it is set back afterwards', (o) => o.data.value === 'one');
      const [first] = payloadMutations(bed.plan, bed.system);
      const looked = bed.plan.log.filter((r) => r.verb === 'list' && r.sequence < (first?.sequence ?? 0));
      assert.ok(looked.length > 0, 'a pass came first');
    }
  } finally {
    await bed.close();
  }
});

test('what is marked between the look at it and the write is not written over', async () => {
  const bed = await driftBed({
    phases: ({ names: { namespace } }) => [
      { name: 'all', manifests: [{ object: namespaceObject(namespace) }, { object: configMap(namespace, 'marked') }] },
    ],
  });
  try {
    const apply = { verb: 'apply', name: 'marked', namespace: bed.names.namespace, dryRun: false } as const;
    const label = (o: Awaited<ReturnType<DriftBed['object']>>): unknown => o.metadata.labels?.['keelson.dev/release'];
    // A pass that is still under way would write by a look of its own.
    await bed.annotate('reconcile.fluxcd.io/requestedAt', 'now');
    await bed.untilStatus('no pass is under way', (status) => status.raw.lastHandledReconcileAt === 'now');
    bed.plan.resetLog();
    const hits = bed.plan.inject({ match: apply, fault: { kind: 'hang' } });
    await bed.kubectl('label', 'configmap/marked', 'keelson.dev/release-');
    await until('it is to be set back', () => hits() === 1);
    await bed.kubectl('annotate', 'configmap/marked', `${holdAnnotation}=looking`);
    // The write goes out once more, as it was decided on.
    bed.plan.clear();
    await until(
      'it is looked at again',
      () => about(bed, 'marked').at(-1) === 'get' && about(bed, 'marked').length > 4,
    );
    const statuses = bed.plan.requests(apply).map(({ status }) => status);
    assert.equal(statuses.at(-1), 409, `the server refuses it: ${statuses}`);
    assert.is(label(await bed.object('configmaps', 'marked')), undefined);
    await bed.kubectl('annotate', 'configmap/marked', `${holdAnnotation}-`);
    await bed.untilObject('configmaps', 'marked', 'the label is back', (o) => label(o) === bed.names.release);
  } finally {
    await bed.close();
  }
});

test.run();
