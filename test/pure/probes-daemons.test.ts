/** Where daemons are found, who they are, and what a control socket may do to the one who asks. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseEvidence } from '../../constructs/api/evidence.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { missing } from '../../executor/observe/finding.ts';
import { identify } from '../../probes/daemons/identity.ts';
import { formatAddress, parseAddress } from '../../probes/jsonrpc/address.ts';
import { dial } from '../../probes/jsonrpc/dial.ts';
import { socketFault } from '../../probes/jsonrpc/fault.ts';
import { answer } from '../../probes/server/answer.ts';
import { ControlSocket } from '../../probes/unixctl/control.ts';
import { findControl } from '../../probes/unixctl/find.ts';
import { readConnectionStatus } from '../../probes/unixctl/words.ts';

interface Context {
  dir: string;
  servers: Server[];
  sockets: Set<Socket>;
}

const test = suite<Context>('daemons');
test.before.each(async (context) => {
  context.dir = await mkdtemp(join(tmpdir(), 'keelson-daemons-'));
  context.servers = [];
  context.sockets = new Set();
});
test.after.each(async ({ dir, servers, sockets }) => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  await rm(dir, { recursive: true, force: true });
});

/** A daemon that the test plays: what it does with what it is sent. */
async function listen(context: Context, name: string, answer: (socket: Socket) => void): Promise<string> {
  const path = join(context.dir, name);
  const server = createServer((socket) => {
    context.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', () => answer(socket));
  });
  context.servers.push(server);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return path;
}

const nothing = (): void => undefined;
const options = { daemon: 'ovn-northd', clock: systemClock, limitMs: 2000 };

async function ask(path: string, changes: { limitMs?: number; maxBytes?: number } = {}): Promise<unknown> {
  const control = await ControlSocket.open({ ...options, ...changes, path });
  if (control.type !== 'ok') return control;
  try {
    return await control.value.ask('status', [], readConnectionStatus);
  } finally {
    control.value.close();
  }
}

test('the file with the process id says which socket it is', async (context) => {
  const { dir } = context;
  for (const pid of [7, 42]) await listen(context, `ovn-controller.${pid}.ctl`, nothing);
  await writeFile(join(dir, 'ovn-controller.pid'), '42\n');
  assert.equal(await findControl(dir, 'ovn-controller'), {
    type: 'ok',
    value: { path: join(dir, 'ovn-controller.42.ctl'), pid: 42 },
  });
  await rm(join(dir, 'ovn-controller.pid'));
  const two = await findControl(dir, 'ovn-controller');
  assert.ok(two.type === 'fault' && two.code === 'protocol' && /2 control sockets/.test(two.message));
});

test('without the file a single socket is taken, and nothing that only looks like one', async (context) => {
  const { dir } = context;
  await listen(context, 'ovn-northd.5.ctl', nothing);
  await listen(context, 'ovn-northd-other.6.ctl', nothing);
  await writeFile(join(dir, 'ovn-northd.old.ctl'), '');
  for (const content of [undefined, '', '9', 'abc', '5; rm -rf', '9'.repeat(1000)]) {
    if (content !== undefined) await writeFile(join(dir, 'ovn-northd.pid'), content);
    const found = await findControl(dir, 'ovn-northd');
    assert.is(found.type === 'ok' && found.value.pid, 5, content);
  }
  for (const [where, program] of [
    [dir, 'ovs-vswitchd'],
    [join(dir, 'absent'), 'ovn-northd'],
  ] as const) {
    const absent = await findControl(where, program);
    assert.ok(absent.type === 'fault' && absent.code === 'refused' && absent.message.startsWith(program));
  }
});

