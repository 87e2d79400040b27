import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { handOver } from '../../executor/courier/takeover.ts';
import type { ManagedFieldsEntry } from '../../executor/kube/types.ts';

/** What becomes of the entries of a courier that was left. */

const entry = (manager: string, fieldsV1: JsonObject, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
  manager,
  operation: 'Apply',
  apiVersion: 'v1',
  fieldsType: 'FieldsV1',
  fieldsV1,
  ...more,
});

test('where the new courier holds nothing, it takes the place of the old one', () => {
  const before = [entry('kustomize-controller', { 'f:data': { 'f:a': {} } })];
  assert.equal(handOver(before, 'argocd-controller'), [entry('argocd-controller', { 'f:data': { 'f:a': {} } })]);
});

test('where both hold fields, the new one holds all of them, each once', () => {
  const before = [
    entry('argocd-controller', { 'f:data': { '.': {}, 'f:a': {} } }),
    entry('kustomize-controller', { 'f:data': { 'f:a': {}, 'f:b': {} }, 'f:metadata': { 'f:labels': { 'f:x': {} } } }),
    entry('keelson-deliver', { 'f:data': { 'f:c': {} } }),
  ];
  assert.equal(handOver(before, 'argocd-controller'), [
    entry('argocd-controller', {
      'f:data': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} },
      'f:metadata': { 'f:labels': { 'f:x': {} } },
    }),
  ]);
});

test('nobody else is touched: people, the executor, controllers, a status, another version', () => {
  const others = [
    entry('kubectl-annotate', { 'f:metadata': {} }, { operation: 'Update' }),
    entry('kustomize-controller', { 'f:spec': {} }, { operation: 'Update' }),
    entry('kustomize-controller', { 'f:status': {} }, { subresource: 'status' }),
    entry('keelson', { 'f:metadata': { 'f:finalizers': {} } }),
  ];
  assert.is(handOver(others, 'argocd-controller'), undefined);
  const own = entry('argocd-controller', { 'f:spec': {} }, { apiVersion: 'v2' });
  assert.is(handOver([own, entry('kustomize-controller', { 'f:data': {} })], 'argocd-controller'), undefined);
  const moved = handOver([...others, entry('keelson-deliver', { 'f:data': {} })], 'kustomize-controller');
  assert.equal(moved, [...others, entry('kustomize-controller', { 'f:data': {} })]);
});

test('a courier that is alone hands nothing over, and a second time there is nothing left', () => {
  const alone = [entry('kustomize-controller', { 'f:data': {} })];
  assert.is(handOver(alone, 'kustomize-controller'), undefined);
  const once = handOver(alone, 'keelson-deliver');
  assert.ok(once);
  assert.is(handOver(once ?? [], 'keelson-deliver'), undefined);
});

test.run();
