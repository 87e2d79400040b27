import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { backoff } from '../../constructs/lib/backoff.ts';
import { formatDuration, parseDuration } from '../../constructs/lib/duration.ts';
import { formatImageRef, isPinned, parseImageRef } from '../../constructs/lib/imageref.ts';
import { boundedName, describeObject, manifestFileName, objectId, parseObjectId } from '../../constructs/lib/names.ts';
import { formatProblems, ProblemError, refuseProblems } from '../../constructs/lib/problems.ts';
import { redact, redactObject } from '../../constructs/lib/redact.ts';
import { WaitTimeout, waitFor } from '../../constructs/lib/wait.ts';

test('durations are read and written as Go does', () => {
  for (const [text, ms] of [
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['250ms', 250],
    ['1.5s', 1500],
    ['0', 0],
    ['720h', 2_592_000_000],
  ] as const)
    assert.is(parseDuration(text), ms);
  for (const bad of ['', '1', 's', '-1s', '1d', '1h 2m', '١s']) assert.throws(() => parseDuration(bad), TypeError);
  assert.is(formatDuration(5_400_000), '1h30m0s');
  assert.is(formatDuration(90_000), '1m30s');
  assert.is(formatDuration(250), '250ms');
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 ** 7 }), (s) =>
      assert.is(parseDuration(formatDuration(s * 1000)), s * 1000),
    ),
  );
});

test('backoff grows, is capped and spread', () => {
  const policy = { initialMs: 2000, factor: 2, maxMs: 120_000, jitter: 0.2 };
  assert.is(
    backoff(policy, 0, () => 0.5),
    2000,
  );
  assert.is(
    backoff(policy, 3, () => 0.5),
    16_000,
  );
  assert.is(
    backoff(policy, 500, () => 0.5),
    120_000,
  );
  assert.is(
    backoff(policy, 0, () => 0),
    1600,
  );
});

test('image references come apart and together', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  assert.equal(parseImageRef(`127.0.0.1:5000/kubeovn/kube-ovn:v1.16.2@${digest}`), {
    text: `127.0.0.1:5000/kubeovn/kube-ovn:v1.16.2@${digest}`,
    registry: '127.0.0.1:5000',
    repository: 'kubeovn/kube-ovn',
    tag: 'v1.16.2',
    digest,
  });
  assert.is(parseImageRef('busybox:1')?.registry, undefined);
  assert.is(parseImageRef('kubeovn/kube-ovn')?.repository, 'kubeovn/kube-ovn');
  for (const bad of ['', 'UPPER/x', 'a b', 'x:', 'http://a/b', 'x@sha256:12', '/x', 'a//b'])
    assert.is(parseImageRef(bad), undefined, bad);
  assert.ok(isPinned(`a/b@${digest}`) && !isPinned('a/b:v1'));
  for (const text of ['localhost/x:1', '[::1]:5000/a/b', `a.b/c@${digest}`]) {
    const ref = parseImageRef(text);
    assert.is(ref && formatImageRef(ref), text);
  }
});

test('names and ids', () => {
  const object = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'kube-system', name: 'ovn-central' };
  assert.is(objectId(object), 'apps/Deployment/kube-system/ovn-central');
  assert.is(describeObject(object), 'Deployment.apps kube-system/ovn-central');
  assert.equal(parseObjectId('rbac.authorization.k8s.io/ClusterRole//system:ovn'), {
    group: 'rbac.authorization.k8s.io',
    kind: 'ClusterRole',
    name: 'system:ovn',
  });
  assert.throws(() => parseObjectId('nonsense'), TypeError);
  assert.is(manifestFileName({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name: 'b' }), 'configmap_a_b.yaml');
  const [one, two] = [boundedName(['x'.repeat(70), 'a']), boundedName(['x'.repeat(70), 'b'])];
  assert.ok(one.length <= 63 && two.length <= 63 && one !== two);
});

test('problems are told all at once, sorted, once each, and redacted', () => {
  const problem = { reason: 'Wrong', message: 'password=hunter2 is wrong', file: 'b.yaml', line: 2, remedy: 'mend it' };
  const text = formatProblems([problem, { reason: 'Other', message: 'first', file: 'a.yaml', value: 'x' }, problem]);
  assert.is(
    text,
    '2 problems:\n  a.yaml: first (found "x") [Other]\n  b.yaml:2: password=[redacted] is wrong [Wrong]\n    remedy: mend it',
  );
  assert.throws(
    () => refuseProblems([problem]),
    (error: unknown) => error instanceof ProblemError,
  );
  refuseProblems([]);
});

test('redaction hides credentials of every form', () => {
  const canary = 'CANARY-4242-value';
  for (const text of [
    `Authorization: Bearer ${canary}`,
    `authorization=${canary}`,
    `https://user:${canary}@host/x`,
    `https://${canary}@host/x`,
    `https://host/x?token=${canary}&a=1`,
    `-----BEGIN EC PRIVATE KEY-----\n${canary}\n-----END EC PRIVATE KEY-----`,
    `{"password":"${canary}"}`,
    `X-Amz-Signature=${canary}`,
  ])
    assert.not.match(redact(text), canary);
  const pair = Buffer.from(`bot:${canary}`).toString('base64');
  assert.is(redact(`Basic ${pair} was refused`), 'Basic [redacted] was refused');
  assert.is(redact('Basic authentication is off'), 'Basic authentication is off');
  assert.is(redact(`the password ${canary} is wrong`, [canary]), 'the password [redacted] is wrong');
  const list = { kind: 'List', items: [{ kind: 'Secret', data: { a: canary }, stringData: { b: canary } }] };
  const hidden = JSON.stringify(redactObject(list));
  assert.not.match(hidden, canary);
  assert.match(hidden, '"a"');
});

test('a wait ends by its answer, its limit with what it saw, or its cancel', async () => {
  let now = 0;
  const clock = {
    now: () => now,
    monotonic: () => now,
    async sleep(ms: number, signal?: AbortSignal) {
      signal?.throwIfAborted();
      now += ms;
    },
  };
  let calls = 0;
  assert.is(
    await waitFor({
      what: 'x',
      limitMs: 100,
      intervalMs: 10,
      clock,
      probe: async () => (++calls === 3 ? 'yes' : undefined),
    }),
    'yes',
  );
  const late = waitFor({
    what: 'the moon',
    limitMs: 50,
    intervalMs: 20,
    clock,
    probe: async (saw) => void saw('clouds'),
  });
  const timeout = await late.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.instance(timeout, WaitTimeout);
  assert.match(String(timeout), 'waited 50ms for the moon; last seen: clouds');
  const abort = new AbortController();
  abort.abort(new Error('cancelled'));
  const cancelled = waitFor({
    what: 'x',
    limitMs: 50,
    intervalMs: 20,
    clock,
    signal: abort.signal,
    probe: async () => undefined,
  });
  assert.match(String(await cancelled.catch((error: unknown) => error)), 'cancelled');
});

test.run();
