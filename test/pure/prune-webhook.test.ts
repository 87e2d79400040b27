import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { isDenied, isUndryable, neededServices, webhookTrouble } from '../../executor/apply/webhook.ts';
import type { KubeObject } from '../../executor/kube/types.ts';

test('a webhook that could not be called is named with the Service behind it', () => {
  const refused =
    'apply of ConfigMap demo/a: 500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://guard.hooks.svc:443/check?timeout=1s": dial tcp 10.0.0.9:443: connect: connection refused';
  assert.equal(webhookTrouble(refused)?.webhook, 'a.example.com');
  assert.equal(webhookTrouble(refused)?.service, { namespace: 'hooks', name: 'guard' });
  const elsewhere = 'failed calling webhook "b": failed to call webhook: Post "https://127.0.0.1:9/x": refused';
  assert.equal([webhookTrouble(elsewhere)?.webhook, webhookTrouble(elsewhere)?.service], ['b', undefined]);
  assert.is(webhookTrouble('etcdserver: request timed out'), undefined);
});

test('who denies is told apart from who may not', () => {
  assert.ok(isDenied('delete of ConfigMap demo/a: 400 admission webhook "x.example.com" denied the request: no'));
  assert.ok(isDenied("delete: 422 x is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"));
  assert.not.ok(isDenied('delete: 403 configmaps "a" is forbidden: User "x" cannot delete resource "configmaps"'));
  assert.ok(isUndryable('apply: 400 admission webhook "x.example.com" does not support dry run'));
});

test('only webhooks that fail closed need their Service', () => {
  const hook = (name: string, more: object = {}) => ({
    name,
    clientConfig: { service: { namespace: 'hooks', name } },
    ...more,
  });
  const config = (webhooks: object[], kind = 'ValidatingWebhookConfiguration'): KubeObject =>
    ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      metadata: { name: 'c' },
      webhooks,
    }) as unknown as KubeObject;
  const all = [
    hook('open', { failurePolicy: 'Ignore' }),
    hook('shut'),
    hook('shut', { failurePolicy: 'Fail' }),
    { name: 'far', clientConfig: { url: 'https://example.com' } },
  ];
  assert.equal(neededServices(config(all)), [{ namespace: 'hooks', name: 'shut' }]);
  assert.equal(neededServices(config(all, 'ConfigMap')), []);
});

test.run();
