import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Cluster } from '../../constructs/api/cluster.ts';
import { type Tree, treeFile } from '../../constructs/api/tree.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { scratchFolder } from '../../constructs/lib/scratchfolder.ts';
import { GitError } from '../../gitops/git/git.ts';
import { specRepository } from '../../gitops/git/specs.ts';
import { type PublishInput, type PublishOutcome, publish } from '../../gitops/publish/publish.ts';
import { resolveTarget } from '../../gitops/publish/target.ts';
import { makeTree } from '../../renderer/sync/tree.ts';
import { startGitServer } from '../standins/gitserver.ts';
import { type Playground, playground } from './git-support.ts';

const digest = (n: number): string => `sha256:${String(n).padStart(64, '0')}`;

/** A tree whose one payload says `text`. */
const treeOf = (text: string, more: Record<string, string> = {}): Tree => {
  const files = { 'payload/manifests-a/index.json': `${text}\n`, 'sync/30-specs/x.yaml': 'a: b\r\n', ...more };
  const bytes = new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)] as const));
  return makeTree('prod', [{ name: 'manifests-a', digest: digest(text.length) }], bytes);
};

const rendering = (text: string, more: Record<string, string> = {}) => ({
  tree: treeOf(text, more),
  releases: [{ name: 'manifests-a', digest: digest(text.length) }],
});

async function run(
  play: Playground,
  specs: string,
  url: string,
  more: Partial<PublishInput> & Pick<PublishInput, 'render'>,
): Promise<PublishOutcome> {
  const git = { env: play.env };
  return publish({
    cluster: 'prod',
    target: { url, branch: 'rendered', path: 'prod', checkedOut: false },
    author: { name: 'Keelson', email: 'keelson@example.com' },
    version: '0.1.0',
    specs: await specRepository(join(specs, 'clusters/prod'), git),
    git,
    clock: systemClock,
    random: () => 0.5,
    ...more,
  });
}

const inPlayground = (name: string, body: (play: Playground) => Promise<void>): void => {
  test(name, async () => {
    const play = playground();
    // Other processes publish at the same time; whose a clone is stands in its name.
    const ours = new RegExp(`^keelson-publish-[0-9a-f]{12}-${process.pid}-`);
    const left = (): string[] => readdirSync(tmpdir()).filter((entry) => ours.test(entry));
    const before = left();
    try {
      await body(play);
      assert.equal(
        left().filter((entry) => !before.includes(entry)),
        [],
        'a scratch clone was left behind',
      );
    } finally {
      play.dispose();
    }
  });
};

const refuses = async (work: Promise<unknown>, words: RegExp): Promise<void> => {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.instance(error, GitError);
  assert.match((error as GitError).message, words);
};

const specFiles = (text: string): Record<string, string> => ({ 'clusters/prod/cluster.yaml': text });

inPlayground('publishes to an empty repository with trailers, and a second run makes no commit', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  const first = await run(play, specs, target, { render: async () => rendering('one') });
  assert.is(first.kind, 'published');
  const message = play.git(target, 'log', '-1', '--format=%an <%ae>%n%B', 'rendered');
  assert.is(
    message,
    [
      'Keelson <keelson@example.com>',
      'prod: publish manifests-a',
      '',
      'Keelson-Cluster: prod',
      `Keelson-Spec-Commit: ${play.git(specs, 'rev-parse', 'HEAD')}`,
      `Keelson-Payload: manifests-a ${digest(3)}`,
      'Keelson-Version: 0.1.0',
    ].join('\n'),
  );
  // Line endings come through although core.autocrlf is on.
  assert.is(play.git(target, 'cat-file', '-s', 'rendered:prod/sync/30-specs/x.yaml'), '6');
  const seen: Tree[] = [];
  const second = await run(play, specs, target, {
    render: async (previous) => {
      seen.push(previous);
      return rendering('one');
    },
  });
  assert.is(second.kind, 'unchanged');
  assert.is(play.git(target, 'rev-list', '--count', 'rendered'), '1');
  assert.equal([...(seen[0] ?? [])], [...treeOf('one')]);
});

