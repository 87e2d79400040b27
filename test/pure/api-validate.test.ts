import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { rulesOf, type StructuralSchema } from '../../constructs/api/crd.ts';
import { applyDefaults, dropDefaults } from '../../constructs/api/defaults.ts';
import { baseDigest, specDigest } from '../../constructs/api/digests.ts';
import { nearest } from '../../constructs/api/nearest.ts';
import { documentSchemas, findDocumentSchema } from '../../constructs/api/schemas.ts';
import { validateDocument } from '../../constructs/api/validate.ts';
import { canonicalJson, isObject, type JsonObject, type JsonValue, setAt } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { celCases } from './cel-cases.ts';
import { address, addressClass, approval, claim, installation, recovery, release } from './cel-objects.ts';

const problemsOf = (value: JsonObject, old?: JsonObject): string[] => {
  const read = validateDocument(value, old === undefined ? {} : { old });
  return read.ok ? [] : read.problems.map((p) => `${p.reason} ${p.path ?? ''}: ${p.message}`);
};

for (const [n, { rule, accepted, refused, old }] of celCases.entries())
  test(`rule ${n}: ${rule}`, () => {
    if (old !== undefined) assert.equal(problemsOf(old), [], 'the object before the change');
    assert.equal(problemsOf(accepted, old), [], 'accepted');
    const found = problemsOf(refused, old);
    assert.ok(
      found.some((problem) => problem.startsWith('RuleViolated') && problem.endsWith(`: ${rule}`)),
      `refused with: ${found.join('; ') || 'nothing'}`,
    );
    assert.not.ok(
      found.some((problem) => problem.includes('could not be evaluated')),
      found.join('; '),
    );
  });

test('every CEL rule of a served kind has a case, and every message is used once', () => {
  const messages = documentSchemas
    .filter((d) => d.served)
    .flatMap((d) => rulesOf(d.schema).map(({ rule }) => rule.message));
  const covered = new Set(celCases.map((c) => c.rule));
  assert.equal(
    messages.filter((message) => !covered.has(message)),
    [],
  );
  assert.equal(
    [...covered].filter((rule) => !messages.includes(rule)),
    [],
  );
  assert.equal(
    messages.filter((message, n) => messages.indexOf(message) !== n),
    [],
  );
});

test('no CEL rule was lost on its way from zod to the schema', () => {
  const counts = Object.fromEntries(documentSchemas.map((d) => [d.kind, rulesOf(d.schema).length]));
  assert.equal(counts, {
    KubeOVNInstallation: 35,
    KubeOVNMemberRemovalApproval: 5,
    KubeOVNRecoveryRequest: 3,
    Release: 4,
    IPAddressClass: 2,
    IPAddress: 7,
    IPAddressClaim: 2,
    Cluster: 6,
    Inventory: 0,
    Lock: 0,
  });
});

const text = `apiVersion: network.keelson.dev/v1alpha1
kind: KubeOVNInstallation
metadata:
  name: prod
spec:
  mode: ful
  verison: v1.16.2
  chart:
    source: ftp://x/kube-ovn.tgz
    digest: sha256:abc
  central:
    replicas: "3"
    memberRequests:
      - name: a
      - name: a
  dataPlane:
    ovsUpdateStrategy: Rolling
`;

test('all problems come at once, with file, line, column, path and remedy', () => {
  const { documents } = parseYaml(text, 'clusters/prod/network.yaml');
  const [document] = documents;
  assert.ok(document);
  const read = validateDocument(document.value, {
    file: 'clusters/prod/network.yaml',
    locate: (path) => document.locate(path),
  });
  assert.is(read.ok, false);
  if (read.ok) return;
  const found = read.problems.map(
    (p) => `${p.line}:${p.column} ${p.path} ${p.reason}${p.remedy === undefined ? '' : ` (${p.remedy})`}`,
  );
  for (const expected of [
    '6:3 spec.mode InvalidValue (did you mean full?)',
    '7:3 spec.verison UnknownField (did you mean version?)',
    '5:1 spec.version RequiredField',
    '9:5 spec.chart.source RuleViolated',
    '10:5 spec.chart.digest InvalidValue',
    '12:5 spec.central.replicas WrongType',
    '15:9 spec.central.memberRequests[1] DuplicateEntry',
    '17:5 spec.dataPlane.ovsUpdateStrategy InvalidValue (did you mean RollingUpdate?)',
  ])
    assert.ok(found.includes(expected), `${expected} not in\n${found.join('\n')}`);
  assert.ok(read.problems.every((p) => p.file === 'clusters/prod/network.yaml' && p.object !== undefined));
});

test('defaults fill in as the server does it, and a second filling changes nothing', () => {
  const read = validateDocument(installation);
  assert.ok(read.ok);
  if (!read.ok) return;
  const spec = read.value.spec as JsonObject;
  assert.equal(spec.central, {
    replicas: 3,
    database: 'raft',
    nodeSelector: { 'node-role.kubernetes.io/control-plane': '' },
  });
  assert.equal(spec.dataPlane, { ovsUpdateStrategy: 'RollingUpdate' });
  assert.equal(read.value.status, { observedGeneration: -1 });
  const again = validateDocument(read.value);
  assert.ok(again.ok && canonicalJson(again.value) === canonicalJson(read.value));
});

test('a null field counts as absent and takes its default', () => {
  const read = validateDocument(setAt(installation, '/spec/central', { replicas: null, database: null }) as JsonObject);
  assert.ok(read.ok);
  if (read.ok) assert.is(((read.value.spec as JsonObject).central as JsonObject).replicas, 3);
});

