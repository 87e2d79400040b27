import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { type Duplex, PassThrough } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { kubeletWay } from '../../executor/evidence/forward.ts';
import { directWay, type Way } from '../../executor/evidence/way.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { forwarded, forwardServer, streamNames } from '../standins/portforward.ts';
import { chassisCollectors, dayMs, executorBed, subjectOf, targetOf, tokenOf } from './evidence-bed.ts';
import { closedPort, listening } from './evidence-ports.ts';

const test = suite('evidence dial');
const bed = await executorBed();
const first = await bed.newAuthority('first');
test.before.each(async () => {
  await bed.believe([first]);
});
test.after(() => bed.stop());

test('nobody there is Unreachable, by every way in turn', async () => {
  const tried: string[] = [];
  const way =
    (name: string): Way =>
    (port, signal) => {
      tried.push(name);
      return directWay('127.0.0.1', 1_000)(port, signal);
    };
  const outcome = await bed.pull(
    targetOf(subjectOf(1)),
    bed.pulling([await closedPort()], { ways: () => [way('direct'), way('kubelet')] }),
  );
  assert.is(outcome.type, 'Unreachable');
  assert.match(JSON.stringify(outcome), /ECONNREFUSED.*ECONNREFUSED/);
  assert.equal(tried, ['direct', 'kubelet']);
});

type Told = (socket: Duplex) => void;

const reason = forwarded(1, Buffer.from('error forwarding port: connection refused'));

/** The way through a kubelet that says what a case has it say of who listens there. */
async function kubelet(told: Told): Promise<{ ways: () => Way[]; close(): void }> {
  const { url, close } = await forwardServer(told);
  const current = async () => ({ server: url, tls: { insecure: false }, headers: {} });
  return { ways: () => [kubeletWay({ current, renewed: current }, targetOf(subjectOf(1)), 1_000)], close };
}

const silences: readonly [string, Told, RegExp][] = [
  ['a reason with the names', (to) => to.write(Buffer.concat([streamNames, reason])), /can not reach the port/],
  [
    'a reason after the first bytes',
    (to) => {
      to.write(streamNames);
      to.once('data', () => to.write(reason));
    },
    /can not reach the port/,
  ],
  ['an end with the names', (to) => to.end(streamNames), /port 1: it ended/],
  [
    'an end after the first bytes',
    (to) => {
      to.write(streamNames);
      to.once('data', () => to.end());
    },
    /it ended before anybody shook hands/,
  ],
  ['nothing after the names', (to) => to.write(streamNames), /nobody shook hands within 600 ms/],
  ['nothing at all', () => undefined, /no connection in time/],
];

for (const [what, told, why] of silences)
  test(`a forwarded port that nobody is known to listen on is Unreachable, although its stream opens: ${what}`, async () => {
    const { ways, close } = await kubelet(told);
    try {
      const outcome = await bed.pull(targetOf(subjectOf(1)), bed.pulling([1, 2], { ways, limitMs: 600 }));
      assert.is(outcome.type, 'Unreachable', JSON.stringify(outcome));
      assert.match(JSON.stringify(outcome), why);
      assert.match(JSON.stringify(outcome), /port-forward to kube-system\/ovs-ovn-1 port 1: /);
    } finally {
      close();
    }
  });

test('whoever has shaken hands is there, by whatever way: silence after that is Hung', async () => {
  const never = { limitMs: 60_000, collect: () => new Promise<never>(() => undefined) };
  const probe = await bed.start(3, { collectors: { ...chassisCollectors, ovsdb: never } });
  const forwarded: Way = async (port, signal) => {
    const opened = await directWay('127.0.0.1', 1_000)(port, signal);
    return opened.type === 'open' ? { ...opened, unproven: 'a way that proves nothing' } : opened;
  };
  const options = bed.pulling([probe.port], { limitMs: 1_500, ways: () => [forwarded] });
  assert.equal(await bed.pull(targetOf(probe.subject), options), { type: 'Hung', limitMs: 1_500 });
});

test('a connection that is accepted and let go at once is Untrusted: somebody is there', async () => {
  const short = createServer((socket) => socket.on('error', () => undefined).end());
  const ended: Way = async () => ({ type: 'open', stream: new PassThrough().destroy() });
  const outcome = await bed.pull(targetOf(subjectOf(1)), bed.pulling([await listening(short)]));
  short.close();
  assert.match(JSON.stringify(outcome), /Untrusted.*closed the connection without an answer/);
  assert.equal(await bed.pull(targetOf(subjectOf(1)), bed.pulling([1], { ways: () => [ended] })), {
    type: 'Untrusted',
    message: 'port 1: the peer closed the connection without an answer',
  });
});

