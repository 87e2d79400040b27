import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { checkpointOf } from '../../executor/network/checkpoint.ts';
import { type ClassifyInput, classifyNetwork } from '../../executor/network/classify.ts';
import { d2, d3, entry } from './network-support.ts';

const none = { created: [], configured: [], replaced: [], pruned: [], absent: [] };
const verdictOf = (changes: Partial<ClassifyInput>): ReturnType<typeof classifyNetwork> =>
  classifyNetwork({
    next: entry(),
    previous: entry(),
    completed: true,
    checkpoint: checkpointOf(entry(), String(d3)),
    observedVersion: '1.16.13',
    actions: none,
    ...changes,
  });
const classify = (changes: Partial<ClassifyInput>): string => {
  const { verdict, changeClass } = verdictOf(changes);
  return `${verdict} ${changeClass}`;
};

const classes: [string, string, Partial<ClassifyInput>][] = [
  ['a first install', 'allowed additive', { previous: undefined, checkpoint: undefined, observedVersion: undefined }],
  ['the same again after the ledger was lost', 'allowed additive', { previous: undefined }],
  [
    'other objects after the ledger was lost',
    'blocked blocked',
    { previous: undefined, next: entry({ manifestDigest: String(d2) }) },
  ],
  ['nothing', 'allowed none', {}],
  ['a policy field', 'allowed policy', { next: entry({ specDigest: String(d2), baseDigest: String(d2) }) }],
  ['another object', 'allowed additive', { actions: { ...none, created: ['x'] } }],
  [
    'a changed object',
    'blocked blocked',
    { next: entry({ specDigest: String(d2), baseDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  ['a pruned object', 'blocked blocked', { actions: { ...none, pruned: ['x'] } }],
  ['a tombstone', 'blocked blocked', { actions: { ...none, absent: ['x'] } }],
  [
    'a newer version',
    'blocked versionOnly',
    { next: entry({ version: 'v1.17.0', specDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  [
    'a newer version that changes nothing',
    'blocked versionOnly',
    { next: entry({ version: '1.17.0', specDigest: String(d2) }) },
  ],
  [
    'an older version',
    'blocked rollback',
    { next: entry({ version: '1.9.0', specDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  [
    'the same version with a v',
    'allowed policy',
    { next: entry({ version: 'v1.16.13', specDigest: String(d2), baseDigest: String(d2) }) },
  ],
  [
    'replicas alone',
    'blocked membership',
    { next: entry({ specDigest: String(d2) }), actions: { ...none, configured: ['x'] } },
  ],
  [
    'a change while the first install is partial',
    'blocked blocked',
    { completed: false, actions: { ...none, configured: ['x'] } },
  ],
  [
    'more objects while the first install is partial',
    'allowed additive',
    { completed: false, actions: { ...none, created: ['x'] } },
  ],
];
for (const [what, expected, changes] of classes) test(`class of ${what}`, () => assert.is(classify(changes), expected));

test('a blocked change says what to do', () => {
  for (const [, expected, changes] of classes.filter(([, verdict]) => verdict.startsWith('blocked'))) {
    const verdict = verdictOf(changes);
    assert.ok(verdict.verdict === 'blocked' && /keelson uninstall|set spec\.version/.test(verdict.message), expected);
  }
});

test('property: a payload that touches an object of a recorded installation is never allowed', () => {
  const ids = fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 });
  fc.assert(
    fc.property(
      fc.record({ configured: ids, replaced: ids, pruned: ids, absent: ids, created: ids }),
      fc.boolean(),
      (actions, completed) => {
        const touched =
          actions.configured.length + actions.replaced.length + actions.pruned.length + actions.absent.length;
        assert.is(classify({ actions, completed }).startsWith('allowed'), touched === 0);
      },
    ),
  );
});

test.run();