const schemaOf = (object: JsonObject) => {
  const found = findDocumentSchema(String(object.apiVersion), String(object.kind))?.schema.properties?.spec;
  if (found === undefined) throw new Error('no schema');
  return found;
};

/** Some of the fields of `value`, chosen by `keep`; maps are one value. */
const thin = (schema: StructuralSchema | undefined, value: JsonValue, keep: () => boolean): JsonValue =>
  isObject(value) && schema?.properties !== undefined
    ? Object.fromEntries(
        Object.entries(value)
          .filter(() => keep())
          .map(([key, member]) => [key, thin(schema.properties?.[key], member ?? null, keep)]),
      )
    : value;

test('a spec has one digest, however many of its defaults are written out', () => {
  const samples = [
    installation,
    approval,
    recovery,
    release,
    addressClass,
    address,
    claim,
    ...celCases.map((c) => c.accepted),
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...samples),
      fc.array(fc.boolean(), { minLength: 200, maxLength: 200 }),
      (object, bits) => {
        const schema = schemaOf(object);
        let n = 0;
        // Some of the written-out defaults are taken away again.
        const spec = object.spec as JsonObject;
        const full = applyDefaults(schema, spec) as JsonObject;
        const partial = merge(spec, thin(schema, full, () => bits[n++ % bits.length] ?? true) as JsonObject);
        const kind = { apiVersion: String(object.apiVersion), kind: String(object.kind) };
        assert.is(specDigest(kind, partial), specDigest(kind, spec));
        assert.is(specDigest(kind, full), specDigest(kind, spec));
        assert.equal(applyDefaults(schema, dropDefaults(schema, full)), full);
      },
    ),
  );
});

const merge = (a: JsonObject, b: JsonObject): JsonObject => {
  const result: JsonObject = { ...b };
  for (const [key, value] of Object.entries(a)) {
    const other = result[key];
    result[key] = isObject(value) && isObject(other) ? merge(value, other) : value;
  }
  return result;
};

test('specDigest moves with every field; baseDigest does not with membership', () => {
  const kind = { apiVersion: String(installation.apiVersion), kind: 'KubeOVNInstallation' };
  const spec = installation.spec as JsonObject;
  const five = setAt(spec, '/central', { replicas: 5 }) as JsonObject;
  const requests = setAt(spec, '/central', { memberRequests: [{ name: 'a', retirePod: 'b' }] }) as JsonObject;
  const selector = setAt(spec, '/central', { nodeSelector: { a: 'b' } }) as JsonObject;
  const other = setAt(spec, '/version', 'v1.16.3') as JsonObject;
  for (const change of [five, requests, selector, other])
    assert.is.not(specDigest(kind, change), specDigest(kind, spec));
  for (const change of [five, requests]) assert.is(baseDigest(kind, change), baseDigest(kind, spec));
  for (const change of [selector, other]) assert.is.not(baseDigest(kind, change), baseDigest(kind, spec));
  assert.throws(() => specDigest({ apiVersion: 'v1', kind: 'Nothing' }, {}), 'no schema for v1 Nothing');
});

test('the files of a cluster are validated in the same way', () => {
  const cluster: JsonObject = {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Cluster',
    metadata: { name: 'prod' },
    spec: {
      kubernetesVersion: '1.34.2',
      delivery: { repository: '../rendered', author: { name: 'Keelson', email: 'keelson@example.org' } },
      images: { executor: 'registry.example.org/keelson:0.1.0' },
    },
  };
  assert.equal(problemsOf(cluster), []);
  const wrong: [string, JsonValue, string][] = [
    ['/spec/kubernetesVersion', '1.29.4', 'InvalidValue spec.kubernetesVersion'],
    ['/spec/delivery/repository', 'https://me:secret@git.example.org/r.git', 'RuleViolated spec.delivery'],
    ['/spec/delivery/flux', {}, 'RuleViolated spec.delivery'],
    ['/spec/delivery/argo', {}, 'RuleViolated spec.delivery'],
    ['/spec/delivery/path', 'a/../b', 'RuleViolated spec.delivery'],
    ['/spec/fenceAgent', { enabled: true }, 'RuleViolated spec.fenceAgent'],
    ['/spec/executor', { replicas: 4 }, 'InvalidValue spec.executor.replicas'],
    ['/spec/releases', { 'manifests-a': { pausd: true } }, 'UnknownField spec.releases.manifests-a.pausd'],
  ];
  for (const [at, value, expected] of wrong) {
    const found = problemsOf(setAt(cluster, at, value) as JsonObject);
    assert.is(found.length, 1, `${at}: ${found.join('; ')}`);
    assert.match(found[0] ?? '', expected);
  }
});

test('an unknown kind names the nearest one', () => {
  const read = validateDocument({ apiVersion: 'keelson.dev/v1alpha1', kind: 'Relaese', metadata: { name: 'a' } });
  assert.is(read.ok, false);
  if (!read.ok) assert.match(read.problems[0]?.remedy ?? '', 'keelson.dev/v1alpha1 Release');
});

test('the nearest word is near, or there is none', () => {
  assert.is(nearest('verison', ['version', 'mode']), 'version');
  assert.is(nearest('Mode', ['version', 'mode']), 'mode');
  assert.is(nearest('completelyElse', ['version', 'mode']), undefined);
});

test.run();
