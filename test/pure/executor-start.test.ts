import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import type { Credentials } from '../../executor/kube/credentials.ts';
import { TransportError } from '../../executor/kube/transport.ts';
import { runExecutor } from '../../executor/run.ts';

test('options for test clusters while the API server is away: that is said, and not that this is none', async () => {
  const never = (): Promise<Credentials> => Promise.reject(new Error('no credentials are asked for'));
  const started = runExecutor(
    {
      credentials: { current: never, renewed: never },
      // Pauses between attempts take no time here.
      clock: { ...systemClock, sleep: async () => undefined },
      random: () => 0,
      uniqueId: () => 'x',
      identity: 'test',
      testLeaseMs: 3_000,
      wrapTransport: () => () => Promise.reject(new TransportError('nobody answers', false)),
    },
    new AbortController().signal,
  );
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

test.run();
