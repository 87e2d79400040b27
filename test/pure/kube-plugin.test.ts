import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { type KubeConfigOptions, kubeConfigCredentials } from '../../executor/kube/credentials.ts';

/** Credential plug-ins of a kubeconfig: real programs that answer, fail, or never come to an end. */

interface Run {
  readonly credentials: ReturnType<typeof kubeConfigCredentials>;
  /** The process id of the plug-in, or of what it told under another name, once it runs. */
  pid(name?: string): Promise<number>;
}

async function withPlugin(
  script: string,
  options: Partial<KubeConfigOptions>,
  body: (run: Run) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-plugin-'));
  const file = join(folder, 'config');
  const program = `
    process.chdir(${JSON.stringify(folder)});
    const { existsSync, writeFileSync } = require('node:fs');
    const again = existsSync('pid');
    writeFileSync('pid', String(process.pid));
    ${script}`;
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: ['-e', program],
    interactiveMode: 'Never',
  };
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'a', user: { exec } }],
  };
  writeFileSync(file, JSON.stringify(config));
  const probe = async (name: string): Promise<number | undefined> => {
    try {
      return Number(readFileSync(join(folder, name), 'utf8')) || undefined;
    } catch {
      return undefined;
    }
  };
  try {
    await body({
      credentials: kubeConfigCredentials({ file, clock: systemClock, ...options }),
      pid: (name = 'pid') =>
        waitFor({
          what: 'the plug-in to run',
          limitMs: 30_000,
          intervalMs: 10,
          clock: systemClock,
          probe: () => probe(name),
        }),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const hangs = 'setInterval(() => undefined, 1000)';

const isGone = async (pid: number): Promise<boolean> => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

const failure = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  );

test('a plug-in that answers gives its token', () =>
  withPlugin(
    `console.log(JSON.stringify({ kind: 'ExecCredential', status: { token: 'the-token' } }))`,
    {},
    async ({ credentials }) => {
      assert.is((await credentials.current()).headers.authorization, 'Bearer the-token');
    },
  ));

const refusesThen = `if (again) { console.error('no login'); process.exit(1); }`;

test('one that never answers is ended by the limit, and named; what goes wrong later is told as it is', () =>
  withPlugin(`${refusesThen} ${hangs}`, { pluginLimitMs: 5_000 }, async ({ credentials, pid }) => {
    const [error, id] = await Promise.all([failure(credentials.current()), pid()]);
    assert.match(error.message, /the credential plug-in .*node.* gave no answer within 5s/);
    assert.ok(await isGone(id));
    assert.match((await failure(credentials.current())).message, /no login/);
  }));

const wraps = `
  const { spawn } = require('node:child_process');
  const inner = spawn(process.execPath, ['-e', 'setTimeout(() => undefined, 60000)'], { stdio: 'inherit' });
  writeFileSync('inner', String(inner.pid));`;

test('one that only waits for a program of its own is ended all the same, while that program still runs', async () => {
  const stop = new AbortController();
  await withPlugin(wraps, { signal: stop.signal }, async ({ credentials, pid }) => {
    let failed: Error | undefined;
    void failure(credentials.current()).then((error) => {
      failed = error;
    });
    const inner = await pid('inner');
    try {
      stop.abort(new Error('enough'));
      const probe = async (): Promise<Error | undefined> => failed;
      await waitFor({ what: 'the plug-in to end', limitMs: 20_000, intervalMs: 10, clock: systemClock, probe });
    } finally {
      if (!(await isGone(inner))) process.kill(inner, 'SIGKILL');
    }
  });
});

test('one that is waited for ends with the command', async () => {
  const stop = new AbortController();
  await withPlugin(hangs, { signal: stop.signal }, async ({ credentials, pid }) => {
    const failed = failure(credentials.current());
    const id = await pid();
    stop.abort(new Error('enough'));
    await failed;
    assert.ok(await isGone(id));
  });
});

test.run();