test('a directory that can not be looked into says nothing of its daemons; one that is none has none', async ({
  dir,
}) => {
  await symlink('loop', join(dir, 'loop'));
  await writeFile(join(dir, 'file'), '');
  const codeAt = async (name: string): Promise<string> => {
    const found = await findControl(join(dir, name), 'ovn-northd');
    return found.type === 'fault' ? found.code : found.type;
  };
  assert.is(await codeAt('loop'), 'protocol');
  assert.is(await codeAt('x'.repeat(300)), 'protocol');
  assert.is(await codeAt('file'), 'refused');
  // Nobody but root may be kept out here, so what permission comes to is asked of the words for it.
  assert.is(socketFault(Object.assign(new Error('m'), { code: 'EACCES' }), 'w').code, 'denied');
});

test('who answers: the start of the process where it is seen, otherwise that of its socket', async (context) => {
  const { dir } = context;
  const socket = await listen(context, 'd.ctl', nothing);
  const proc = join(dir, 'proc');
  const stat = (name: string, start: string): string => `12 (${name}) S ${'0 '.repeat(18)}${start} 0 0\n`;
  await mkdir(join(proc, '12'), { recursive: true });
  const place = { daemon: 'd', socket, pid: 12, program: 'ovs (x) d', procDirectory: proc };
  const from = async (text: string): Promise<string | undefined> => {
    await writeFile(join(proc, '12', 'stat'), text);
    const identity = await identify(place);
    return identity.type === 'ok' ? identity.value.startTicks : undefined;
  };
  assert.is(await from(stat('ovs (x) d', '98765')), '98765');
  const bySocket = await from(stat('another', '98765'));
  assert.ok(BigInt(bySocket ?? 0) > 170_000_000_000n, 'another program has that id here');
  for (const text of ['', 'nonsense', stat('ovs (x) d', '-1')]) assert.is(await from(text), bySocket);
  const absent = await identify({ ...place, socket: join(dir, 'absent') });
  assert.ok(absent.type === 'fault' && absent.code === 'refused');
});

test('answers, errors, and texts of another form', async (context) => {
  const replies = new Map([
    ['fine', '{"id":0,"result":"connected\\n","error":null}'],
    ['error', '{"id":0,"error":"no such thing\\n"}'],
    ['other', '{"id":0,"result":"perhaps","error":null}'],
    ['shape', '{"id":0,"result":{"reply":"connected"},"error":null}'],
  ]);
  const answers: unknown[] = [];
  for (const [name, reply] of replies)
    answers.push(await ask(await listen(context, name, (socket) => socket.write(reply))));
  const fault = (code: string, message: string) => ({ type: 'fault', code, message });
  assert.equal(answers, [
    { type: 'ok', value: true },
    fault('protocol', 'ovn-northd: status: no such thing'),
    fault('protocol', 'ovn-northd: status, line 1: the connection status is none of connected, not connected'),
    fault('protocol', 'ovn-northd: an answer to status that is no text'),
  ]);
});

test('only that nobody listens says that a daemon does not run', async () => {
  const codes = ['refused', 'closed', 'denied', 'protocol', 'tooLarge', 'timeout', 'aborted'] as const;
  const judged = async (code: (typeof codes)[number]): Promise<string> => {
    const collect = async () => ({ type: 'fault', code, message: 'it said so' }) as const;
    const collector = { limitMs: 1_000, collect };
    const text = await answer({
      kind: 'chassis',
      nonce: 'ab'.repeat(16),
      subject: {
        namespace: 'kube-system',
        pod: 'ovs-ovn-1',
        podUID: '00000000-0000-4000-8000-000000000001',
        container: 'keelson-probe',
        node: 'n1',
        nodeBootID: 'boot',
      },
      version: 'test',
      collectors: { ovsdb: collector, controller: collector, vswitchd: collector },
      clock: systemClock,
      stuck: new Set(),
      signal: AbortSignal.timeout(5_000),
    });
    const read = parseEvidence(Buffer.from(text), { kind: 'chassis', nonce: 'ab'.repeat(16) });
    assert.is(read.outcome, 'evidence', text);
    return read.outcome === 'evidence' ? missing(read.evidence, 'controller', 'node n1').weight : '';
  };
  for (const code of codes) assert.is(await judged(code), code === 'refused' ? 'broken' : 'open', code);
});

