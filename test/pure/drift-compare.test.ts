import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { Answers, boundIntents } from '../../executor/apply/drift/bound.ts';
import { compare, fieldText } from '../../executor/apply/drift/compare.ts';
import { lastWriter, whoTook, withoutTaken } from '../../executor/apply/drift/holders.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../executor/kube/types.ts';
import { item } from './executor-support.ts';

const image = (name: string): JsonObject => ({ 'f:image': {}, 'f:name': {}, '.': {}, ...(name === '' ? {} : {}) });

const ours = (fieldsV1: JsonObject): ManagedFieldsEntry => ({ manager: 'keelson', operation: 'Apply', fieldsV1 });
const theirs = (manager: string, fieldsV1: JsonObject, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
  manager,
  operation: 'Update',
  fieldsV1,
  ...more,
});

const intent: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'a', namespace: 'demo', labels: { app: 'a' } },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'a' } },
    template: {
      spec: {
        containers: [{ name: 'main', image: 'x', args: ['-v', '1'], resources: { limits: { cpu: '1000m' } } }],
        volumes: [{ name: 'tmp', emptyDir: {} }],
      },
    },
  },
};

const fields: JsonObject = {
  'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
  'f:spec': {
    'f:replicas': {},
    'f:selector': {},
    'f:template': {
      'f:spec': {
        'f:containers': {
          'k:{"name":"main"}': { ...image('main'), 'f:args': {}, 'f:resources': { 'f:limits': { 'f:cpu': {} } } },
        },
        'f:volumes': { 'k:{"name":"tmp"}': { '.': {}, 'f:name': {}, 'f:emptyDir': {} } },
      },
    },
  },
};

/** The object as a server answers it: defaults, an injected container, its own fields. */
function served(change: (object: KubeObject) => void = () => undefined): KubeObject {
  const object = structuredClone(intent);
  const { template } = object.spec as { template: { spec: { containers: JsonObject[]; [key: string]: JsonValue } } };
  template.spec.containers.unshift({ name: 'injected', image: 'y' });
  template.spec.restartPolicy = 'Always';
  object.metadata = {
    ...object.metadata,
    uid: 'u',
    resourceVersion: '7',
    annotations: { theirs: '1' },
    managedFields: [ours(fields)],
  };
  object.status = { replicas: 1 };
  change(object);
  return object;
}

const main = (object: KubeObject): JsonObject =>
  (object.spec as unknown as { template: { spec: { containers: JsonObject[] } } }).template.spec.containers.find(
    ({ name }) => name === 'main',
  ) as JsonObject;

const differing = (live: KubeObject, wanted = intent): string[] => {
  const compared = compare(wanted, live);
  return compared.same ? [] : compared.differences.map(({ path }) => fieldText(path));
};

test('what the intent does not name is nobody’s drift: defaults, injected containers, foreign annotations, status', () => {
  assert.equal(differing(served()), []);
});

test('a named field that changed, vanished or lost its element is told by its path', () => {
  const spec = (object: KubeObject): JsonObject => object.spec as JsonObject;
  const cases: [(object: KubeObject) => void, string[]][] = [
    [(o) => Object.assign(spec(o), { replicas: 5 }), ['.spec.replicas']],
    [(o) => Object.assign(main(o), { image: 'z' }), ['.spec.template.spec.containers[name="main"].image']],
    [(o) => Object.assign(main(o), { args: ['-v'] }), ['.spec.template.spec.containers[name="main"].args']],
    [(o) => Object.assign(main(o), { name: 'other' }), ['.spec.template.spec.containers[name="main"]']],
    [(o) => Object.assign(o.metadata, { labels: {} }), ['.metadata.labels.app']],
    [(o) => Object.assign(o.metadata, { labels: undefined }), ['.metadata.labels.app']],
    // The server holds a selector as one value: a further label is a change of it.
    [(o) => Object.assign(spec(o), { selector: { matchLabels: { app: 'a', b: 'c' } } }), ['.spec.selector']],
  ];
  for (const [change, expected] of cases) assert.equal(differing(served(change)), expected);
});

test('a number that canonical JSON has no text for is a difference as any other', () => {
  const live = (replicas: number): KubeObject => ({ ...intent, spec: { ...(intent.spec as JsonObject), replicas } });
  const compared = compare(intent, live(2 ** 53));
  assert.ok(!compared.same);
  assert.equal(
    compared.differences.map(({ pointer }) => pointer),
    ['/spec/replicas'],
  );
  const others = [compare(intent, live(2 ** 60)), compare(intent, live(3))];
  for (const other of others) assert.ok(!other.same && other.hash !== compared.hash);
});

