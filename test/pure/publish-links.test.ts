import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Tree } from '../../constructs/api/tree.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { writeTreeFolder } from '../../gitops/publish/folder.ts';
import { openScratch } from '../../gitops/publish/scratch.ts';
import { type Playground, playground } from './git-support.ts';

/** What somebody committed where the published tree has its files: nothing is ever written through it. */

const wanted: Tree = new Map([
  ['sync/a.yaml', Buffer.from('a: new\n')],
  ['sync/deep/b.yaml', Buffer.from('b: new\n')],
]);

/** The problems of writing the tree over what `plant` left in the repository, as `reason file message`. */
async function staged(play: Playground, plant: (folder: string) => void): Promise<string[]> {
  const standing = play.repository('rendered', { 'prod/sync/a.yaml': 'a: old\n' });
  plant(standing);
  play.commit(standing, {}, 'planted');
  const target = { url: standing, branch: 'main', path: 'prod', checkedOut: false };
  const scratch = await openScratch(target, { env: play.env });
  try {
    await scratch.refresh();
    await scratch.stage({ added: ['sync/deep/b.yaml'], changed: ['sync/a.yaml'], removed: [] }, wanted);
    return [];
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return error.problems.map(({ reason, file, message }) => `${reason} ${file} ${message}`);
  } finally {
    await scratch.dispose();
  }
}

const inTheWay: readonly (readonly [string, string, string, (at: string, victim: string) => void])[] = [
  [
    'a link in place of a folder',
    'prod/sync',
    'a link stands where the tree has a folder',
    (at, to) => symlinkSync(to, at),
  ],
  [
    'a link in place of a file',
    'prod/sync/a.yaml',
    'a link stands where the tree has a file',
    (at, to) => symlinkSync(join(to, 'file'), at),
  ],
  [
    'a link in place of the folder of the cluster',
    'prod',
    'a link stands where the tree has a folder',
    (at, to) => symlinkSync(to, at),
  ],
  [
    'a file in place of a folder',
    'prod/sync/deep',
    'a file stands where the tree has a folder',
    (at) => writeFileSync(at, 'x'),
  ],
];

for (const [name, path, words, plant] of inTheWay)
  test(`${name} is told, and what it leads to stays as it is`, async () => {
    const play = playground();
    try {
      const victim = join(play.root, 'victim');
      mkdirSync(victim);
      writeFileSync(join(victim, 'file'), 'precious');
      const told = await staged(play, (folder) => {
        rmSync(join(folder, path), { recursive: true, force: true });
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        plant(join(folder, path), victim);
      });
      assert.equal(told, [`ForeignFile ${path} ${words}`]);
      assert.equal(readdirSync(victim), ['file']);
      assert.is(readFileSync(join(victim, 'file'), 'utf8'), 'precious');
    } finally {
      play.dispose();
    }
  });

test('a nested repository is told', async () => {
  const play = playground();
  try {
    const told = await staged(play, (folder) => {
      const inner = play.repository('inner', { x: 'y' });
      const commit = play.git(inner, 'rev-parse', 'HEAD');
      play.git(folder, 'update-index', '--add', '--cacheinfo', `160000,${commit},prod/sync/deep`);
      mkdirSync(join(folder, 'prod/sync/deep'), { recursive: true });
      play.git(folder, 'clone', '--quiet', inner, 'prod/sync/deep');
    });
    assert.equal(told, ['ForeignFile prod/sync/deep a nested repository stands where the tree has a folder']);
  } finally {
    play.dispose();
  }
});

test('the same holds for a folder that render writes to', async () => {
  const play = playground();
  try {
    const [out, victim] = [join(play.root, 'out'), join(play.root, 'victim')];
    for (const folder of [out, victim]) mkdirSync(folder);
    symlinkSync(victim, join(out, 'sync'));
    const changes = { added: [...wanted.keys()], changed: [], removed: [] };
    const told = await writeTreeFolder(out, changes, wanted).catch((error: unknown) => error);
    assert.ok(told instanceof ProblemError);
    assert.equal(
      told.problems.map(({ reason, file }) => [reason, file]),
      [['ForeignFile', join(out, 'sync')]],
    );
    assert.equal([readdirSync(out), readdirSync(victim)], [['sync'], []]);
    // The folder itself may be one: that is what was asked for.
    symlinkSync(victim, join(play.root, 'there'));
    await writeTreeFolder(join(play.root, 'there'), changes, wanted);
    assert.equal(readdirSync(victim), ['sync']);
  } finally {
    play.dispose();
  }
});

test('links elsewhere are nobody’s business', async () => {
  const play = playground();
  try {
    assert.equal(await staged(play, (folder) => symlinkSync('/nowhere', join(folder, 'prod/notes'))), []);
  } finally {
    play.dispose();
  }
});

test.run();