test('the second way is taken with the same proof on both sides', async () => {
  const probe = await bed.start(1);
  const dead: Way = async () => ({ type: 'unreachable', message: 'blocked' });
  const ways = () => [dead, directWay('127.0.0.1', 1_000)];
  assert.is((await bed.pull(targetOf(probe.subject), bed.pulling([probe.port], { ways }))).type, 'Evidence');
  const other = await bed.pull(targetOf(subjectOf(2)), bed.pulling([probe.port], { ways }));
  assert.is(other.type, 'Untrusted');
});

test('a probe of a node of IPv6 is enrolled and asked by its address, and by the first of two families', async () => {
  const subject = subjectOf(7);
  const of = (...addresses: string[]) => ({
    host: addresses[0] ?? '',
    makeOffer: () => makeOffer(subject, addresses, bed.clock.now()),
  });
  const probe = await bed.start(7, of('::1'));
  const ways = ({ addresses: [host = ''] }: { readonly addresses: readonly string[] }) => [directWay(host, 1_000)];
  const ask = (port: number, ...addresses: string[]) =>
    bed.pull({ ...targetOf(subject), addresses }, bed.pulling([port], { ways }));
  // One address has many spellings, and the certificate has another one than the kubelet tells.
  const outcome = await ask(probe.port, '0:0:0:0:0:0:0:1');
  assert.is(outcome.type, 'Evidence', JSON.stringify(outcome));
  await probe.stop();
  const dual = await bed.start(7, of('127.0.0.1', '::1'));
  assert.is((await ask(dual.port, '127.0.0.1', '::1')).type, 'Evidence');
  await dual.stop();
  const foreign = await bed.start(7, of('::1', 'fd00::9'));
  assert.match(JSON.stringify(await ask(foreign.port, '::1')), /Untrusted.*fd00::9, which pod .* does not have/);
});

test('where nothing at all comes, not even a refusal, no other port is waited for', async () => {
  const tried: number[] = [];
  const away =
    (late: boolean): Way =>
    async (port) => {
      tried.push(port);
      return { type: 'unreachable', message: `port ${port}`, ...(late ? { late } : {}) };
    };
  const ask = (late: boolean) =>
    bed.pull(targetOf(subjectOf(1)), bed.pulling([1, 2], { ways: () => [away(late), away(false)] }));
  assert.equal(await ask(true), { type: 'Unreachable', message: 'port 1; port 1; port 2' });
  assert.equal(tried, [1, 1, 2]);
  assert.equal(await ask(false), { type: 'Unreachable', message: 'port 1; port 2; port 1; port 2' });
});

test('a peer that accepts and says nothing is Hung, and not retried', async () => {
  let ways = 0;
  const silent = createServer((socket) => socket.on('error', () => undefined));
  const port = await listening(silent);
  const outcome = await bed.pull(
    targetOf(subjectOf(1)),
    bed.pulling([port], {
      limitMs: 200,
      ways: () =>
        [1, 2].map(() => (to, signal) => {
          ways += 1;
          return directWay('127.0.0.1', 1_000)(to, signal);
        }),
    }),
  );
  assert.equal(outcome, { type: 'Hung', limitMs: 200 });
  assert.is(ways, 1);
  silent.close();
});

test('a probe that shakes hands and does not answer in time is Hung', async () => {
  const never = { limitMs: 60_000, collect: () => new Promise<never>(() => undefined) };
  const probe = await bed.start(2, { collectors: { ...chassisCollectors, ovsdb: never } });
  const outcome = await bed.pull(targetOf(probe.subject), bed.pulling([probe.port], { limitMs: 1_500 }));
  assert.is(outcome.type, 'Hung');
});

test('a server with a certificate of somebody else is Untrusted', async () => {
  const offer = await makeOffer(subjectOf(1), ['127.0.0.1'], bed.clock.now());
  const foreign = createTlsServer({ key: offer.key, cert: offer.selfSigned }, (socket) => {
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
  });
  const outcome = await bed.pull(targetOf(subjectOf(1)), bed.pulling([await listening(foreign)]));
  assert.is(outcome.type, 'Untrusted', JSON.stringify(outcome));
  foreign.close();
});

