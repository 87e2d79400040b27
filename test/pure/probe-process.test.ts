import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Outcome } from '../../executor/observe/round.ts';
import { bundleProbe, probeEnvironment, probeFlags } from '../../images/probe.ts';
import { downwardOf, executorBed, subjectOf, targetOf, tokenOf } from './evidence-bed.ts';

const test = suite('probe process');
const bed = await executorBed();
await bed.believe([await bed.newAuthority('first')]);
const source = (path: string): string => fileURLToPath(new URL(`../../bin/${path}`, import.meta.url));
const program = await bundleProbe({ entry: source('probe.ts'), offer: source('probe-offer.ts') }, bed.directory);
test.after(() => bed.stop());

/** Of 60 MiB that it may take; some 42 are Node's own. */
const memoryLimitKiB = 57 * 1024;

/** Resident memory of a process, and the most it ever had. */
async function memoryOf(pid: number): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
  return { now: of('VmRSS'), peak: of('VmHWM') };
}

/** Starts the program as a chassis' sidecar, works with it, and ends it. */
async function served(
  n: number,
  node: readonly string[],
  work: (probe: { readonly pid: number; readonly said: string[]; ask(): Promise<Outcome<'chassis'>> }) => Promise<void>,
): Promise<void> {
  const subject = subjectOf(n);
  bed.know(subject);
  await writeFile(join(bed.directory, 'token'), tokenOf(subject));
  const where = ['--trust', bed.directory, '--ovn-run', bed.directory, '--ovs-run', bed.directory];
  const port = await bed.freePort();
  const args = [...node, ...probeFlags, program, 'probe', 'chassis', '--port', String(port), ...where];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...probeEnvironment, ...downwardOf(subject) },
  });
  const ended = once(child, 'exit');
  const said: string[] = [];
  const up = Promise.withResolvers<void>();
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    if (line.includes('listening')) up.resolve();
  });
  try {
    await Promise.race([up.promise, ended.then(() => assert.unreachable(said.join('\n')))]);
    const ask = () => bed.pull(targetOf(subject), bed.pulling([port], { limitMs: 20_000 }));
    await work({ pid: child.pid ?? 0, said, ask });
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

test('the program of the image serves, is enrolled, tells which daemons are absent, and stays within its memory', () =>
  served(1, [], async ({ pid, said, ask }) => {
    const first = await ask();
    if (first.type !== 'Evidence') throw new Error(JSON.stringify([first, said]));
    const { facts, problems } = first.evidence;
    assert.equal(facts, {});
    assert.equal(
      problems.map(({ component, code }) => [component, code]),
      [
        ['ovsdb', 'refused'],
        ['controller', 'refused'],
        ['vswitchd', 'refused'],
      ],
    );
    // Asked for an hour or so: what ended connections leave behind must not pile up.
    for (let turn = 0; turn < 300; turn += 1) assert.is((await ask()).type, 'Evidence');
    const { now, peak } = await memoryOf(pid);
    console.log(`probe process: ${(now / 1024).toFixed(1)} MiB resident, ${(peak / 1024).toFixed(1)} MiB at most`);
    assert.ok(peak < memoryLimitKiB, `${peak} KiB`);
    assert.not.match(said.join('\n'), /PRIVATE KEY|token-of/);
  }));

test('a disk that takes no byte: a probe that may write no file makes its key, is enrolled and answers', () =>
  // The permission model of Node answers every write to the file system with an error.
  served(2, ['--permission', '--allow-fs-read=*', '--allow-child-process'], async ({ said, ask }) => {
    const outcome = await ask();
    assert.is(outcome.type, 'Evidence', JSON.stringify([outcome, said]));
    assert.not.match(said.join('\n'), /ERR_ACCESS_DENIED/);
  }));

test('the network probe is known by a name of its own', async () => {
  const port = await bed.freePort();
  const { namespace, pod, podUID, node } = subjectOf(1);
  const child = spawn(process.execPath, [join(bed.directory, 'network-probe'), 'server', '--port', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { POD_NAMESPACE: namespace, POD_NAME: pod, POD_UID: podUID, NODE_NAME: node, POD_IPS: '127.0.0.1,::1' },
  });
  const ended = once(child, 'exit');
  const said: string[] = [];
  const up = Promise.withResolvers<void>();
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    if (said.filter((one) => one.includes('listening')).length === 2) up.resolve();
  });
  try {
    await Promise.race([up.promise, ended.then(() => assert.unreachable(said.join('\n')))]);
    for (const host of ['127.0.0.1', '[::1]']) {
      const answer = await fetch(`http://${host}:${port}/v1/echo?nonce=${'a'.repeat(48)}`);
      assert.equal(await answer.json(), { nonce: 'a'.repeat(48), namespace, podUID, node }, host);
    }
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
  assert.is(child.exitCode, 0, 'it ends when it is told to');
});

test('what the pod does not say is asked for, all at once', async () => {
  const child = spawn(process.execPath, [program, 'probe', 'central', '--limit-ms', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {},
  });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, 'close');
  assert.is(code, 2);
  for (const name of ['POD_NAMESPACE', 'POD_NAME', 'POD_UID', 'NODE_NAME', 'POD_IPS', '--limit-ms'])
    assert.match(said, name);
});

test.run();
