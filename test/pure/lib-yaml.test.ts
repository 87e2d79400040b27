import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { deepEqual, type JsonValue } from '../../constructs/lib/json.ts';
import { dumpYaml, dumpYamlDocuments, parseYaml } from '../../constructs/lib/yaml.ts';

const read = (text: string): JsonValue | undefined => parseYaml(text, 'x.yaml').documents[0]?.value;
const reasons = (text: string): string[] =>
  parseYaml(text, 'x.yaml').problems.map((problem) => `${problem.reason}@${problem.line}`);

test('scalars are read as the API server reads them', () => {
  assert.equal(read('{a: 0755, b: on, c: 2024-01-01, d: 1:30, e: "0755", f: ~, g: 1e3, h: y}'), {
    a: 493,
    b: true,
    c: '2024-01-01',
    d: '1:30',
    e: '0755',
    f: null,
    g: 1000,
    h: true,
  });
});

test('empty documents are skipped and lists stand for their items, with the lines of the items', () => {
  const { documents } = parseYaml(
    '---\n---\na: 1\n---\napiVersion: v1\nkind: List\nitems:\n  - b: 2\n  - c: 3\n',
    'x.yaml',
  );
  assert.equal(
    documents.map((document) => [document.value, document.line]),
    [
      [{ a: 1 }, 3],
      [{ b: 2 }, 8],
      [{ c: 3 }, 9],
    ],
  );
  assert.equal(documents[2]?.locate(['c']), { line: 9, column: 5 });
});

test('a position falls back to the nearest enclosing value', () => {
  const document = parseYaml('spec:\n  central:\n    replicas: 3\n', 'x.yaml').documents[0];
  assert.equal(document?.locate(['spec', 'central', 'replicas']), { line: 3, column: 5 });
  assert.equal(document?.locate(['spec', 'central', 'missing', 'deeper']), { line: 2, column: 3 });
});

for (const [what, text, expected] of [
  ['a duplicate key', 'a: 1\nb: 2\na: 3\n', ['DuplicateKey@3']],
  ['an open bracket', 'a: [1, 2\n', ['InvalidYAML@2']],
  ['a merge key', 'a: {b: 1}\nc:\n  <<: {d: 1}\n', ['InvalidYAML@1']],
  ['an integer beyond 2^53-1', 'a:\n  b: 9007199254740993\n', ['InvalidNumber@2']],
  ['infinity', 'a: .inf\n', ['InvalidNumber@1']],
  ['an unknown anchor', 'a: *x\n', ['InvalidYAML@1']],
  ['a key that is a list', '? [a]\n: 1\n', ['InvalidYAML@1']],
] as const) {
  test(`refuses ${what} with its line`, () => assert.equal(reasons(text), expected));
}

test('what stands at a bad place is never quoted', () => {
  const canary = 'Canary4242';
  for (const text of [
    `a: *${canary}`,
    `a: !${canary} x`,
    `a: !<${canary}> x`,
    `a: | ${canary}\n  x`,
    `a: |1${canary}\n x`,
    `%${canary}\n---\na: b`,
    `a: !e!${canary} x`,
    `a: "\\q${canary}"`,
    `? [${canary}]\n: x`,
  ]) {
    const { problems } = parseYaml(text, 'x.yaml');
    assert.ok(problems.length > 0 && problems.every((problem) => problem.message.length > 5), text);
    assert.not.match(JSON.stringify(problems), canary);
  }
  assert.not.match(JSON.stringify(parseYaml('pin: 12345678901234567890', 'x.yaml').problems), /5678/);
});

test('an alias bomb is refused', () => {
  const rows = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
  for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh'])
    rows.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(',')}]`);
  assert.is(parseYaml(`${rows.join('\n')}\n`, 'x.yaml').problems.length > 0, true);
});

test('values too deep for others to walk are refused, in both styles and at any depth', () => {
  const flow = (depth: number): string => `a: ${'['.repeat(depth)}${']'.repeat(depth)}\n`;
  const block = (depth: number): string =>
    Array.from({ length: depth }, (_, at) => `${' '.repeat(at)}a:`)
      .join('\n')
      .concat(' x\n');
  for (const write of [flow, block]) {
    assert.equal(parseYaml(write(150), 'x.yaml').problems, []);
    for (const depth of [202, 1_500, 20_000]) {
      if (write === block && depth > 2_000) continue;
      const { documents, problems } = parseYaml(write(depth), 'x.yaml');
      assert.equal(documents, []);
      assert.match(problems[0]?.message ?? '', 'nested deeper than 200 levels');
    }
  }
});

test('property: what is written is read back to the same value', () => {
  const nasty = fc.constantFrom(
    '0o755',
    '-0o7',
    ' ',
    '',
    '~',
    'null',
    'y',
    'No',
    '1:30',
    '1e3',
    '0x1f',
    '.inf',
    '2024-01-01',
    '- a',
    '#',
    'a: b',
    '\t',
    '1_000',
    '=',
    '!x',
  );
  const value = fc.letrec<{ v: JsonValue }>((tie) => ({
    v: fc.oneof(
      { depthSize: 'small' },
      fc.integer(),
      fc.boolean(),
      fc.string(),
      nasty,
      fc.array(tie('v'), { maxLength: 4 }),
      fc
        .dictionary(fc.oneof(fc.string({ minLength: 1 }), nasty), tie('v'), { maxKeys: 4 })
        .filter((object) => !('<<' in object)),
    ),
  })).v;
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.string({ minLength: 1 }).filter((key) => key !== '<<'),
        value,
        { minKeys: 1 },
      ),
      (object) => {
        const { documents, problems } = parseYaml(dumpYaml(object), 'x.yaml');
        assert.equal(problems, []);
        assert.ok(deepEqual(documents[0]?.value, object), dumpYaml(object));
      },
    ),
    { numRuns: 300 },
  );
});

test('a map key that no reader agrees on is not written', () => {
  assert.throws(() => dumpYaml({ a: { '<<': 1 } }), TypeError);
});

test('documents are separated', () => {
  assert.is(dumpYamlDocuments([{ a: 1 }, { b: 2 }]), '---\na: 1\n---\nb: 2\n');
});

test.run();