test('a probe that does not know whom to believe answers nobody, and does so once it knows', async () => {
  const probe = await bed.start(3);
  await rm(bed.authoritiesFile);
  const ask = () => bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
  assert.is((await ask()).type, 'Untrusted');
  await writeFile(bed.authoritiesFile, first.certificate);
  assert.is((await ask()).type, 'Evidence');
});

test('a file of authorities that a full disk cut off: nobody is believed by it, and all is well once it is whole', async () => {
  const probe = await bed.start(3);
  const ask = async () => (await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]))).type;
  assert.is(await ask(), 'Evidence');
  const reviews = bed.reviewed.length;
  const whole = first.certificate;
  for (const left of ['', whole.slice(0, 200), whole.slice(0, -40), 'x'.repeat(70_000), `${whole.slice(0, 40)}\0\0`]) {
    await writeFile(bed.authoritiesFile, left);
    assert.is(await ask(), 'Untrusted', JSON.stringify(left.slice(0, 60)));
  }
  await rm(bed.authoritiesFile);
  await mkdir(bed.authoritiesFile);
  assert.is(await ask(), 'Untrusted', 'a folder in its place');
  await rm(bed.authoritiesFile, { recursive: true });
  await writeFile(bed.authoritiesFile, whole);
  assert.is(await ask(), 'Evidence');
  assert.is(bed.reviewed.length, reviews, 'with the certificate that it held all along');
  // A token that was cut off proves nobody, and is not kept.
  const other = await bed.start(4);
  await writeFile(`${bed.directory}/token-4`, '');
  const enrol = async () => (await bed.pull(targetOf(other.subject), bed.pulling([other.port]))).type;
  assert.is(await enrol(), 'Untrusted');
  await writeFile(`${bed.directory}/token-4`, tokenOf(other.subject));
  assert.is(await enrol(), 'Evidence');
});

/** Certificates that are valid for a day of which so much is over. */
const aged = (overMs: number) => () => ({ from: bed.clock.now() - overMs, to: bed.clock.now() - overMs + dayMs });

test('a certificate is renewed after a third of its life, and not before', async () => {
  const probe = await bed.start(4);
  const target = targetOf(probe.subject);
  const options = bed.pulling([probe.port]);
  const signing = (overMs: number) => ({ ...options, enroller: { ...options.enroller, validity: aged(overMs) } });
  const reviews = bed.reviewed.length;
  assert.is((await bed.pull(target, signing(dayMs / 3 - 60_000))).type, 'Evidence');
  assert.is((await bed.pull(target, options)).type, 'Evidence');
  assert.is(bed.reviewed.length, reviews + 1, 'signed once, and not due');
  const late = await bed.start(5);
  const other = targetOf(late.subject);
  assert.is((await bed.pull(other, { ...signing(dayMs / 3), ports: () => [late.port] })).type, 'Evidence');
  const due = bed.reviewed.length;
  assert.is((await bed.pull(other, bed.pulling([late.port]))).type, 'Evidence');
  const renewed = bed.reviewed.length;
  assert.is(renewed, due + 1);
  assert.is((await bed.pull(other, bed.pulling([late.port]))).type, 'Evidence');
  assert.is(bed.reviewed.length, renewed, 'what was renewed is not due');
});

test('a renewal that fails takes no evidence away', async () => {
  const probe = await bed.start(5);
  const options = bed.pulling([probe.port]);
  const target = targetOf(probe.subject);
  const said: string[] = [];
  let reviews = 0;
  const enroller: typeof options.enroller = {
    validity: aged(dayMs / 2),
    review(token, signal) {
      reviews += 1;
      return reviews > 1
        ? Promise.resolve({ type: 'unavailable', message: 'down' })
        : options.enroller.review(token, signal);
    },
  };
  const broken = { ...options, enroller, log: (message: string) => said.push(message) };
  assert.is((await bed.pull(target, broken)).type, 'Evidence');
  assert.is((await bed.pull(target, broken)).type, 'Evidence');
  assert.ok(reviews > 1);
  assert.match(said.join(), /could not be renewed/);
});

test('with a certificate that has expired a probe answers no question, and asks for another one', async () => {
  const probe = await bed.start(6);
  const options = bed.pulling([probe.port]);
  const target = targetOf(probe.subject);
  const expired = { ...options, enroller: { ...options.enroller, validity: aged(dayMs + 60_000) } };
  assert.is((await bed.pull(target, expired)).type, 'Untrusted');
  const reviews = bed.reviewed.length;
  assert.is((await bed.pull(target, options)).type, 'Evidence');
  assert.is(bed.reviewed.length, reviews + 1);
});

