import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import type { Credentials } from '../../executor/kube/credentials.ts';
import { TransportError } from '../../executor/kube/transport.ts';
import { type ExecutorOptions, runExecutor } from '../../executor/run.ts';
import { discoveryAnswer, scriptedTransport } from './fakeTransport.ts';

/** Starts where the API server is away. */
function starting(more: Partial<ExecutorOptions> = {}): Promise<void> {
  const never = (): Promise<Credentials> => Promise.reject(new Error('no credentials are asked for'));
  return runExecutor(
    {
      credentials: { current: never, renewed: never },
      // Pauses between attempts take no time here.
      clock: { ...systemClock, sleep: async () => undefined },
      random: () => 0,
      uniqueId: () => 'x',
      identity: 'test',
      wrapTransport: () => () => Promise.reject(new TransportError('nobody answers', false)),
      ...more,
    },
    new AbortController().signal,
  );
}

test('options for test clusters while the API server is away: that is said, and not that this is none', async () => {
  const started = starting({ testLeaseMs: 3_000 });
  const error: unknown = await started.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.instance(error, ProblemError);
  const { problems } = error as ProblemError;
  assert.equal(
    problems.map(({ reason }) => reason),
    ['ApiUnavailable'],
  );
  assert.match(problems[0]?.message ?? '', /keelson-system .*could not be read.*nobody answers/);
});

test('options for test clusters are refused, each in its own words, where the namespace does not say that this is one', async () => {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'keelson-system', uid: 'u' } };
  const { transport } = scriptedTransport(({ path }) => discoveryAnswer(path) ?? { status: 200, body: namespace });
  const refused: readonly [Partial<ExecutorOptions>, string][] = [
    [{ bypassGates: ['OVNDBReady'] }, 'gates OVNDBReady can not be bypassed'],
    [{ testLeaseMs: 3_000 }, 'Leases can not be shortened'],
    [{ testObserveMs: 1_000 }, 'rounds of observation can not be hastened'],
  ];
  for (const [options, words] of refused) {
    const error: unknown = await starting({ ...options, wrapTransport: () => transport }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.instance(error, ProblemError);
    const [problem] = (error as ProblemError).problems;
    assert.is(problem?.reason, 'BypassRefused', problem?.message);
    assert.is(problem?.message, `${words}: namespace keelson-system is not labelled keelson.dev/test-cluster=true`);
    assert.match(problem?.remedy ?? '', 'start the executor without --test-');
  }
});

test('a port of metrics that somebody else has is told, and the executor goes on without them', async () => {
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const said: string[] = [];
  const listening: number[] = [];
  try {
    const { port } = other.address() as AddressInfo;
    const error: unknown = await starting({
      testLeaseMs: 3_000,
      metricsPort: port,
      log: (level, message) => said.push(`${level} ${message}`),
      onListening: (at) => listening.push(at),
    }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.instance(error, ProblemError, 'it came as far as without the port');
    assert.ok(
      said.some((line) => /^warn metrics are not served: .*EADDRINUSE/.test(line)),
      said.join('\n'),
    );
    assert.equal(listening, []);
  } finally {
    other.close();
  }
});

test.run();
