import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KubeClient } from '../../executor/kube/client.ts';
import { captureInventory } from '../../executor/observe/inventory.ts';

/** What `keelson inventory` says of something that answers in place of an API server. */

const message = 'discovery of v1: 200 <html>';
const clientWith = (version: object): KubeClient =>
  ({
    get: async () => ({ type: 'unavailable', message, mayHaveHappened: false }),
    list: async () => ({ type: 'unavailable', message, mayHaveHappened: false }),
    getPath: async () => version,
  }) as unknown as KubeClient;

async function told(version: object): Promise<string | undefined> {
  const { signal } = new AbortController();
  const input = { client: clientWith(version), signal, cluster: 'c', namespace: 'n', labels: new Set<string>() };
  const captured = await captureInventory(input);
  assert.is(captured.ok, false);
  const problems = captured.ok ? [] : captured.problems;
  assert.ok(problems.length >= 4, 'all problems at once');
  return problems.find((problem) => problem.message.includes('version'))?.message;
}

test('a page, an empty answer and a refusal are told, and break nothing', async () => {
  for (const text of ['<html>log in</html>', '', 'null', '[]', '{}', '{"gitVersion":7}'])
    assert.is(await told({ type: 'text', text }), 'the version of the API server: it names none', text);
  assert.is(await told({ type: 'absent' }), 'the version of the API server: no answer');
  assert.is(await told({ type: 'forbidden', message: '403 may not' }), 'the version of the API server: 403 may not');
});

test.run();
