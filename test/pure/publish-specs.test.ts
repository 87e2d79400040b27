import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { done, runKeelson, type Said } from '../commandline.ts';
import { type Playground, playground } from './git-support.ts';
import { exampleFolder } from './render-support.ts';

/** `keelson publish` names a commit as the source: every file that it reads is in that commit, as it is there. */

interface Bed {
  readonly play: Playground;
  readonly specs: string;
  write(path: string, text: string): void;
  git(...args: string[]): string;
  publish(...args: string[]): Promise<Said>;
  /** What was published, path by path. */
  published(): string[];
}

const extra = (name: string): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'demo' }, data: {} });

/** Clusters of the names given, committed. */
async function withClusters(clusters: readonly string[], body: (bed: Bed) => Promise<void>): Promise<void> {
  const play = playground();
  try {
    const specs = play.repository('specs', {});
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(specs, path)), { recursive: true });
      writeFileSync(join(specs, path), text);
    };
    for (const name of clusters) {
      cpSync(exampleFolder, join(specs, 'clusters', name), { recursive: true });
      for (const file of ['cluster.yaml', 'keelson.lock.yaml']) {
        const text = readFileSync(join(exampleFolder, file), 'utf8');
        write(`clusters/${name}/${file}`, text.replace('name: example', `name: ${name}`));
      }
    }
    play.commit(specs, {}, 'specs');
    const git = (...args: string[]): string => play.git(specs, ...args);
    await body({
      play,
      specs,
      write,
      git,
      publish: (...args) => {
        const folders = clusters.flatMap((name) => ['-c', `clusters/${name}`]);
        return runKeelson(['publish', '--unsigned', ...folders, ...args], { env: play.env, cwd: specs });
      },
      published() {
        const branch = git('for-each-ref', 'refs/heads/rendered');
        return branch === '' ? [] : git('ls-tree', '-r', '--name-only', 'rendered').split('\n');
      },
    });
  } finally {
    play.dispose();
  }
}

/** The files that a publication was refused for; nothing was published. */
async function refused({ publish, published }: Bed): Promise<string[]> {
  const said = await publish('-o', 'json');
  assert.is(said.code, 2, said.err);
  assert.equal(published(), []);
  const problems: { reason: string; file: string }[] = JSON.parse(said.err).problems;
  assert.equal([...new Set(problems.map(({ reason }) => reason))], ['SpecsNotCommitted']);
  return problems.map(({ file }) => file);
}

const local = 'clusters/example/manifests/demo/30-web/local.yaml';

const ignoring: readonly (readonly [string, (bed: Bed) => void])[] = [
  [
    '.gitignore',
    ({ play, specs, write }) => {
      write('.gitignore', 'local.yaml\n');
      play.commit(specs, {}, 'ignore');
    },
  ],
  ['.git/info/exclude', ({ write }) => write('.git/info/exclude', 'local.yaml\n')],
  [
    'core.excludesFile',
    ({ play, git }) => {
      const file = join(play.root, 'excludes');
      writeFileSync(file, 'local.yaml\n');
      git('config', '--file', play.env.GIT_CONFIG_GLOBAL ?? '', 'core.excludesFile', file);
    },
  ],
];

for (const [where, ignore] of ignoring)
  test(`a file that ${where} has Git ignore is told, and nothing is published`, () =>
    withClusters(['example'], async (bed) => {
      ignore(bed);
      bed.write(local, extra('local'));
      assert.is(bed.git('status', '--porcelain'), '', 'Git tells of it');
      assert.equal(await refused(bed), [local]);
      assert.match((await bed.publish()).err, /Git does not look at the file[\s\S]*git add --force/);
    }));

test('a folder of files that Git ignores is told file by file', () =>
  withClusters(['example'], async (bed) => {
    bed.write('.git/info/exclude', '40-local/\n');
    const files = ['a', 'b'].map((name) => `clusters/example/manifests/demo/40-local/${name}.yaml`);
    for (const file of files) bed.write(file, extra(basename(file, '.yaml')));
    assert.equal(await refused(bed), files);
  }));

test('an ignored file that nobody reads does not matter', () =>
  withClusters(['example'], async (bed) => {
    bed.write('.git/info/exclude', '.*\n*.md\n*~\n');
    for (const name of ['.local.yaml', 'NOTES.md', 'web.yaml~', '.old/web.yaml'])
      bed.write(`clusters/example/manifests/demo/30-web/${name}`, 'no: spec\n');
    done(await bed.publish());
    assert.ok(bed.published().includes('example/.keelson/tree.json'));
  }));

test('an ignored file that was committed all the same is published, and a change of it is told', () =>
  withClusters(['example'], async (bed) => {
    bed.write('.git/info/exclude', 'local.yaml\n');
    bed.write(local, extra('local'));
    bed.git('add', '--force', local);
    assert.equal(await refused(bed), [local], 'it is in no commit yet');
    bed.git('commit', '--quiet', '-m', 'local');
    done(await bed.publish());
    assert.ok(bed.published().some((path) => path.endsWith('configmap_demo_local.yaml')));
    bed.write(local, extra('changed'));
    const said = await bed.publish();
    assert.is(said.code, 2);
    assert.match(said.err, /SpecsNotCommitted/);
    assert.ok(said.err.includes(local), said.err);
  }));

const config = 'manifests/demo/20-config/config.yaml';

for (const flag of ['--assume-unchanged', '--skip-worktree'])
  test(`a file that Git was told to take for unchanged (${flag}) is told`, () =>
    withClusters(['example'], async (bed) => {
      bed.git('update-index', flag, `clusters/example/${config}`);
      bed.write(`clusters/example/${config}`, extra('web'));
      assert.is(bed.git('status', '--porcelain'), '', 'Git tells of it');
      assert.equal(await refused(bed), [`clusters/example/${config}`]);
    }));

test('what is not committed of one cluster keeps all of them from being published', () =>
  withClusters(['example', 'other'], async (bed) => {
    bed.write(`clusters/other/${config}`, extra('web'));
    assert.equal(await refused(bed), [`clusters/other/${config}`]);
    bed.play.commit(bed.specs, {}, 'config');
    done(await bed.publish());
    for (const name of ['example', 'other']) assert.ok(bed.published().includes(`${name}/.keelson/tree.json`), name);
  }));

test('what is wrong with several clusters is told at once', () =>
  withClusters(['example', 'other'], async (bed) => {
    bed.write('.git/info/exclude', 'local.yaml\n');
    bed.write(`clusters/example/${config}`, extra('web'));
    bed.write(local, extra('local'));
    bed.write(`clusters/other/${config}`, extra('web'));
    bed.write('clusters/other/manifests/demo/20-config/new.yaml', extra('new'));
    assert.equal((await refused(bed)).sort(), [
      `clusters/example/${config}`,
      local,
      `clusters/other/${config}`,
      'clusters/other/manifests/demo/20-config/new.yaml',
    ]);
  }));

test.run();
