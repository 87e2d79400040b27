import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { bindsNothing } from '../../executor/apply/bind.ts';
import { dryRun } from '../../executor/apply/dryrun.ts';
import type { Need } from '../../executor/apply/need.ts';
import { isDenied, isUndryable, neededServices, webhookTrouble } from '../../executor/apply/webhook.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { item, release } from './executor-support.ts';

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

const openapi = {
  components: {
    schemas: {
      configMap: {
        type: 'object',
        properties: {
          data: { type: 'object', additionalProperties: { type: 'string' } },
          metadata: { type: 'object' },
          apiVersion: {},
          kind: {},
        },
        'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'ConfigMap' }],
      },
    },
  },
};

/** An API server whose webhook takes no part in dry runs. */
const undryable = (live: KubeObject | undefined): KubeClient =>
  ({
    apply: () =>
      Promise.resolve({
        type: 'invalid',
        message: 'dry run of x: 400 admission webhook "w" does not support dry run',
        causes: [],
      }),
    get: () => Promise.resolve(live === undefined ? { type: 'absent' } : { type: 'found', object: live }),
    getPath: () => Promise.resolve({ type: 'text', text: JSON.stringify(openapi) }),
  }) as unknown as KubeClient;

test('a webhook that takes no part in dry runs: that object alone is judged by its schema, and by a read for whose it is', async () => {
  const judge = (body: object, need: Need, live?: KubeObject) => {
    const it = item({ body: body as Partial<KubeObject> });
    return dryRun({
      client: undryable(live),
      release,
      items: [it],
      needs: new Map([[it.id, need]]),
      bind: bindsNothing,
      namespace: 'system',
      signal: new AbortController().signal,
      final: true,
    });
  };
  const meta = { name: 'a', namespace: 'demo', resourceVersion: '7' };
  const object = (metadata: object): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...meta, ...metadata },
  });
  const fresh: Need = { need: 'write', why: 'new' };
  const known: Need = { need: 'write', why: 'changed', uid: 'uid-1' };
  const good = { data: { a: 'b' } };
  const verdictOf = async (made: ReturnType<typeof judge>): Promise<unknown> => {
    const { judged, problems, confidence } = await made;
    const [one] = judged.values();
    return problems.length > 0
      ? problems.map(({ reason }) => reason)
      : [one?.verdict.verdict, one?.partial, confidence];
  };
  assert.equal(await verdictOf(judge(good, fresh)), ['new', true, 'partial']);
  assert.equal(await verdictOf(judge(good, known, object({ uid: 'uid-1' }))), ['ours', true, 'partial']);
  assert.equal(await verdictOf(judge({ data: { a: 3 } }, fresh)), ['ObjectInvalid'], 'never skipped silently');
  assert.equal(await verdictOf(judge(good, fresh, object({ uid: 'uid-9' }))), ['AlreadyExists']);
  const ownerReferences = [{ apiVersion: 'v1', kind: 'App', name: 'x', uid: 'o', controller: true }];
  assert.equal(await verdictOf(judge(good, known, object({ uid: 'uid-1', ownerReferences }))), ['OwnedByAnother']);
});

test.run();