inPlayground('removes only what it published before, and keeps out of the way of other files', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  await run(play, specs, target, { render: async () => rendering('one', { 'sync/30-specs/old.yaml': 'o' }) });
  const clone = join(play.root, 'clone');
  play.git(play.root, 'clone', '--quiet', '--branch', 'rendered', target, 'clone');
  play.commit(clone, { 'prod/README.md': 'by hand', 'other/x.yaml': 'x' }, 'by hand');
  play.git(clone, 'push', '--quiet');
  const next = await run(play, specs, target, { render: async () => rendering('two') });
  assert.is(next.kind, 'published');
  if (next.kind === 'published') assert.equal(next.changes.removed, ['sync/30-specs/old.yaml']);
  const files = play.git(target, 'ls-tree', '-r', '--name-only', 'rendered').split('\n');
  assert.ok(files.includes('prod/README.md') && files.includes('other/x.yaml'));
  assert.not(files.includes('prod/sync/30-specs/old.yaml'));
  const foreign = await run(play, specs, target, { render: async () => rendering('two', { 'README.md': 'ours' }) });
  assert.is(foreign.kind, 'refused');
  if (foreign.kind === 'refused')
    assert.equal(
      foreign.problems.map((p) => [p.reason, p.file]),
      [['ForeignFile', 'prod/README.md']],
    );
});

inPlayground('the tree of another cluster is not written over', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  await run(play, specs, target, { render: async () => rendering('one') });
  const head = play.git(target, 'rev-parse', 'rendered');
  const other = await run(play, specs, target, { cluster: 'stage', render: async () => rendering('two') });
  assert.is(other.kind, 'refused');
  const [told] = other.kind === 'refused' ? other.problems : [];
  assert.equal([told?.reason, told?.file], ['TreeTaken', 'prod/.keelson/tree.json']);
  assert.match(told?.message ?? '', /cluster prod stands here, and cluster stage/);
  assert.is(play.git(target, 'rev-parse', 'rendered'), head);
});

inPlayground('a repository of specs that git refuses to read is not taken for none', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const folder = join(specs, 'clusters/prod');
  const known = await specRepository(folder, { env: play.env });
  assert.is(known?.commit, play.git(specs, 'rev-parse', 'HEAD'));
  assert.is(await specRepository(play.root, { env: play.env }), undefined);
  writeFileSync(join(specs, '.git/config'), '[core\n');
  await refuses(specRepository(folder, { env: play.env }), /bad config/);
  await refuses(specRepository(folder, { env: { ...play.env, PATH: play.root } }), /git was not found/);
});

inPlayground('a target that is not there is a problem of its field', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const git = { env: play.env };
  const known = await specRepository(join(specs, 'clusters/prod'), git);
  for (const repository of ['../none', '/none/at/all', '--none', 'clusters']) {
    const cluster = { metadata: { name: 'prod' }, spec: { delivery: { repository, branch: 'rendered' } } } as Cluster;
    const resolved = await resolveTarget(cluster, known, join(specs, 'clusters/prod'), git);
    if (repository === 'clusters') assert.ok(resolved.ok, 'a folder of a repository stands for it');
    else if (!resolved.ok) assert.is(resolved.problems[0]?.reason, 'RepositoryMissing');
    else assert.unreachable(repository);
  }
});

inPlayground('a dry run says what it would do and commits nothing', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  const outcome = await run(play, specs, target, { dryRun: true, render: async () => rendering('one') });
  assert.is(outcome.kind, 'wouldPublish');
  if (outcome.kind === 'wouldPublish') assert.ok(outcome.changes.added.includes(treeFile));
  assert.is(play.git(target, 'for-each-ref'), '');
});

