import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { crdOf, type StructuralSchema } from '../../constructs/api/crd.ts';
import { generatedFiles, generatedFolders, staleFiles } from '../../constructs/api/generated-files.ts';
import { kinds } from '../../constructs/api/kinds/index.ts';
import { crdName } from '../../constructs/api/kinds/kind.ts';
import { reasons } from '../../constructs/api/reasons.ts';
import { documentSchemas } from '../../constructs/api/schemas.ts';
import { deepEqual, getAt } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';

const root = new URL('../../', import.meta.url);

test('every generated file on disk is current, and there is no other in their folders', () => {
  const read = (path: string): string | undefined =>
    existsSync(new URL(path, root)) ? readFileSync(new URL(path, root), 'utf8') : undefined;
  const present = generatedFolders.flatMap((folder) =>
    readdirSync(new URL(folder, root)).map((name) => `${folder}/${name}`),
  );
  assert.equal(staleFiles(generatedFiles(), read, present), []);
});

test('a changed, an absent and a left-over file are found', () => {
  const wanted = new Map([
    ['a', '1'],
    ['b', '2'],
    ['c', '3'],
  ]);
  const disk: Record<string, string> = { a: '1', b: 'changed', d: 'left over' };
  assert.equal(
    staleFiles(wanted, (path) => disk[path], Object.keys(disk)),
    ['b', 'c', 'd'],
  );
});

test('two generations are the same, and the YAML reads back to the CRD', () => {
  const [first, second] = [generatedFiles(), generatedFiles()];
  assert.equal([...first], [...second]);
  for (const kind of kinds) {
    const text = first.get(`constructs/api/generated/crds/${crdName(kind)}.yaml`) ?? '';
    const { documents, problems } = parseYaml(text, crdName(kind));
    assert.equal(problems, []);
    assert.ok(deepEqual(documents[0]?.value, crdOf(kind)), kind.kind);
  }
});

test('a definition holds no empty list that the server would not store, so that two managers can apply the same', () => {
  for (const kind of kinds) {
    for (const list of ['shortNames', 'categories'])
      assert.not.equal(getAt(crdOf(kind), `/spec/names/${list}`), [], `${list} of ${kind.kind}`);
  }
});

test('every reason and every field of a spec is documented', () => {
  const files = generatedFiles();
  const page = files.get('docs/reference/reasons.md') ?? '';
  for (const { reason } of reasons) assert.ok(page.includes(`### ${reason}\n`), reason);
  assert.match(
    files.get('docs/reference/kubeovninstallation.md') ?? '',
    '`spec.central.memberRequests[].addresses.northboundRaft`',
  );
  assert.match(files.get('docs/reference/release.md') ?? '', '`spec.prune.maxPercent`');
  assert.match(files.get('docs/reference/files.md') ?? '', '`spec.releases.*.approval.planDigest`');
});

function undescribed(schema: StructuralSchema, path: string): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => [
    ...(child.description === undefined ? [`${path}.${name}`] : []),
    ...undescribed(child, `${path}.${name}`),
  ]);
  const values =
    typeof schema.additionalProperties === 'object' ? undescribed(schema.additionalProperties, `${path}.*`) : [];
  return [...own, ...values, ...(schema.items === undefined ? [] : undescribed(schema.items, `${path}[]`))];
}

test('every field that a person may write says what it means', () => {
  for (const { kind, schema } of documentSchemas) {
    const spec = schema.properties?.spec;
    assert.ok(spec, kind);
    assert.equal(undescribed(spec ?? {}, 'spec'), [], kind);
  }
});

test.run();
