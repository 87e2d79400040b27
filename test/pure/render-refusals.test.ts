import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Problem } from '../../constructs/lib/problems.ts';
import { folderRefusals } from './refusal-folders.ts';
import { manifestRefusals } from './refusal-manifests.ts';
import { at, configMap } from './refusal-support.ts';
import { copyExample, renderFolder } from './render-support.ts';

const told = (problems: readonly Problem[]): string =>
  problems.map((p) => `${p.file}:${p.line} ${p.path} ${p.reason} ${p.message} | ${p.remedy}`).join('\n');

for (const wanted of [...manifestRefusals, ...folderRefusals])
  test(`refuses ${wanted.what}`, async () => {
    const copy = copyExample();
    try {
      wanted.change(copy);
      const outcome = await renderFolder(copy.folder);
      assert.is(outcome.ok, false, 'it was rendered');
      if (outcome.ok) return;
      const found = outcome.problems.find(
        (p) => p.reason === wanted.reason && p.file === `clusters/plain/${wanted.file}`,
      );
      assert.ok(found, told(outcome.problems));
      if (wanted.line !== undefined) assert.is(found?.line, wanted.line, told(outcome.problems));
      if (wanted.path !== undefined) assert.is(found?.path, wanted.path);
      if (wanted.says !== undefined) assert.match(`${found?.message} ${found?.remedy}`, wanted.says);
      // A value out of its bounds says itself what would be in them.
      if (found?.reason !== 'InvalidValue' && found?.reason !== 'RuleViolated')
        assert.ok(found?.remedy, 'a remedy is missing');
      assert.not.match(told(outcome.problems), /canary-value/);
    } finally {
      copy.dispose();
    }
  });

test('tells all problems of all files at once', async () => {
  const copy = copyExample();
  try {
    copy.write(at, 'a: [1, 2\n');
    copy.write('manifests/demo/10-base/two.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n');
    copy.write('stray.yaml', configMap(''));
    copy.remove('keelson.lock.yaml');
    const outcome = await renderFolder(copy.folder);
    assert.is(outcome.ok, false);
    if (outcome.ok) return;
    const reasons = new Set(outcome.problems.map((p) => p.reason));
    for (const reason of ['InvalidYAML', 'NamespaceMissing', 'UnknownSpecKind']) assert.ok(reasons.has(reason), reason);
  } finally {
    copy.dispose();
  }
});

test('warns of annotations that come near the limit', async () => {
  const copy = copyExample();
  try {
    copy.write(
      at,
      configMap('').replace('  name: bad\n', `  name: bad\n  annotations: {big: "${'x'.repeat(210_000)}"}\n`),
    );
    const outcome = await renderFolder(copy.folder);
    assert.is(outcome.ok, true);
    if (outcome.ok)
      assert.equal(
        outcome.rendered.warnings.map((w) => w.reason),
        ['AnnotationsLarge'],
      );
  } finally {
    copy.dispose();
  }
});

test.run();