test('a list of ports is matched by its keys, also where the intent leaves one to its default', () => {
  const service = (ports: JsonObject[]): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's', namespace: 'demo' },
    spec: { ports },
  });
  const live = service([
    { port: 443, protocol: 'TCP', targetPort: 8443, nodePort: 30001 },
    { port: 80, protocol: 'UDP', targetPort: 80 },
    { port: 80, protocol: 'TCP', targetPort: 80, name: 'http' },
  ]);
  live.metadata.managedFields = [
    ours({
      'f:spec': {
        'f:ports': {
          'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
          'k:{"port":443,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
        },
      },
    }),
  ];
  assert.equal(differing(live, service([{ port: 443 }, { port: 80, protocol: 'TCP' }])), []);
  assert.equal(differing(live, service([{ port: 443, targetPort: 9 }])), [
    '.spec.ports[port=443,protocol="TCP"].targetPort',
  ]);
  assert.equal(differing(live, service([{ port: 81 }])), ['.spec.ports[port=81]']);
  // The one that names its protocol chooses first, wherever it stands; no element is meant twice.
  assert.equal(
    differing(
      live,
      service([
        { port: 80, name: 'http' },
        { port: 80, protocol: 'UDP' },
      ]),
    ),
    [],
  );
  assert.equal(differing(live, service([{ port: 443 }, { port: 443 }])), ['.spec.ports[port=443]']);
});

test('values of a set are looked for one by one', () => {
  const object = (finalizers: string[]): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', finalizers },
  });
  const live = object(['theirs/x', 'ours/y']);
  live.metadata.managedFields = [ours({ 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"ours/y"': {} } } })];
  assert.equal(differing(live, object(['ours/y'])), []);
  assert.equal(differing(live, object(['ours/z'])), ['.metadata.finalizers[="ours/z"]']);
});

test('an answer of the server settles how it writes a value; a later change shows all the same', () => {
  const [bound] = [...boundIntents([item({ body: intent })], () => ({ value: undefined })).values()];
  if (bound === undefined) throw new Error('nothing bound');
  const wanted = { ...bound, intent };
  const answers = new Answers();
  const answer = served((o) => Object.assign(main(o), { resources: { limits: { cpu: '1' } } }));
  assert.equal(differing(answer), ['.spec.template.spec.containers[name="main"].resources.limits.cpu']);
  answers.take(wanted, answer);
  const hashOf = (live: KubeObject): string | undefined => {
    const compared = compare(intent, live);
    return compared.same ? undefined : compared.hash;
  };
  assert.is(hashOf(answer), answers.settled(wanted));
  const later = served((o) => Object.assign(main(o), { resources: { limits: { cpu: '2' } } }));
  assert.is.not(hashOf(later), answers.settled(wanted));
  // Another intent asks anew; what was given up belongs to the old one.
  assert.is(answers.settled({ ...wanted, key: 'other' }), undefined);
  answers.give(wanted, ['/spec/replicas']);
  assert.is((answers.intent(wanted).spec as JsonObject).replicas, undefined);
  assert.is((answers.intent({ ...wanted, key: 'other' }).spec as JsonObject).replicas, 2);
});

test('who took a field: the Update that holds it and alone; what we hold was taken by nobody', () => {
  const scaled = served((o) => {
    (o.spec as JsonObject).replicas = 5;
    const { 'f:replicas': _, ...rest } = fields['f:spec'] as JsonObject;
    o.metadata.managedFields = [
      ours({ ...fields, 'f:spec': rest }),
      theirs('kubectl', { 'f:spec': { 'f:replicas': {} } }, { subresource: 'scale' }),
      theirs('kube-controller-manager', { 'f:status': { 'f:replicas': {} } }, { subresource: 'status' }),
    ];
  });
  const compared = compare(intent, scaled);
  if (compared.same) throw new Error('no difference');
  const entries = scaled.metadata.managedFields ?? [];
  const taken = whoTook(entries, compared.differences);
  assert.equal(
    taken.map(({ holders }) => holders),
    [[{ entry: 1, manager: 'kubectl', operation: 'Update' }]],
  );
  assert.equal(
    withoutTaken(entries, taken).map(({ manager }) => manager),
    ['keelson', 'kube-controller-manager'],
  );
  const normalised = served((o) => Object.assign(main(o), { resources: { limits: { cpu: '1' } } }));
  const doubt = compare(intent, normalised);
  assert.equal(doubt.same || whoTook(normalised.metadata.managedFields ?? [], doubt.differences)[0]?.holders, []);
});

test('an entry gives up exactly what it took, and keeps the rest', () => {
  const edited = theirs(
    'kubectl-edit',
    {
      'f:metadata': { 'f:annotations': { 'f:note': {} } },
      'f:spec': {
        'f:replicas': {},
        'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"main"}': { 'f:image': {} } } } },
      },
    },
    { time: '2026-01-02T00:00:00Z' },
  );
  const path = ['f:spec', 'f:template', 'f:spec', 'f:containers', 'k:{"name":"main"}', 'f:image'];
  const [left] = withoutTaken([edited], whoTook([edited], [{ path, pointer: '', missing: false }]));
  assert.equal(left?.fieldsV1, {
    'f:metadata': { 'f:annotations': { 'f:note': {} } },
    'f:spec': { 'f:replicas': {} },
  });
  assert.is(lastWriter([theirs('older', {}, { time: '2026-01-01T00:00:00Z' }), edited, ours(fields)]), 'kubectl-edit');
  assert.is(lastWriter([ours(fields)]), 'somebody');
});

