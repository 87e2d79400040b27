import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { visible } from '../../constructs/lib/visible.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { runKeelson, type Said } from '../commandline.ts';
import { type Copy, using } from './render-support.ts';

/** The command line without a cluster: forms of output, exit statuses, and what it must never say. */

function keelson(copy: Copy, args: string[], env: Record<string, string> = {}): Promise<Said> {
  const cwd = dirname(dirname(copy.folder));
  return runKeelson(args, { env: { PATH: process.env.PATH, HOME: cwd, ...env }, cwd });
}

test('results come as a table, JSON or YAML, and mean the same', () =>
  using(async (copy) => {
    const json = JSON.parse((await keelson(copy, ['render', '-o', 'json'])).out);
    const yaml = parseYaml((await keelson(copy, ['render', '--output', 'yaml'])).out, 'out').documents[0]?.value;
    assert.equal(yaml, json);
    assert.is(json[0].releases[0].name, 'manifests-demo');
    assert.match(
      (await keelson(copy, ['render'])).out,
      /^CLUSTER +RELEASE +PHASES +OBJECTS +DIGEST\nexample +manifests-demo/,
    );
    assert.is((await keelson(copy, ['render', '-o', 'xml'])).code, 2);
  }));

test('help is no error; a wrong word, option or argument exits with 2', () =>
  using(async (copy) => {
    for (const args of [['--help'], ['help', 'plan'], ['--version']]) assert.is((await keelson(copy, args)).code, 0);
    for (const args of [['rendr'], ['render', '--outt'], ['explain'], ['completion', 'tcsh'], ['approve', 'x'], []])
      assert.is((await keelson(copy, args)).code, 2, args.join(' '));
  }));