inPlayground('two racing publishers converge: the newer spec wins, whoever pushes first', async (play) => {
  const origin = play.bare('specs.git');
  const seed = play.repository('seed', specFiles('one'));
  play.git(seed, 'push', '--quiet', origin, 'main');
  const clone = (name: string): string => {
    play.git(play.root, 'clone', '--quiet', origin, name);
    return join(play.root, name);
  };
  const older = clone('older');
  const newer = clone('newer');
  play.commit(newer, specFiles('two'), 'second');
  const target = play.bare('rendered.git');
  const publishNewer = () => run(play, newer, target, { render: async () => rendering('newer') });
  const publishOlder = () => run(play, older, target, { render: async () => rendering('older!') });
  const text = () => play.git(target, 'show', 'rendered:prod/payload/manifests-a/index.json');

  // The newer one loses its push, renders again on top, and wins.
  const previous: (string | undefined)[] = [];
  const winner = await run(play, newer, target, {
    render: async (before) => {
      previous.push(before.get('payload/manifests-a/index.json')?.toString());
      if (previous.length === 1) assert.is((await publishOlder()).kind, 'published');
      return rendering('newer');
    },
  });
  assert.is(winner.kind, 'published');
  if (winner.kind === 'published') assert.is(winner.attempts, 2);
  assert.equal(previous, [undefined, 'older!\n']);
  assert.is(text(), 'newer');
  assert.is(play.git(target, 'rev-list', '--count', 'rendered'), '2');

  // The other way round: the older one has rendered when the newer one publishes, and stands back.
  play.git(newer, 'push', '--quiet');
  play.git(target, 'update-ref', '-d', 'refs/heads/rendered');
  let calls = 0;
  const late = await run(play, older, target, {
    render: async () => {
      if (++calls === 1) assert.is((await publishNewer()).kind, 'published');
      return rendering('older!');
    },
  });
  const by = play.git(newer, 'rev-parse', 'HEAD');
  assert.equal([late, calls, text()], [{ kind: 'superseded', by, published: false }, 1, 'newer']);
  assert.equal(await publishOlder(), { kind: 'superseded', by, published: true });

  // Without the place that the specs come from, the push itself tells.
  play.git(older, 'fetch', '--quiet');
  play.git(older, 'remote', 'set-url', 'origin', join(play.root, 'gone.git'));
  play.git(target, 'update-ref', '-d', 'refs/heads/rendered');
  const alone = await run(play, older, target, {
    render: async () => {
      await publishNewer();
      return rendering('older!');
    },
  });
  assert.equal([alone, text()], [{ kind: 'superseded', by, published: true }, 'newer']);
});

inPlayground('a newer spec that renders to what is published keeps an older one from coming late', async (play) => {
  const origin = play.bare('specs.git');
  const seed = play.repository('seed', specFiles('one'));
  play.git(seed, 'push', '--quiet', origin, 'main');
  const clone = (name: string): string => {
    play.git(play.root, 'clone', '--quiet', origin, name);
    return join(play.root, name);
  };
  const target = play.bare('rendered.git');
  const text = () => play.git(target, 'show', 'rendered:prod/payload/manifests-a/index.json');
  await run(play, clone('first'), target, { render: async () => rendering('one') });
  play.commit(seed, specFiles('two'), 'second');
  play.git(seed, 'push', '--quiet', origin, 'main');
  const late = clone('late');
  const taken = play.commit(seed, specFiles('one'), 'take the second back');
  play.git(seed, 'push', '--quiet', origin, 'main');
  assert.is((await run(play, clone('newest'), target, { render: async () => rendering('one') })).kind, 'unchanged');
  const outcome = await run(play, late, target, { render: async () => rendering('two') });
  assert.equal(outcome, { kind: 'superseded', by: taken, published: false });
  assert.is(text(), 'one');
  // Nothing of the late publisher's repository moved.
  assert.is(play.git(late, 'rev-parse', 'origin/main'), play.git(late, 'rev-parse', 'HEAD'));
  assert.not(existsSync(join(late, '.git/FETCH_HEAD')));

  // A newer commit that leaves the folder of the cluster alone decides nothing about it, and no origin decides nothing.
  const current = clone('current');
  play.commit(seed, { 'README.md': 'words' }, 'words');
  play.git(seed, 'push', '--quiet', origin, 'main');
  assert.is((await run(play, current, target, { render: async () => rendering('three') })).kind, 'published');
  play.git(late, 'remote', 'set-url', 'origin', join(play.root, 'gone.git'));
  assert.is((await run(play, late, target, { render: async () => rendering('four!') })).kind, 'refused');
  play.git(seed, 'commit', '--quiet', '--allow-empty', '-m', 'local');
  assert.is((await run(play, seed, target, { render: async () => rendering('five..') })).kind, 'published');
});

inPlayground("what a killed publisher left goes with the next one, and nobody else's folder does", async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  const program = join(play.root, 'killed.mjs');
  const scratch = join(import.meta.dirname, '../../constructs/lib/scratchfolder.ts');
  writeFileSync(
    program,
    `import { writeFileSync } from 'node:fs';
     import { tmpdir } from 'node:os';
     import { scratchFolder } from ${JSON.stringify(scratch)};
     const { path } = await scratchFolder(tmpdir(), 'keelson-publish-');
     writeFileSync(path + '/file', 'x');
     console.log(path);
     process.kill(process.pid, 'SIGKILL');`,
  );
  const left = spawnSync(process.execPath, [program], { encoding: 'utf8' }).stdout.trim();
  assert.ok(existsSync(join(left, 'file')), left);
  const alive = await scratchFolder(tmpdir(), 'keelson-publish-');
  // The same id of a process that began at another time, and one of another machine.
  const foreign = mkdtempSync(join(tmpdir(), `keelson-publish-${'0'.repeat(12)}-1-1-`));
  try {
    assert.not(existsSync(left), 'a start clears away');
    assert.is((await run(play, specs, target, { render: async () => rendering('one') })).kind, 'published');
    assert.ok(existsSync(alive.path) && existsSync(foreign));
  } finally {
    await alive.dispose();
    rmSync(foreign, { recursive: true });
  }
});

