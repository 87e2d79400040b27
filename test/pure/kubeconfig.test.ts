import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runKeelson } from '../commandline.ts';

/** Which kubeconfig a command reads; the contexts that it then knows tell. */

const root = mkdtempSync(join(tmpdir(), 'keelson-kubeconfig-'));
const none = 'no-such-context';

/** A kubeconfig whose only context has the name given. */
function configOf(file: string, name: string): string {
  const path = join(root, file);
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server: 'https://192.0.2.1:6443' } }],
      users: [{ name, user: { token: 'token' } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    }),
    { mode: 0o600 },
  );
  return path;
}

mkdirSync(join(root, '.kube'));
configOf('.kube/config', 'home');
const one = configOf('one', 'one');
const two = configOf('two', 'two');

/** The message of a command that asks for a context which no file has. The library sees the environment of this process. */
async function told(kubeconfig: string | undefined, ...args: string[]): Promise<string> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: root,
    ...(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig }),
  };
  const before = { HOME: process.env.HOME, KUBECONFIG: process.env.KUBECONFIG };
  delete process.env.KUBECONFIG;
  Object.assign(process.env, env);
  try {
    const said = await runKeelson(['status', '--context', none, ...args], { env, cwd: root });
    assert.is(said.code, 1, said.err);
    return said.err;
  } finally {
    for (const [name, value] of Object.entries(before))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
}

const has = (...contexts: string[]): RegExp => new RegExp(`no context '${none}'; it has: ${contexts.join(', ')}\n`);

test('a file that is named is read, also with a colon in its name, and no other', async () => {
  const colon = configOf('10.0.0.1:6443.kubeconfig', 'colon');
  for (const environment of [undefined, one, [one, two].join(delimiter)])
    assert.match(await told(environment, '--kubeconfig', colon), has('colon'));
});

test('a file that is named and does not exist is told by its name; nothing else is read in its place', async () => {
  for (const name of ['10.0.0.2:6443.kubeconfig', 'missing']) {
    const missing = join(root, name);
    for (const environment of [undefined, one]) {
      const message = await told(environment, '--kubeconfig', missing);
      assert.ok(message.includes('the kubeconfig can not be used') && message.includes(missing), message);
    }
  }
});

test('KUBECONFIG names one file, or several that are merged', async () => {
  assert.match(await told(one), has('one'));
  assert.match(await told([one, two].join(delimiter)), has('one', 'two'));
});

test('an empty KUBECONFIG is none', async () => {
  for (const environment of ['', undefined]) assert.match(await told(environment), has('home'));
});

test.after(() => rmSync(root, { recursive: true, force: true }));

test.run();
