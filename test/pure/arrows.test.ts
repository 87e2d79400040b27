import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { arrowProblems, importsOf } from '../runner/arrows.ts';
import { treeProblems } from '../runner/tree.ts';

const file = (path: string, text: string): { path: string; text: string }[] => [{ path, text }];
const problems = (path: string, target: string): string[] =>
  arrowProblems(file(path, `import { x } from '${target}';\n`));

const forbidden: readonly [string, string][] = [
  ['constructs/lib/a.ts', '../api/b.ts'],
  ['constructs/api/a.ts', '../k8s/b.ts'],
  ['constructs/k8s/a.ts', '../couriers/b.ts'],
  ['constructs/couriers/a.ts', '../../renderer/b.ts'],
  ['renderer/a.ts', '../executor/b.ts'],
  ['renderer/a.ts', '../gitops/b.ts'],
  ['gitops/a.ts', '../renderer/b.ts'],
  ['executor/kube/a.ts', '../../probes/b.ts'],
  ['executor/kube/a.ts', '../../renderer/b.ts'],
  ['executor/kube/a.ts', '../../constructs/k8s/b.ts'],
  ['probes/a.ts', '../executor/b.ts'],
  ['executor/a.ts', '../bin/keelson.ts'],
  ['test/api/a.test.ts', '../../bin/commands/render.ts'],
  ['bin/commands/a.ts', '../../test/tools/tools.ts'],
  ['bin/keelson.ts', './quickstart/main.ts'],
  ['bin/quickstart/main.ts', '../../test/runner/suite.ts'],
  ['renderer/a.ts', '../test/tools/tools.ts'],
  ['executor/a.ts', 'cdk8s'],
  ['constructs/api/a.ts', 'constructs'],
  ['constructs/lib/a.ts', './b'],
  ['elsewhere/a.ts', '../constructs/lib/b.ts'],
];

const allowed: readonly [string, string][] = [
  ['constructs/api/a.ts', '../lib/b.ts'],
  ['constructs/k8s/a.ts', '../api/b.ts'],
  ['constructs/k8s/a.ts', 'cdk8s'],
  ['renderer/network/a.ts', '../../constructs/k8s/b.ts'],
  ['renderer/network/a.ts', '../load/b.ts'],
  ['executor/apply/a.ts', '../kube/b.ts'],
  ['bin/commands/a.ts', '../../renderer/b.ts'],
  ['bin/quickstart/main.ts', '../../test/cluster/up.ts'],
  ['bin/quickstart/main.ts', '../commands/render.ts'],
  ['test/api/a.test.ts', '../../executor/kube/b.ts'],
  ['test/faults/a.ts', '../apiserver/b.ts'],
];

for (const [from, target] of forbidden) {
  test(`${from} may not import ${target}`, () => assert.is(problems(from, target).length, 1));
}

test('the arrows let through what the design allows', () => {
  for (const [from, target] of allowed) assert.equal(problems(from, target), [], `${from} -> ${target}`);
});

test('every way to write an import is seen, comments are not', () => {
  const text = [
    "import a from './a.ts';",
    "import type { B } from './b.ts';",
    "export * from './c.ts';",
    'import {\n  d,\n  e,\n} from "./d.ts";',
    "import './e.ts';",
    "const f = await import('./f.ts');",
    "type G = import('./g.ts').G;",
    "// import h from './h.ts';",
    " * import i from './i.ts';",
  ].join('\n');
  assert.equal(importsOf(text).sort(), ['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.ts', './g.ts']);
});

test('an import whose target is computed is refused', () => {
  assert.is(arrowProblems(file('executor/a.ts', ['await import', '(name);'].join(''))).length, 1);
});

test('long files, registry hosts, paths of the machine, unfinished marks and left-out tests are found', () => {
  const word = (...parts: string[]): string => parts.join('');
  const cases: readonly [string, string, RegExp][] = [
    ['a.ts', 'x\n'.repeat(401), /401 lines/],
    ['docs/a.md', `see https://${word('registry.', 'npmjs', '.org')}/x`, /names registry/],
    ['a.md', 'cd /somewhere/here/', /names \/somewhere\//],
    ['a.ts', `// ${word('TO', 'DO')}: later`, /unfinished/],
    ['a.test.ts', word('test.', 'only("x", f)'), /leaves tests out/],
    ['package-lock.json', '{"resolved": "x"}', /download addresses/],
  ];
  for (const [path, text, expected] of cases) {
    const found = treeProblems(file(path, text), ['/somewhere/']);
    assert.is(found.length, 1, path);
    assert.match(found[0] ?? '', expected);
  }
  assert.equal(treeProblems(file('a.ts', 'x\n'.repeat(400)), []), []);
});

test.run();