/** managedFields of a value whose lists are atomic, and the value as a server may write it. */
const scalar = fc.oneof(fc.string({ maxLength: 6 }), fc.integer({ min: 0, max: 9999 }), fc.boolean());
const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const tree = fc.letrec<{ node: JsonValue }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(scalar, { maxLength: 3 }),
    fc.dictionary(name, tie('node'), { maxKeys: 4 }),
    fc.uniqueArray(name, { maxLength: 3 }).map((names) => names.map((n): JsonObject => ({ name: n, value: n }))),
  ),
})).node;

function ownedBy(value: JsonValue): JsonObject {
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [`f:${k}`, ownedBy(v ?? null)]));
  if (Array.isArray(value) && value.length > 0 && value.every((v) => isObject(v) && typeof v.name === 'string'))
    return Object.fromEntries(
      value.map((v) => [`k:${JSON.stringify({ name: (v as JsonObject).name ?? null })}`, { '.': {}, ...ownedBy(v) }]),
    );
  return {};
}

/** Rewrites some values, adds members and elements: what servers do to what they are sent. */
function normalised(value: JsonValue, random: () => number): JsonValue {
  if (isObject(value)) {
    const kept = Object.entries(value).filter(
      ([, v]) => !(isObject(v) && Object.keys(v).length === 0 && random() < 0.3),
    );
    const members = kept.map(([k, v]): [string, JsonValue] => [
      k,
      k === 'name' ? (v ?? null) : normalised(v ?? null, random),
    ]);
    return { ...Object.fromEntries(members), ...(random() < 0.5 ? { defaulted: 'by the server' } : {}) };
  }
  if (Array.isArray(value)) {
    const items = value.map((v) => normalised(v, random));
    return random() < 0.3 ? [{ name: 'injected' }, ...items] : items;
  }
  return typeof value === 'number' && random() < 0.5 ? String(value) : value;
}

test('property: what the server answered is never drift, and whatever differs from its answer is told', () => {
  fc.assert(
    fc.property(
      fc.dictionary(name, tree, { minKeys: 1, maxKeys: 4 }),
      fc.infiniteStream(fc.double({ min: 0, max: 0.999 })),
      (spec, stream) => {
        const random = (): number => stream.next().value ?? 0;
        const wanted: KubeObject = { apiVersion: 'x/v1', kind: 'X', metadata: { name: 'a' }, spec: spec as JsonObject };
        const live: KubeObject = {
          ...wanted,
          spec: normalised(spec as JsonObject, random) as JsonObject,
          metadata: { name: 'a', managedFields: [ours({ 'f:spec': ownedBy(spec as JsonObject) })] },
        };
        const bound = { item: item(), intent: wanted, key: 'k' };
        const answers = new Answers();
        answers.take(bound, live);
        const again = compare(wanted, structuredClone(live));
        assert.ok(again.same || again.hash === answers.settled(bound));
        // What is sent and comes back to the letter needs no answer at all.
        assert.ok(compare(wanted, { ...wanted, metadata: live.metadata }).same);
        // Each named scalar, changed to what nobody sent, shows.
        for (const at of Object.keys(spec)) {
          const changed = structuredClone(live);
          (changed.spec as JsonObject)[at] = 'changed by a hand';
          const seen = compare(wanted, changed);
          assert.ok(!seen.same && seen.hash !== answers.settled(bound), `a change of ${at} went unseen`);
        }
      },
    ),
  );
});

test.run();