inPlayground('a spec of another history stops', async (play) => {
  const target = play.bare('rendered.git');
  const one = play.repository('one', specFiles('one'));
  const two = play.repository('two', specFiles('two'));
  await run(play, one, target, { render: async () => rendering('one') });
  const unknown = await run(play, two, target, { render: async () => rendering('two') });
  assert.is(unknown.kind, 'refused');
  if (unknown.kind === 'refused') assert.is(unknown.problems[0]?.reason, 'SpecHistoryUnrelated');
  // Both histories at hand, and still neither follows the other.
  play.git(two, 'fetch', '--quiet', one, 'main:refs/heads/theirs');
  const unrelated = await run(play, two, target, { render: async () => rendering('two') });
  assert.is(unrelated.kind, 'refused');
  if (unrelated.kind === 'refused') assert.match(unrelated.problems[0]?.message ?? '', /neither of the two/);
  assert.is(play.git(target, 'rev-list', '--count', 'rendered'), '1');
});

inPlayground('a branch that is checked out is moved forward in its work tree', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = { url: specs, branch: 'main', path: 'prod', checkedOut: true };
  const outcome = await run(play, specs, specs, { target, render: async () => rendering('one') });
  assert.is(outcome.kind, 'published');
  assert.is(readFileSync(join(specs, 'prod/payload/manifests-a/index.json'), 'utf8'), 'one\n');
  assert.is(play.git(specs, 'status', '--porcelain'), '');
  assert.ok(existsSync(join(specs, 'clusters/prod/cluster.yaml')));
  assert.is((await run(play, specs, specs, { target, render: async () => rendering('one') })).kind, 'unchanged');
});

inPlayground('filters and line endings that the repository sets do not change a byte', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  const seed = play.repository('seed', { '.gitattributes': '* text eol=crlf ident\n*.yaml filter=broken\n' });
  play.git(seed, 'config', 'filter.broken.clean', 'false');
  play.git(seed, 'push', '--quiet', target, 'main:rendered');
  const outcome = await run(play, specs, target, { render: async () => rendering('$Id$ \n\r\n') });
  assert.is(outcome.kind, 'published');
  assert.is(
    play.git(target, 'cat-file', '-s', 'rendered:prod/payload/manifests-a/index.json'),
    String('$Id$ \n\r\n\n'.length),
  );
});

inPlayground('publishes over HTTP, and tells neither a password nor a token when that fails', async (play) => {
  const specs = play.repository('specs', specFiles('one'));
  const target = play.bare('rendered.git');
  play.git(target, 'config', 'http.receivepack', 'true');
  const server = await startGitServer({
    root: play.root,
    env: play.env,
    username: 'bot',
    password: 'canary-token',
    refusal: (sent) => `denied: authorization: ${sent}`,
  });
  const url = `${server.url}/rendered.git`;
  try {
    const helper = join(play.root, 'askpass');
    const answer = (password: string): void =>
      writeFileSync(helper, `#!/bin/sh\ncase "$1" in User*) echo bot;; *) echo ${password};; esac\n`, { mode: 0o700 });
    const withHelper = { env: { ...play.env, GIT_ASKPASS: helper } };
    answer('canary-token');
    const outcome = await run(play, specs, url, { git: withHelper, render: async () => rendering('one') });
    assert.is(outcome.kind, 'published');
    answer('canary-wrong');
    const failing = `http://bot:canary-wrong@127.0.0.1:${server.port}/rendered.git`;
    const target_ = { url: failing, branch: 'rendered', path: 'prod', checkedOut: false };
    try {
      await run(play, specs, url, { git: withHelper, target: target_, render: async () => rendering('two') });
      assert.unreachable('a wrong password was accepted');
    } catch (error) {
      assert.instance(error, GitError);
      assert.not.match((error as Error).message, /canary/);
      assert.match((error as Error).message, /Authentication failed/i);
    }
  } finally {
    await server.close();
  }
});

test.run();