test('a daemon that hangs, closes, floods or is not there', async (context) => {
  const hung = await listen(context, 'hung', nothing);
  const closing = await listen(context, 'closing', (socket) => socket.end('{"id":0,"res'));
  const flood = await listen(context, 'flood', (socket) => {
    socket.write(`{"id":0,"result":"${'x'.repeat(5000)}`);
  });
  const fault = (code: string, message: string) => ({ type: 'fault', code, message: `ovn-northd: ${message}` });
  assert.equal(await ask(hung, { limitMs: 50 }), fault('timeout', 'no answer to status within 50 ms'));
  assert.equal(await ask(closing), fault('closed', 'closed within a message'));
  assert.equal(await ask(flood, { maxBytes: 1000 }), fault('tooLarge', 'a message of more than 1000 bytes'));
  const absent = (await ask(join(context.dir, 'absent'))) as { code: string };
  assert.is(absent.code, 'refused');
});

test('a dial ends at its limit, by its signal, and for want of a certificate', async (context) => {
  const path = await listen(context, 'any', nothing);
  const given = await dial({ type: 'unix', path }, { clock: systemClock, limitMs: 1000, signal: AbortSignal.abort() });
  assert.ok(given.type === 'fault' && given.code === 'aborted');
  const bare = await dial({ type: 'ssl', host: '127.0.0.1', port: 1 }, { clock: systemClock, limitMs: 1000 });
  assert.ok(bare.type === 'fault' && bare.code === 'denied');
  const unreadable = { ca: '-----', cert: 'secret words', key: 'more of them' };
  const broken = await dial(
    { type: 'ssl', host: '127.0.0.1', port: 1 },
    { clock: systemClock, limitMs: 1000, tls: unreadable },
  );
  assert.ok(
    broken.type === 'fault' && broken.code === 'denied' && !broken.message.includes('secret'),
    JSON.stringify(broken),
  );
});

test('what an error of a socket means', () => {
  const code = (name: string): string => socketFault(Object.assign(new Error('x'), { code: name }), 'there').code;
  const cases: Readonly<Record<string, string>> = {
    ENOENT: 'refused',
    ECONNREFUSED: 'refused',
    ECONNRESET: 'closed',
    EPIPE: 'closed',
    ETIMEDOUT: 'timeout',
    EAGAIN: 'timeout',
    EACCES: 'denied',
    ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'denied',
    ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'denied',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'denied',
    SELF_SIGNED_CERT_IN_CHAIN: 'denied',
    CERT_HAS_EXPIRED: 'denied',
    ERR_SSL_WRONG_VERSION_NUMBER: 'protocol',
    ESOMETHING: 'protocol',
  };
  for (const [name, expected] of Object.entries(cases)) assert.is(code(name), expected, name);
});

test('addresses in every notation are one place', () => {
  const same = [
    ['tcp:[10.0.0.1]:6643', 'tcp:10.0.0.1:6643'],
    ['tcp:10.0.0.1', 'tcp:10.0.0.1:6640'],
    ['ssl:[FD00::1]:6641', 'ssl:[fd00::1]:6641'],
    ['ssl:fd00::1', 'ssl:[fd00::1]:6640'],
    ['ssl:ovn-nb.kube-system.svc:6641', 'ssl:ovn-nb.kube-system.svc:6641'],
    ['unix:/run/db.sock', 'unix:/run/db.sock'],
  ] as const;
  for (const [text, plain] of same) {
    const address = parseAddress(text);
    assert.is(address === undefined ? undefined : formatAddress(address), plain);
  }
  for (const bad of [
    '',
    'tcp:',
    'unix:',
    'ptcp:6641',
    'tcp:10.0.0.1:0',
    'tcp:10.0.0.1:65536',
    'tcp:[::1',
    'http://x',
    'tcp:a b:1',
  ])
    assert.is(parseAddress(bad), undefined, bad);
});

test.run();