test('through a change of authority there is evidence at every step', async () => {
  const probe = await bed.start(7);
  const ask = async (when: string) =>
    assert.is((await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]))).type, 'Evidence', when);
  await ask('steady');
  // One name for both, as a renewal by other software leaves it.
  const second = await bed.newAuthority('first');
  await bed.believe([first, second], [first]);
  await ask('introduced, the probe has not read of it');
  await bed.believe([first, second]);
  await ask('introduced');
  await bed.believe([second, first], [first]);
  await ask('promoted, and the probe still believes the old one only');
  await bed.believe([second, first]);
  const reviews = bed.reviewed.length;
  await ask('promoted');
  await ask('promoted');
  assert.ok(bed.reviewed.length <= reviews + 1, 'a certificate by the old authority is replaced once');
  await bed.believe([second]);
  await ask('retired');
});

test('a probe with a certificate by somebody unknown is enrolled anew', async () => {
  const probe = await bed.start(8);
  const ask = () => bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
  assert.is((await ask()).type, 'Evidence');
  const other = await bed.newAuthority('other');
  await bed.believe([other]);
  const reviews = bed.reviewed.length;
  assert.is((await ask()).type, 'Evidence');
  assert.is(bed.reviewed.length, reviews + 1);
});

test('a pod that was replaced meanwhile is not the one that was asked', async () => {
  const probe = await bed.start(9);
  let looks = 0;
  const moved = () => {
    looks += 1;
    return looks > 1 ? 'the pod was replaced' : undefined;
  };
  const outcome = await bed.pull(targetOf(probe.subject), bed.pulling([probe.port], { moved }));
  assert.equal(outcome, { type: 'IdentityChanged', message: 'the pod was replaced' });
  const container = await bed.pull({ ...targetOf(probe.subject), container: 'other' }, bed.pulling([probe.port]));
  assert.is(container.type, 'Untrusted');
});

test('an API server that does not review a token in time costs the probe its round, and no other one', async () => {
  const probe = await bed.start(6);
  const { enroller, ...options } = bed.pulling([probe.port], { limitMs: 1_500 });
  const asked = (review: typeof enroller.review) =>
    bed.pull(targetOf(probe.subject), { ...options, enroller: { ...enroller, review } });
  // A client ends a request that was given up with the reason of the signal.
  const slow = await asked(
    (_token, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  assert.equal(slow, {
    type: 'Untrusted',
    message: `port ${probe.port}: the API server did not review its token in time`,
  });
  const said: string[] = [];
  const defect = await bed.pull(targetOf(probe.subject), {
    ...options,
    log: (message) => said.push(message),
    enroller: { ...enroller, review: () => Promise.reject(new RangeError('secret')) },
  });
  assert.is(defect.type, 'Unreadable');
  assert.equal(said, ['pod kube-system/ovs-ovn-6 could not be asked: RangeError']);
  assert.is((await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]))).type, 'Evidence');
});

test('an abort ends everything at once', async () => {
  const silent = createServer((socket) => socket.on('error', () => undefined));
  const port = await listening(silent);
  const abort = new AbortController();
  const { pullEvidence } = await import('../../executor/evidence/pull.ts');
  const pulled = pullEvidence(targetOf(subjectOf(1)), bed.pulling([port], { limitMs: 60_000 }), abort.signal);
  silent.once('connection', () => abort.abort(new Error('enough')));
  const from = performance.now();
  const error = await pulled.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.match(String(error), /enough/);
  assert.ok(performance.now() - from < 1_000);
  silent.close();
});

test('keys and tokens are in nothing that is said', async () => {
  const canary = 'canary-5fd1c2';
  const probe = await bed.start(1);
  const said: string[] = [];
  await writeFile(`${bed.directory}/token-1`, canary);
  const outcome = await bed.pull(
    targetOf(probe.subject),
    bed.pulling([probe.port], { log: (message) => said.push(message) }),
  );
  assert.is(outcome.type, 'Untrusted');
  const text = JSON.stringify([outcome, said, probe.said]);
  assert.not.ok(text.includes(canary));
  assert.not.ok(/PRIVATE KEY/.test(text));
});

test.run();
