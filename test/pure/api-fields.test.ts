import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { z } from 'zod';
import * as fields from '../../constructs/api/fields.ts';
import { parseDuration } from '../../constructs/lib/duration.ts';
import { isPinned, parseImageRef } from '../../constructs/lib/imageref.ts';

const sha = `sha256:${'a'.repeat(64)}`;

const table: [name: string, schema: z.ZodType, accepted: unknown[], refused: unknown[]][] = [
  ['dnsLabel', fields.dnsLabel(), ['a', 'a-1', 'a'.repeat(63)], ['', 'A', '-a', 'a-', 'a.b', 'a'.repeat(64)]],
  ['dnsName', fields.dnsName(), ['a.b', 'a-b.c'], ['a..b', '.a', 'a.', 'a_b', 'a'.repeat(254)]],
  ['objectName', fields.objectName(), ['system:ovn', 'A.b'], ['', 'a/b', 'a%b', 'a b']],
  [
    'apiVersion',
    fields.apiVersionField(),
    ['v1', 'apps/v1', 'a.b-c.io/v1alpha1'],
    ['', '1', 'apps', 'apps/v', 'a/b/v1', 'Apps/v1'],
  ],
  ['kind', fields.kindField(), ['A', 'ConfigMap'], ['', 'configMap', 'Config-Map']],
  ['digest', fields.digest(), [sha], ['', sha.slice(0, -1), sha.toUpperCase(), `${sha}a`, 'sha512:aa']],
  [
    'uuid',
    fields.uuid(),
    ['6ba7b810-9dad-41d1-80b4-00c04fd430c8'],
    ['', '6BA7B810-9dad-41d1-80b4-00c04fd430c8', '6ba7b8109dad41d180b400c04fd430c8'],
  ],
  ['duration', fields.duration(), ['1s', '1h30m', '250ms', '1.5h'], ['', '0', '10', '-1s', '1 s', '1d', '1us', 's']],
  [
    'timestamp',
    fields.timestamp(),
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00+02:00'],
    ['', '2026-01-31', '2026-13-31T12:00:00Z'],
  ],
  [
    'semver',
    fields.semverText(),
    ['1.2.3', 'v1.16.2', '1.2.3-rc.1', '1.2.3+b'],
    ['', '1.2', 'v1', '01.2.3', '1.2.3 ', 'latest'],
  ],
  [
    'hostPort',
    fields.hostPort(),
    ['a', 'a.b:5000', '10.0.0.1:6443', '[::1]', '[::1]:6443'],
    ['', 'a:', 'a/b', '::1', 'http://a', 'a:123456'],
  ],
  [
    'pinnedImage',
    fields.pinnedImage(),
    [`a.io/b@${sha}`, `a.io:5000/b/c:v1@${sha}`],
    ['', 'a.io/b:v1', `b@${sha}`, `a.io/b@${sha}0`, `a.io/B@${sha}`],
  ],
  ['pointer', fields.pointer(), ['', '/a', '/a~1b/~0c/0'], ['a', '/a~2', '/a~']],
  [
    'relativePath',
    fields.relativePath(),
    ['a', '10-x/clusterrole.rbac.authorization.k8s.io___system%3aovn.yaml'],
    ['', '/a', 'a/', 'a//b', '../a', 'a/../b', './a', 'a\\b'],
  ],
  [
    'groupKind',
    fields.groupKind(),
    ['/ConfigMap', 'apps/Deployment'],
    ['', 'ConfigMap', 'apps/', 'apps/v1/Deployment'],
  ],
  ['upperCamel', fields.upperCamel(), ['Ready', 'OVNDBReady'], ['', 'ready', 'Not Ready']],
];

for (const [name, schema, accepted, refused] of table)
  test(`${name} takes what it should and nothing else`, () => {
    for (const value of accepted) assert.ok(schema.safeParse(value).success, JSON.stringify(value));
    for (const value of [...refused, 7, null, undefined, {}])
      assert.not.ok(schema.safeParse(value).success, JSON.stringify(value));
  });

test('what a field takes, its parser takes too', () => {
  for (const value of ['1s', '1h30m', '250ms', '1.5h']) assert.ok(parseDuration(value) > 0);
  for (const value of [`a.io/b@${sha}`, `a.io:5000/b/c:v1@${sha}`]) {
    assert.ok(parseImageRef(value) !== undefined && isPinned(value), value);
  }
});

test.run();
