/** `keelson probe host` as a process, against folders and ports of this machine. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type EvidenceOf, parseEvidence } from '../../constructs/api/evidence.ts';
import { preflight } from '../../constructs/api/preflight.ts';
import { hostMessage } from '../../probes/host/message.ts';
import { listeningPorts } from '../../probes/host/ports.ts';

const nonce = 'ab'.repeat(16);
const env = {
  POD_NAMESPACE: 'keelson-system',
  POD_NAME: 'keelson-preflight-main-0-x1',
  POD_UID: '00000000-0000-4000-8000-000000000001',
  NODE_NAME: 'n1',
};
const entry = new URL('../../bin/probe.ts', import.meta.url).pathname;
const database = '/etc/origin/ovn';

const probes = suite<{ root: string }>('a look at a host');

probes.before.each(async (context) => {
  context.root = await mkdtemp(join(tmpdir(), 'keelson-host-'));
  await mkdir(join(context.root, 'etc'));
});
probes.after.each((context) => rm(context.root, { recursive: true, force: true }));

const run = promisify(execFile);

/** One run; what it left as its last words, read as the executor reads it. */
async function look(root: string, more: readonly string[] = []): Promise<EvidenceOf<'host'>> {
  const out = join(root, 'last-words');
  const told = [`--nonce=${nonce}`, `--root=${root}`, `--database=${database}`, '--cni=/etc/cni/net.d', `--out=${out}`];
  await run(process.execPath, [entry, 'probe', 'host', ...told, ...more], { env });
  const words = await readFile(out);
  assert.ok(words.byteLength <= preflight.messageBytes);
  const reading = parseEvidence(words, { kind: 'host', nonce });
  if (reading.outcome !== 'evidence') throw new Error(JSON.stringify(reading));
  return reading.evidence;
}

probes('tells a node on which nothing is, and leaves it so', async ({ root }) => {
  const { facts, complete, subject } = await look(root);
  assert.ok(complete);
  assert.is(subject.podUID, env.POD_UID);
  assert.is(subject.node, 'n1');
  assert.is(facts.database?.state, 'absent');
  assert.ok(BigInt(facts.database?.freeBytes ?? 0) > 0n);
  assert.equal(facts.cni?.files, []);
  assert.match(facts.kernel?.release ?? '', /^\d+\.\d+/);
  assert.equal(await readdir(join(root, 'etc')), [], 'no folder is made');
});

probes('tells files of a database, ports that are taken, and the order of networks', async ({ root }) => {
  await mkdir(join(root, database), { recursive: true });
  await writeFile(join(root, database, 'ovnnb_db.db'), 'data');
  await mkdir(join(root, '/etc/cni/net.d'), { recursive: true });
  for (const name of ['10-b.conflist', '00-a.conf', 'README', '.kubeconfig'])
    await writeFile(join(root, '/etc/cni/net.d', name), '');
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  try {
    const { facts } = await look(root, [`--port=${port}`, '--port=1']);
    assert.equal(facts.database?.entries, ['ovnnb_db.db']);
    assert.is(facts.database?.state, 'occupied');
    assert.equal(facts.ports, [
      { port, free: false },
      { port: 1, free: true },
    ]);
    assert.equal(facts.cni?.files, ['00-a.conf', '10-b.conflist']);
  } finally {
    await new Promise((done) => server.close(done));
  }
});

probes('takes for empty what a new file system brings, and not what was rescued into it', async ({ root }) => {
  await mkdir(join(root, database, 'lost+found'), { recursive: true });
  assert.is((await look(root)).facts.database?.state, 'empty');
  await writeFile(join(root, database, 'lost+found', '#12'), '');
  assert.is((await look(root)).facts.database?.state, 'occupied');
});

probes('follows links as the host does', async ({ root }) => {
  await mkdir(join(root, 'etc/elsewhere/ovn'), { recursive: true });
  await writeFile(join(root, 'etc/elsewhere/ovn/ovnsb_db.db'), 'data');
  await symlink('/etc/elsewhere', join(root, 'etc/origin'));
  const { facts } = await look(root);
  assert.equal(facts.database?.entries, ['ovnsb_db.db']);
});

probes('never takes for absent what it does not see', async ({ root }) => {
  await symlink('/data/origin', join(root, 'etc/origin'));
  const { facts, complete, problems } = await look(root);
  assert.not(complete);
  assert.is(facts.database, undefined);
  assert.equal(
    problems.map(({ component, code }) => `${component} ${code}`),
    ['database denied'],
  );
  assert.match(problems[0]?.message ?? '', /\/data, which this pod does not see/);
});

probes('ends a circle of links, and tells a file where a folder is wanted', async ({ root }) => {
  await symlink('/etc/origin', join(root, 'etc/origin'));
  assert.equal(
    (await look(root)).problems.map(({ code }) => code),
    ['protocol'],
  );
  await rm(join(root, 'etc/origin'));
  await mkdir(join(root, 'etc/origin'));
  await writeFile(join(root, database), 'a file');
  assert.match((await look(root)).problems[0]?.message ?? '', /can not be read as a folder/);
});

probes('fits a crowded folder into the last words of a container', async ({ root }) => {
  await mkdir(join(root, database), { recursive: true });
  await Promise.all(
    Array.from({ length: 60 }, (_, n) => writeFile(join(root, database, `${n}-${'x'.repeat(200)}`), '')),
  );
  const { facts } = await look(root);
  assert.is(facts.database?.state, 'occupied');
  assert.ok((facts.database?.entries.length ?? 0) >= 1);
});

probes('refuses to start without knowing who it is, and tells everything that is wrong', async ({ root }) => {
  const started = run(process.execPath, [entry, 'probe', 'host', '--nonce=short', `--root=${root}`, '--port=0'], {
    env: {},
  });
  const failed = await started.then(
    () => undefined,
    (error: { code: number; stderr: string }) => error,
  );
  assert.is(failed?.code, 2);
  for (const part of ['--nonce', '--database', '--cni', '--port 0', 'POD_UID', 'NODE_NAME'])
    assert.match(failed?.stderr ?? '', part);
});

probes('reads who listens out of a table of the kernel', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue',
    '   0: 0100007F:19F1 00000000:0000 0A 00000000:00000000 00:00000000',
    '   1: 0100007F:19F2 0100007F:C350 01 00000000:00000000 00:00000000',
    '   2: 00000000000000000000000000000000:19F3 00000000000000000000000000000000:0000 0A 00000000:00000000',
    '',
  ].join('\n');
  assert.equal([...listeningPorts(table)], [6641, 6643]);
});

probes('says so when nothing can be left out any more', () => {
  const text = JSON.stringify({ facts: {}, problems: [{ message: 'x'.repeat(64) }] });
  assert.throws(() => hostMessage(text, 10), /does not fit/);
});

probes.run();
