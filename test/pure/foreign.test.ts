import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { activeOwners, foreignReconciler, markedOwners } from '../../executor/apply/foreign.ts';
import type { ManagedFieldsEntry, ObjectMeta } from '../../executor/kube/types.ts';

const instance = { 'app.kubernetes.io/instance': 'shop' };
const cases: readonly (readonly [what: string, metadata: ObjectMeta, marked: string[], active: string[]])[] = [
  ['nothing', {}, [], []],
  ['a label that charts use too', { labels: instance }, [], []],
  [
    'the same label where Argo CD writes',
    { labels: instance, managedFields: [{ manager: 'argocd-controller' }] },
    ['Application shop of Argo CD'],
    ['argocd-controller'],
  ],
  [
    'a chart of Helm that was adopted: the annotation stays, the manager went',
    { annotations: { 'meta.helm.sh/release-name': 'shop' }, managedFields: [{ manager: 'keelson' }] },
    ['Helm release shop'],
    [],
  ],
  [
    'a HelmRelease of Flux',
    {
      labels: { 'helm.toolkit.fluxcd.io/name': 'shop', 'helm.toolkit.fluxcd.io/namespace': 'web' },
      managedFields: [{ manager: 'helm-controller' }],
    },
    ['HelmRelease web/shop'],
    ['helm-controller'],
  ],
];

const ours = (fields: JsonObject, time: string): ManagedFieldsEntry => ({
  manager: 'keelson',
  operation: 'Apply',
  time,
  fieldsV1: fields,
});
const helm = (fields: JsonObject, time: string): ManagedFieldsEntry => ({
  manager: 'helm',
  operation: 'Update',
  time,
  fieldsV1: fields,
});

test('what an adoption left to Helm is no work of its own; a field of ours, or a later write, is', () => {
  const [first, then] = ['2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z'];
  const left: JsonObject = { 'f:metadata': { 'f:annotations': { '.': {}, 'f:meta.helm.sh/release-name': {} } } };
  const spec: JsonObject = {
    'f:metadata': { 'f:annotations': { '.': {}, 'f:keelson.dev~1id': {} } },
    'f:spec': { 'f:replicas': {} },
  };
  const active = (...managedFields: ManagedFieldsEntry[]): number =>
    activeOwners({ annotations: { 'meta.helm.sh/release-name': 'net' }, managedFields }).length;
  assert.is(active(helm(left, first), ours(spec, then)), 0);
  assert.is(active(helm({ ...left, 'f:spec': { 'f:replicas': {} } }, first), ours(spec, then)), 1);
  assert.is(active(helm({ 'f:spec': {} }, first), ours(spec, then)), 1, 'held whole by one of them');
  assert.is(active(helm(left, then), ours(spec, first)), 1, 'it wrote after us');
});

test('a mark says whose an object was, a mark and a manager whose it is', () => {
  for (const [what, metadata, marked, active] of cases) {
    assert.equal(markedOwners(metadata), marked, what);
    assert.equal(
      activeOwners(metadata).map(({ manager }) => manager),
      active,
      what,
    );
  }
});

test('who wrote a status lately reconciles the object; who wrote it long ago, or its spec, does not', () => {
  const now = Date.parse('2026-01-01T01:00:00Z');
  const of = (...managedFields: ManagedFieldsEntry[]) =>
    foreignReconciler({ apiVersion: 'v1', kind: 'X', metadata: { managedFields } }, now);
  const recent = '2026-01-01T00:55:00Z';
  assert.is(of({ manager: 'keelson-status', subresource: 'status', time: recent }), undefined);
  assert.is(of({ manager: 'kubectl', time: recent }), undefined);
  assert.is(of({ manager: 'old-operator', subresource: 'status', time: '2026-01-01T00:40:00Z' }), undefined);
  assert.is(of({ manager: 'old-operator', subresource: 'status', time: recent }), 'old-operator');
});

test.run();
