import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { getAt, isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { foldManagers } from '../../executor/apply/adopt-fields.ts';
import { asLive } from '../../executor/apply/adopt-judge.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../executor/kube/types.ts';

const intent: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'central', namespace: 'demo', labels: { app: 'x', 'app.kubernetes.io/managed-by': 'keelson' } },
  spec: {
    replicas: 3,
    template: {
      spec: {
        containers: [
          { name: 'main', image: 'host/app@sha256:a', ports: [{ containerPort: 80, protocol: 'TCP' }] },
          { name: 'side', image: 'host/side' },
        ],
      },
    },
  },
};

const entry = (manager: string, fieldsV1: JsonObject, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
  manager,
  operation: 'Update',
  apiVersion: 'apps/v1',
  fieldsType: 'FieldsV1',
  fieldsV1,
  ...more,
});

const container = (name: string, fields: JsonObject): JsonObject => ({
  [`k:{"name":"${name}"}`]: { '.': {}, ...fields },
});

const helm = entry('helm', {
  'f:metadata': {
    'f:annotations': { '.': {}, 'f:meta.helm.sh/release-name': {} },
    'f:labels': { '.': {}, 'f:app': {}, 'f:app.kubernetes.io/managed-by': {}, 'f:helm.sh/chart': {} },
  },
  'f:spec': {
    'f:replicas': {},
    'f:paused': {},
    'f:template': {
      'f:spec': {
        'f:containers': {
          ...container('main', {
            'f:image': {},
            'f:ports': { '.': {}, 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
          }),
          ...container('foreign', { 'f:image': {} }),
        },
      },
    },
  },
});

test('what the intent names goes to our entry; what it does not stays where it was', () => {
  const folded = foldManagers([helm], intent, ['helm']);
  assert.equal(folded?.from, ['helm']);
  const [left, ours] = folded?.entries ?? [];
  assert.equal(left?.fieldsV1, {
    'f:metadata': {
      'f:annotations': { '.': {}, 'f:meta.helm.sh/release-name': {} },
      'f:labels': { 'f:helm.sh/chart': {} },
    },
    'f:spec': {
      'f:paused': {},
      'f:template': { 'f:spec': { 'f:containers': container('foreign', { 'f:image': {} }) } },
    },
  });
  assert.equal([ours?.manager, ours?.operation, ours?.apiVersion], ['keelson', 'Apply', 'apps/v1']);
  assert.equal(ours?.fieldsV1, {
    'f:metadata': { 'f:labels': { '.': {}, 'f:app': {}, 'f:app.kubernetes.io/managed-by': {} } },
    'f:spec': {
      'f:replicas': {},
      'f:template': {
        'f:spec': {
          'f:containers': container('main', {
            'f:image': {},
            'f:ports': { '.': {}, 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
          }),
        },
      },
    },
  });
  assert.is(foldManagers(folded?.entries ?? [], intent, ['helm']), undefined, 'done once');
});

test('only listed managers give up, never a status, never in the words of another version', () => {
  const spec = { 'f:spec': { 'f:replicas': {} } };
  const entries = [
    entry('kubectl', spec),
    entry('helm', { 'f:status': { 'f:replicas': {} } }, { subresource: 'status' }),
    entry('helm', spec, { apiVersion: 'apps/v1beta2' }),
  ];
  assert.is(foldManagers(entries, intent, ['helm']), undefined);
  assert.equal(foldManagers(entries, intent, ['kubectl'])?.entries.length, 3);
  const applied = [entry('kubectl', spec, { operation: 'Apply' }), entry('kubectl', spec, { subresource: 'scale' })];
  const folded = foldManagers(applied, intent, ['kubectl']);
  assert.equal(
    folded?.entries.map(({ manager }) => manager),
    ['keelson'],
    'an entry that held nothing else goes',
  );
});

/** Leaves of a tree of fields, as paths. */
const leaves = (fields: JsonObject, at = ''): string[] =>
  Object.entries(fields).flatMap(([step, child]) =>
    isObject(child) && Object.keys(child).length > 0 ? leaves(child, `${at}/${step}`) : [`${at}/${step}`],
  );

const anyName = fc.constantFrom('a', 'b', 'c');
const { tree } = fc.letrec<{ tree: JsonObject; node: JsonObject }>((tie) => ({
  node: fc.oneof({ maxDepth: 3 }, fc.constant({}), tie('tree')),
  tree: fc.dictionary(
    anyName.map((name) => `f:${name}`),
    tie('node'),
    { minKeys: 1, maxKeys: 3 },
  ),
}));
const anyIntent = fc.object({ key: anyName, maxDepth: 3, values: [fc.integer()] }) as fc.Arbitrary<JsonObject>;

test('no field is lost or made up: every one is afterwards where it was, or ours', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('helm', 'kubectl', 'other'), tree), { maxLength: 4 }),
      anyIntent,
      (held, body) => {
        const object = { ...body, apiVersion: 'apps/v1', kind: 'X', metadata: { name: 'x' } } as KubeObject;
        const entries = held.map(([manager, fields]) => entry(manager, fields));
        const folded = foldManagers(entries, object, ['helm', 'kubectl']);
        const after = folded?.entries ?? entries;
        const all = (list: readonly ManagedFieldsEntry[]): string[] =>
          [...new Set(list.flatMap(({ fieldsV1 }) => leaves(fieldsV1 ?? {})))].sort();
        // A field that one holds whole and another in parts reads as its parts where both come together.
        const covers = (outer: readonly string[], inner: readonly string[]): boolean =>
          inner.every((path) => outer.some((other) => other === path || other.startsWith(`${path}/`)));
        assert.ok(covers(all(after), all(entries)) && covers(all(entries), all(after)));
        const others = (list: readonly ManagedFieldsEntry[]) => list.filter(({ manager }) => manager === 'other');
        assert.equal(others(after), others(entries));
        for (const { manager, fieldsV1 } of after)
          if (manager === 'helm' || manager === 'kubectl')
            for (const path of leaves(fieldsV1 ?? {}))
              assert.ok(entries.some((from) => from.manager === manager && leaves(from.fieldsV1 ?? {}).includes(path)));
      },
    ),
    { numRuns: 500 },
  );
});

test('for the marks, what differs is sent as it is in the cluster', () => {
  const live = {
    ...intent,
    spec: {
      replicas: 3,
      template: {
        spec: {
          containers: [
            { name: 'side', image: 'host/side' },
            { name: 'main', image: 'docker.io/app:v1' },
          ],
        },
      },
    },
  } as KubeObject;
  const sent = asLive(intent, live, ['.spec.template.spec.containers[name="main"].image']);
  const containers = getAt(sent, '/spec/template/spec/containers') as JsonObject[];
  assert.equal(
    containers.map(({ name, image }) => `${String(name)} ${String(image)}`),
    ['main docker.io/app:v1', 'side host/side'],
  );
});

test.run();