test('the help of the executor offers the roles that there are, and another role or worker is a wrong argument', () =>
  using(async (copy) => {
    const { out } = await keelson(copy, ['executor', '--help']);
    assert.match(out, /--role <role>.*\(choices:\s+"executor",\s+"addresses"/s);
    assert.not.match(out, /storage|convert/);
    assert.is((await keelson(copy, ['executor', '--role', 'storage'])).code, 2);
    assert.is((await keelson(copy, ['executor', '--role', 'addresses', '--workers', 'core,nobody'])).code, 2);
    assert.is((await keelson(copy, ['executor', '--role', 'addresses', '--test-lease-duration', '3s'])).code, 2);
  }));

test('under -o json what is wrong is one JSON object with all problems, whatever it is', () =>
  using(async (copy) => {
    const problemsOf = async (...args: string[]): Promise<{ reason: string; file?: string; line?: number }[]> => {
      const said = await keelson(copy, args);
      assert.is.not(said.code, 0);
      assert.is(said.out, '');
      return JSON.parse(said.err).problems;
    };
    copy.write('cluster.yaml', `${copy.read('cluster.yaml')}  nonsense: 1\n  more: 2\n`);
    const found = await problemsOf('render', '-o', 'json');
    assert.equal(
      found.map((p) => [p.reason, p.file, typeof p.line]),
      Array(2).fill(['UnknownField', 'clusters/plain/cluster.yaml', 'number']),
    );
    for (const args of [
      ['rendr', '-o', 'json'],
      ['render', '--outt', '--output=json'],
      ['approve', 'x', '-ojson'],
    ])
      assert.equal(
        (await problemsOf(...args)).map((p) => p.reason),
        ['CommandInvalid'],
      );
    const failed = await problemsOf('--kubeconfig', '/none', 'status', '-o', 'json');
    assert.equal(
      failed.map((p) => p.reason),
      ['CommandFailed'],
    );
  }));

test('a folder that is named twice is meant once', () =>
  using(async (copy) => {
    const { folder } = copy;
    const said = await keelson(copy, [
      'render',
      '-c',
      folder,
      '-c',
      `${folder}/`,
      '-c',
      'clusters/plain',
      '-o',
      'json',
    ]);
    assert.is(JSON.parse(said.out).length, 1);
    // Where one folder is wanted, the same one twice is one.
    const digest = `sha256:${'a'.repeat(64)}`;
    const approve = ['approve', 'manifests-demo', '--plan', digest, '-c', folder, '-c', 'clusters/plain'];
    assert.is((await keelson(copy, approve)).code, 0);
  }));

test('render --out writes, finds nothing to do, tells a difference, and removes what it no longer renders', () =>
  using(async (copy) => {
    const tree = join(dirname(dirname(copy.folder)), 'out/example');
    assert.is((await keelson(copy, ['render', '--out', 'out'])).code, 0);
    assert.is((await keelson(copy, ['render', '--out', 'out', '--check'])).code, 0);
    copy.remove('manifests/demo/30-web');
    const check = await keelson(copy, ['render', '--out', 'out', '--check']);
    assert.is(check.code, 3);
    assert.match(check.out, /- payload\/manifests-demo\/30-web\/service_demo_web\.yaml/);
    assert.ok(readdirSync(join(tree, 'payload/manifests-demo')).includes('30-web'), 'a check changed something');
    assert.is((await keelson(copy, ['render', '--out', 'out'])).code, 0);
    assert.equal(readdirSync(join(tree, 'payload/manifests-demo')).sort(), ['10-base', '20-config', 'index.json']);
    assert.equal(
      readdirSync(tree, { recursive: true }).filter((name) => String(name).endsWith('.part')),
      [],
    );
  }));

test('several folders need a choice, and -c may be given more than once', () =>
  using(async (copy) => {
    copy.write('../other/cluster.yaml', copy.read('cluster.yaml').replace('name: example', 'name: other'));
    copy.write('../other/keelson.lock.yaml', copy.read('keelson.lock.yaml').replace('name: example', 'name: other'));
    copy.write('../other/cluster.yaml', copy.read('../other/cluster.yaml').replace(/ {2}releases:[\s\S]*/, ''));
    const none = await keelson(copy, ['render']);
    assert.is(none.code, 2);

    assert.match(none.err, /clusters\/ holds other, plain/);
    const both = await keelson(copy, ['render', '-c', 'clusters/plain', '-c', 'clusters/other', '--out', 'out']);
    assert.is(both.code, 0, both.err);
    assert.match(both.out, /other: \d+ added/);
    copy.write('../other/stray.yaml', 'kind: Nothing\n');
    assert.is(
      (await keelson(copy, ['render', '-c', 'clusters/plain', '-c', 'clusters/other', '--out', 'two'])).code,
      2,
    );
    assert.not(
      readdirSync(dirname(dirname(copy.folder))).includes('two'),
      'one cluster was written although another failed',
    );
  }));

test('two clusters never go to one place: neither in one run nor one after the other, by render or by publish', () =>
  using(async (copy) => {
    const top = dirname(dirname(copy.folder));
    const shared = copy
      .read('cluster.yaml')
      .replace('branch: rendered', 'branch: rendered\n    path: shared')
      .replace(/ {2}releases:[\s\S]*/, '');
    copy.write('cluster.yaml', shared);
    copy.write('../other/cluster.yaml', shared.replace('name: example', 'name: other'));
    copy.write('../other/keelson.lock.yaml', copy.read('keelson.lock.yaml').replace('name: example', 'name: other'));
    const both = ['-c', 'clusters/plain', '-c', 'clusters/other'];
    const refused = async (...args: string[]): Promise<void> => {
      const said = await keelson(copy, args);
      assert.is(said.code, 2, said.err);
      assert.match(said.err, /TreeTaken/);
      assert.match(said.err, /example.*other|other.*example/s);
    };
    await refused('render', ...both, '--out', 'out');
    assert.not(readdirSync(top).includes('out'), 'one of the two was written');
    assert.is((await keelson(copy, ['render', '-c', 'clusters/plain', '--out', 'out'])).code, 0);
    const before = readFileSync(join(top, 'out/shared/.keelson/tree.json'), 'utf8');
    await refused('render', '-c', 'clusters/other', '--out', 'out');
    await refused('render', '-c', 'clusters/other', '--out', 'out', '--check');
    assert.is(readFileSync(join(top, 'out/shared/.keelson/tree.json'), 'utf8'), before);
    spawnSync('git', ['init', '--quiet', '--initial-branch=main', top]);
    await refused('publish', ...both);
  }));

test('neither a signing key nor its content is ever told', () =>
  using(async (copy) => {
    const canary = '-----BEGIN PRIVATE KEY-----\ncanaryKeyMaterial\n-----END PRIVATE KEY-----\n';
    copy.write('../../key', canary);
    for (const said of [
      await keelson(copy, ['publish'], { KEELSON_SIGNING_KEY: canary }),
      await keelson(copy, ['publish', '--key', 'key']),
      await keelson(copy, ['publish', '--key', 'no-such-file']),
    ]) {
      assert.is(said.code, 2, said.err);
      assert.not.match(`${said.out}${said.err}`, /canaryKeyMaterial/);
    }
  }));

test('a revision that names no commit is told by its name, and one place to start from is enough', () =>
  using(async (copy) => {
    const cwd = dirname(dirname(copy.folder));
    const config = ['-c', 'user.name=T', '-c', 'user.email=t@example.com'];
    for (const args of [
      ['init', '--quiet'],
      ['add', '--all'],
      [...config, 'commit', '--quiet', '-m', 'specs'],
    ])
      assert.is(spawnSync('git', args, { cwd, env: { PATH: process.env.PATH, HOME: cwd } }).status, 0, args.join(' '));
    assert.is((await keelson(copy, ['plan', '--from', 'HEAD'])).code, 0);
    for (const revision of ['nope', 'HEAD~5', '-x', 'HEAD:clusters', '']) {
      const said = await keelson(copy, ['plan', `--from=${revision}`]);
      assert.is(said.code, 2, said.err);
      assert.ok(said.err.includes(`the revision names no commit (found ${JSON.stringify(revision)})`), said.err);
    }
    const both = await keelson(copy, ['plan', '--live', '--from', 'HEAD']);
    assert.is(both.code, 2);
    assert.match(both.err, /--live and --from name two places/);
  }));

test('approve prints what to commit, and explain what a word means', () =>
  using(async (copy) => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const said = await keelson(copy, ['approve', 'manifests-demo', '--plan', digest]);
    copy.write(
      'cluster.yaml',
      copy.read('cluster.yaml').replace(/ {2}releases:[\s\S]*/, said.out.replace(/^spec:\n/, '')),
    );
    assert.is((await keelson(copy, ['render'])).code, 0, copy.read('cluster.yaml'));
    assert.match(copy.read('cluster.yaml'), new RegExp(`mode: destructive\\n +planDigest: ${digest}`));
    assert.is((await keelson(copy, ['approve', 'manifests-demo', '--plan', 'latest'])).code, 2);
    assert.match((await keelson(copy, ['explain', 'fieldconflict'])).out, /^FieldConflict \(/);
    assert.is((await keelson(copy, ['explain', 'NoSuchWord'])).code, 2);
  }));

test('completion scripts are well-formed and know every verb', () =>
  using(async (copy) => {
    const bash = (await keelson(copy, ['completion', 'bash'])).out;
    const parsed = spawnSync('bash', ['-n'], { input: bash });
    assert.is(parsed.status, 0, String(parsed.stderr));
    const script = `${bash}\nCOMP_WORDS=(keelson keys ""); COMP_CWORD=2; _keelson; echo "\${COMPREPLY[@]}"`;
    assert.match(String(spawnSync('bash', [], { input: script }).stdout), /^init /);
    for (const shell of ['zsh', 'fish']) assert.match((await keelson(copy, ['completion', shell])).out, /publish/);
  }));

test('what a terminal would act upon is shown and not sent, and JSON means the same', () => {
  assert.is(
    visible('ready\u202e eurT \u2066x\u2069'),
    'ready\\u202e eurT \\u2066x\\u2069',
    'nor the order of what is shown',
  );
  assert.is(visible('a\tb\nc\u001b[2J\u009b1m\r\u007f é'), 'a\tb\nc\\u001b[2J\\u009b1m\\u000d\\u007f é');
  const value = { text: 'x\u001b\u009b\u007f\n' };
  assert.equal(JSON.parse(visible(JSON.stringify(value))), value);
  const program = join(import.meta.dirname, '../../bin/keelson.ts');
  const run = spawnSync(process.execPath, [program, 'explain', '\u001b[2Jword'], { encoding: 'utf8' });
  assert.is(run.status, 2);
  assert.match(run.stderr, /\\u001b\[2Jword/);
  assert.not(run.stderr.includes('\u001b'));
});

test('a reader that goes away is no failure, and output that can not be written is told', () =>
  using(async (copy) => {
    const program = join(import.meta.dirname, '../../bin/keelson.ts');
    const end = (child: ChildProcess): Promise<{ code: number | null; err: string }> =>
      new Promise((resolve) => {
        let err = '';
        child.stderr?.on('data', (chunk) => {
          err += chunk;
        });
        child.on('close', (code) => resolve({ code, err }));
      });
    const gone = spawn(process.execPath, [program, 'render', '-c', copy.folder], { stdio: ['ignore', 'pipe', 'pipe'] });
    gone.stdout.destroy();
    assert.equal(await end(gone), { code: 0, err: '' });
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [program, 'render', '-c', copy.folder], { stdio: ['ignore', full, 'pipe'] });
    const told = await end(child);
    closeSync(full);
    assert.equal(told, { code: 1, err: 'the output can not be written (ENOSPC)\n' });
  }));

test('what can not be written is told by its name, and leaves nothing half-written', () =>
  using(async (copy) => {
    const root = dirname(dirname(copy.folder));
    // A folder in the way refuses the write for every account, the superuser too.
    mkdirSync(join(root, 'out/example/payload/manifests-demo/index.json/x'), { recursive: true });
    const render = await keelson(copy, ['render', '--out', 'out']);
    assert.is(render.code, 1);
    assert.match(render.err, /index\.json can not be written: a folder stands in its place/);
    const names = readdirSync(join(root, 'out'), { recursive: true }).map(String);
    assert.equal(
      names.filter((name) => name.endsWith('.part') || name.endsWith('tree.json')),
      [],
    );
    writeFileSync(join(root, 'file'), '');
    for (const out of ['file', 'file/below'])
      assert.match(
        (await keelson(copy, ['render', '--out', out])).err,
        /folder .*file.* can not be (read|made): ENOTDIR/,
      );
    for (const out of ['clusters', 'clusters/plain', 'clusters/plain/below']) {
      copy.write('cluster.yaml', copy.read('cluster.yaml').replace('name: example\nspec', 'name: plain\nspec'));
      copy.write('keelson.lock.yaml', copy.read('keelson.lock.yaml').replace('name: example', 'name: plain'));
      const inside = await keelson(copy, ['render', '--out', out]);
      assert.is(inside.code, 2, inside.err);
      assert.match(inside.err, /among the specs/);
    }
  }));

test('a kubeconfig that can not be used is told at once', () =>
  using(async (copy) => {
    copy.write('../../empty', '');
    copy.write('../../broken', 'users:\n  - token: canary-token\n a: [');
    const root = dirname(dirname(copy.folder));
    for (const file of ['none', 'empty', 'broken']) {
      const began = performance.now();
      const told = await keelson(copy, ['--kubeconfig', join(root, file), 'status']);
      assert.is(told.code, 1);
      assert.match(told.err, /the kubeconfig can not be used: .*\n.*--kubeconfig/);
      assert.not.match(told.err, 'canary-token');
      assert.ok(performance.now() - began < 10_000, 'it was tried again');
    }
  }));

test('a key is written with its public half or not at all', () =>
  using(async (copy) => {
    const root = dirname(dirname(copy.folder));
    for (const taken of ['a', 'b.pub']) {
      writeFileSync(join(root, taken), 'mine');
      const name = taken.replace('.pub', '');
      assert.is((await keelson(copy, ['keys', 'init', '--out', name])).code, 2);
      assert.is(readFileSync(join(root, taken), 'utf8'), 'mine');
      assert.equal(
        readdirSync(root).filter((file) => file.startsWith(name)),
        [taken],
      );
    }
    assert.match((await keelson(copy, ['keys', 'init', '--out', 'none/key'])).err, /can not be written: ENOENT/);
  }));

test('the published program is plain JavaScript that names what is missing', () => {
  const shim = join(import.meta.dirname, '../../bin/keelson.mjs');
  assert.match(readFileSync(shim, 'utf8'), /^#!\/usr\/bin\/env node\n/);
  assert.is(spawnSync(process.execPath, ['--check', shim]).status, 0);
});

test.run();
