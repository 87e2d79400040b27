import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { ResourceOutcome } from '../../executor/kube/discovery.ts';
import { handledBy, neededRights } from '../../executor/release/access.ts';
import { retryOfAll } from '../../executor/release/retry.ts';
import { item } from './executor-support.ts';

const { signal } = new AbortController();

/** What is needed for one object of each kind, and which reasons are told, when discovery answers so. */
async function needed(answers: Record<string, ResourceOutcome>, extra: Parameters<typeof item>[0][] = []) {
  const kinds = Object.keys(answers);
  const asked: string[] = [];
  const client = {
    resource: async ({ apiVersion, kind }: { apiVersion: string; kind: string }) => {
      asked.push(kind);
      return answers[kind] ?? { type: 'kindAbsent', apiVersion, kind, message: 'not served' };
    },
  } as unknown as KubeClient;
  const items = [...kinds.map((kind) => item({ kind, apiVersion: 'example.com/v1' })), ...extra.map(item)];
  const twice = [...items, ...kinds.map((kind) => item({ kind, apiVersion: 'example.com/v1', name: 'b' }))];
  const { rights, problems } = await neededRights(client, handledBy(twice, undefined), twice, signal);
  return { asked, problems, resources: [...new Set(rights.map(({ resource }) => resource))] };
}

const served = (kind: string, plural: string): ResourceOutcome => ({
  type: 'resource',
  resource: { apiVersion: 'example.com/v1', kind, plural, namespaced: true, verbs: [], statusSubresource: false },
});
const silent: ResourceOutcome = { type: 'unavailable', message: 'no answer in 5s', mayHaveHappened: false };

test('a kind whose group does not answer is told once, and the payload is tried again', async () => {
  const { problems, resources, asked } = await needed({ Widget: served('Widget', 'widgets'), Gadget: silent });
  assert.equal(resources, ['widgets']);
  assert.equal(asked, ['Widget', 'Gadget']);
  assert.equal(
    problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'ApiUnavailable',
        "whether the executor's account may write Gadget of example.com/v1 is not known: no answer in 5s",
      ],
    ],
  );
  assert.is(retryOfAll(problems), 'retry');
});

test('a denied discovery is told as such; a kind that nobody serves needs no rights', async () => {
  const { problems, resources } = await needed({
    Gadget: { type: 'forbidden', message: 'may not' },
    Gone: { type: 'kindAbsent', apiVersion: 'example.com/v1', kind: 'Gone', message: 'not served' },
  });
  assert.equal(resources, []);
  assert.equal(
    problems.map(({ reason }) => reason),
    ['Forbidden'],
  );
});

test('a definition that comes with the payload tells the plural, whatever discovery says', async () => {
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: 'gadgets.example.com',
    body: { spec: { group: 'example.com', names: { kind: 'Gadget', plural: 'gadgets' } } },
  };
  const { problems, resources } = await needed({ Gadget: silent }, [definition]);
  assert.equal([problems, resources], [[], ['gadgets']]);
});

test.run();
