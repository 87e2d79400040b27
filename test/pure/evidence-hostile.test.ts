// time limit: 90s
/** A probe that holds a certificate of its pod and answers whatever it likes: what comes of it, how long it takes, how much is read. */
import { createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { limits } from '../../constructs/api/constants.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { signPod } from '../../executor/pki/certificates.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { executorBed, subjectOf, targetOf } from './evidence-bed.ts';
import { answer, chassisFacts } from './observe-support.ts';

const test = suite('evidence from the hostile');
const bed = await executorBed();
const authority = await bed.newAuthority('first');
await bed.believe([authority]);
const subject = subjectOf(1);
const target = targetOf(subject);
const offer = await makeOffer(subject, ['127.0.0.1'], bed.clock.now());
const publicKey = createPublicKey(offer.key);
const certificate = await signPod({
  authority,
  publicKey: publicKey.export({ type: 'spki', format: 'der' }),
  identity: subject,
  addresses: ['127.0.0.1'],
  validity: bed.validity(),
});

/** Says something once it was asked; `nonce` is the one of the question. */
type Manner = (socket: TLSSocket, nonce: string) => void;
let manner: Manner = () => undefined;
let sent = 0;
const open = new Set<TLSSocket>();
const server = createTlsServer({ key: offer.key, cert: certificate, minVersion: 'TLSv1.3' }, (socket) => {
  open.add(socket);
  socket.on('error', () => undefined);
  socket.once('close', () => open.delete(socket));
  let head = '';
  socket.on('data', (chunk: Buffer) => {
    const asked = head.includes('\r\n\r\n');
    head += chunk.toString('latin1');
    const [, nonce] = /nonce=([0-9a-f]+)/.exec(head) ?? [];
    if (!asked && head.includes('\r\n\r\n') && nonce !== undefined) manner(socket, nonce);
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const bound = server.address();
const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
test.after(async () => {
  server.close();
  await bed.stop();
});

/** Writes one piece again and again, as fast as it is taken, until the connection is closed. */
const endless =
  (start: string, piece: string): Manner =>
  (socket) => {
    const bytes = Buffer.from(piece.repeat(Math.ceil(16_384 / piece.length)));
    const more = (): void => {
      while (!socket.destroyed) {
        sent += bytes.length;
        if (!socket.write(bytes)) return void socket.once('drain', more);
      }
    };
    socket.write(start);
    more();
  };

const once_ =
  (text: string | ((nonce: string) => string | Buffer)): Manner =>
  (socket, nonce) =>
    void socket.end(typeof text === 'string' ? text : text(nonce));

const http = (body: string | Buffer, more = ''): Buffer =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n`),
    Buffer.from(body),
  ]);

/** An answer of the right form, with some of it changed. */
function said(nonce: string, changes: object = {}): string {
  const made = answer(
    'chassis',
    { ...target, name: subject.pod, uid: subject.podUID, containers: [] },
    chassisFacts(1),
  );
  if (made.type !== 'Evidence') throw new Error(made.type);
  const { evidence } = made;
  return JSON.stringify({ ...evidence, nonce, subject: { ...evidence.subject, ...subject }, ...changes });
}

/** Asks once; tells what came of it in a word and a message. */
async function ask(limitMs = 5_000): Promise<string> {
  sent = 0;
  const outcome: Outcome<'chassis'> = await bed.pull(target, bed.pulling([port], { limitMs }));
  return outcome.type + ('message' in outcome ? ` ${outcome.message.replace(`port ${port}: `, '')}` : '');
}

const tooLarge = `Unreadable the answer has more than ${limits.evidenceBytes} bytes`;
const unreadable = 'Unreadable the answer is not one of HTTP, or broke off';
const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

const cases: readonly (readonly [what: string, manner: Manner, told: string])[] = [
  ['what it should', once_((nonce) => http(said(nonce))), 'Evidence'],
  ['a body without an end', endless('HTTP/1.1 200 OK\r\n\r\n', 'x'), tooLarge],
  ['chunks without an end', endless(chunked, '1\r\nx\r\n'), tooLarge],
  ['trailers without an end', endless(`${chunked}0\r\n`, 'x: y\r\n'), unreadable],
  ['headers without an end', endless('HTTP/1.1 200 OK\r\n', 'x: y\r\n'), unreadable],
  ['one header without an end', endless('HTTP/1.1 200 OK\r\nx: ', 'y'), unreadable],
  ['promises without an end', endless('', 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n'), tooLarge],
  ['empty lines without an end', endless('', '\r\n'), tooLarge],
  ['chunk extensions without an end', endless(`${chunked}1`, ';x=y'), unreadable],
  ['noise', endless('', '\0\xff'), unreadable],
  [
    'another protocol',
    once_('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    unreadable,
  ],
  ['half an answer', once_((nonce) => http(said(nonce)).subarray(0, 600)), unreadable],
  ['less than it said', once_((nonce) => `HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n${said(nonce)}`), unreadable],
  ['more than it said', once_((nonce) => `HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n${said(nonce)}`), unreadable],
  [
    'an answer elsewhere',
    once_('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n'),
    'Unreadable the probe answers with status 302',
  ],
  [
    'what is packed',
    once_((nonce) => http(gzipSync(said(nonce)), 'content-encoding: gzip\r\n')),
    'Unreadable the body is not JSON in UTF-8',
  ],
  ['nests without an end', once_(() => http('['.repeat(200_000))), 'Unreadable the body is not JSON in UTF-8'],
  [
    'nests in what is read over',
    once_((nonce) => http(said(nonce).replace('{', `{"more":${'['.repeat(90_000)}${']'.repeat(90_000)},`))),
    'Evidence',
  ],
  ['of a prototype', once_((nonce) => http(said(nonce).replace('{', '{"__proto__":{"complete":true},'))), 'Evidence'],
  ['an older answer', once_(() => http(said('c'.repeat(48)))), 'Unreadable the nonce is not the one that was sent'],
  [
    'for another node',
    once_((nonce) => http(said(nonce, { subject: { ...subject, node: 'node-2' } }))),
    'Untrusted the answer is about node node-2, asked was node-1',
  ],
  [
    'for another pod',
    once_((nonce) => http(said(nonce, { subject: { ...subject, podUID: subjectOf(2).podUID } }))),
    `Untrusted the answer is about podUID ${subjectOf(2).podUID}, asked was ${subject.podUID}`,
  ],
  [
    'facts beside their problem',
    once_((nonce) =>
      http(
        said(nonce, {
          complete: false,
          problems: [{ component: 'ovsdb', code: 'timeout', message: 'x', elapsedMs: 1, limitMs: 1 }],
        }),
      ),
    ),
    'Unreadable ovsdb is both a fact and a problem',
  ],
];

for (const [what, how, told] of cases)
  test(`a probe that says ${what}`, async () => {
    manner = how;
    const from = performance.now();
    assert.is(await ask(), told);
    assert.ok(performance.now() - from < 4_000, 'long before its time is over');
    // What lies in buffers of the kernel and of both ends was sent as well.
    assert.ok(sent < 16 * 1024 * 1024, `${sent} bytes`);
  });

test('a probe that drips is Hung when its time is over, however much it has said', async () => {
  manner = (socket, nonce) => {
    const bytes = http(said(nonce));
    let at = 0;
    const timer = setInterval(() => {
      socket.write(bytes.subarray(at, at + 1));
      at += 1;
    }, 10);
    socket.once('close', () => clearInterval(timer));
  };
  const from = performance.now();
  assert.is(await ask(400), 'Hung');
  assert.ok(performance.now() - from < 2_000);
});

test('none of it holds a connection, and the next answer is as good as any', async () => {
  manner = once_((nonce) => http(said(nonce)));
  assert.is(await ask(), 'Evidence');
  while (open.size > 0) await Promise.race([...open].map((socket) => once(socket, 'close')));
});

test.run();
