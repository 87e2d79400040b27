// time limit: 300s
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { waitFor } from '../../../constructs/lib/wait.ts';
import { destroyCluster } from '../destroy.ts';
import { allPids, identify, killAll } from '../processes.ts';
import { ensurePrograms } from '../programs.ts';
import { startCluster } from '../start.ts';
import { readState } from '../state.ts';
import { additions, clusterNamespaces, heldNamespaces, type MachineSnapshot, takeSnapshot } from './machine.ts';
import { runIdlePods } from './pods.ts';

const ownerFile = fileURLToPath(new URL('./owner.ts', import.meta.url));
let directory = '';
let before: MachineSnapshot = {};

test.before(async () => {
  await ensurePrograms({ env: process.env });
  directory = mkdtempSync(join(tmpdir(), 'keelson-clusters-'));
});

test.before.each(async () => {
  before = await takeSnapshot();
});

test.after(async () => {
  for (const name of ['plain', 'killed', 'early', 'orphan', 'one', 'two']) {
    await destroyCluster(join(directory, name), systemClock);
  }
  rmSync(directory, { recursive: true, force: true });
});

/** The namespaces of a cluster that runs. Those of other programs come and go, so only these are asked for later. */
function namespacesOf(name: string): string[] {
  return clusterNamespaces(readState(join(directory, name))?.id ?? 'none');
}

/** Waits until the machine has nothing that it had not before the test, and nobody is in these namespaces. */
async function nothingLeft(...namespaces: string[]): Promise<void> {
  await waitFor({
    what: 'the machine to be as before',
    limitMs: 15_000,
    intervalMs: 250,
    clock: systemClock,
    probe: async (saw) => {
      const left = [...additions(before, await takeSnapshot()), ...heldNamespaces(namespaces)];
      saw(left.slice(0, 20).join('\n'));
      return left.length === 0 ? true : undefined;
    },
  });
}

function startOwner(name: string): { child: ChildProcess; said(line: RegExp): Promise<void> } {
  const child = spawn(process.execPath, [ownerFile, directory, name], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (child.stdout === null) throw new Error('no output of the owner');
  const seen: string[] = [];
  let notify = (): void => undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    seen.push(line);
    notify();
  });
  return {
    child,
    said: (line) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (seen.some((each) => line.test(each))) resolve();
        };
        notify = look;
        child.once('exit', (code) => reject(new Error(`the owner ended (${code}) having said: ${seen.join(' | ')}`)));
        look();
      }),
  };
}

async function killNine(child: ChildProcess): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  await gone;
}

function directoryGone(name: string): Promise<true> {
  return waitFor({
    what: `the reaper to remove ${name}`,
    limitMs: 40_000,
    intervalMs: 100,
    clock: systemClock,
    probe: async () => (existsSync(join(directory, name)) ? undefined : true),
  });
}

test('down leaves nothing behind, with pods running', async () => {
  const cluster = await startCluster({ directory, name: 'plain' });
  await runIdlePods(cluster);
  const during = additions(before, await takeSnapshot());
  for (const kind of ['processes', 'mounts', 'links', 'routes', 'cgroups']) {
    assert.ok(
      during.some((line) => line.startsWith(`${kind}: `)),
      `a running cluster must show among the ${kind} of the snapshot`,
    );
  }
  assert.not.ok(
    during.some((line) => /^(settings|firewall|files): /.test(line)),
    `a running cluster changes no setting, rule or shared folder of the host: ${during.join('\n')}`,
  );
  // Per node: mounts, network, processes, host name, IPC; per pod on the host network: mounts, processes.
  const namespaces = namespacesOf('plain');
  assert.ok(namespaces.length >= 21, `seen only ${namespaces.join(', ')}`);
  await cluster.down();
  assert.not.ok(existsSync(cluster.directory));
  await nothingLeft(...namespaces);
});

test('a killed owner leaves nothing behind', async () => {
  const owner = startOwner('killed');
  await owner.said(/^running$/);
  const namespaces = namespacesOf('killed');
  assert.ok(namespaces.length >= 21);
  await killNine(owner.child);
  await directoryGone('killed');
  await nothingLeft(...namespaces);
});

test('an owner killed in the middle of the start leaves nothing behind', async () => {
  const owner = startOwner('early');
  await owner.said(/^nodes node-1/);
  const namespaces = namespacesOf('early');
  await killNine(owner.child);
  await directoryGone('early');
  await nothingLeft(...namespaces);
});

test('with owner and reaper killed, the state file is enough', async () => {
  const owner = startOwner('orphan');
  await owner.said(/^running$/);
  const place = join(directory, 'orphan');
  const reapers = allPids().filter((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      return command.includes('reaper.ts') && command.includes(place);
    } catch {
      return false;
    }
  });
  assert.is(reapers.length, 1);
  await killAll(
    reapers.map(identify).filter((id) => id !== undefined),
    systemClock,
  );
  await killNine(owner.child);
  assert.ok(existsSync(place));
  const namespaces = namespacesOf('orphan');
  assert.ok(namespaces.length >= 21);
  await destroyCluster(place, systemClock);
  assert.not.ok(existsSync(place));
  await nothingLeft(...namespaces);
});

test('two clusters share a machine, a name is used once', async () => {
  const [one, two] = await Promise.all([
    startCluster({ directory, name: 'one', nodes: 1 }),
    startCluster({ directory, name: 'two', nodes: 1, cni: 'bridge' }),
  ]);
  assert.is.not(one.apiServer, two.apiServer);
  assert.is.not(one.registry.hostRef, two.registry.hostRef);
  assert.is.not(one.node('node-1').ip, two.node('node-1').ip);
  for (const cluster of [one, two]) {
    assert.match(await cluster.kubectl(['get', 'nodes', '-o', 'name']), /^node\/node-1\n$/);
  }
  try {
    await startCluster({ directory, name: 'one', nodes: 1 });
    assert.unreachable('a second cluster of the same name was started');
  } catch (error) {
    assert.match(String(error), /one.*running|running.*one/s);
  }
  const namespaces = [...namespacesOf('one'), ...namespacesOf('two')];
  await Promise.all([one.down(), two.down()]);
  await nothingLeft(...namespaces);
});

test.run();
