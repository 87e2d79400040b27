import { once } from 'node:events';
import { connect as connectPlain, createServer } from 'node:net';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeExecutorPair, signPod } from '../../executor/pki/certificates.ts';
import { readRequest } from '../../executor/pki/request.ts';
import { fault } from '../../probes/jsonrpc/fault.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { chassisCollectors, executorBed, subjectOf, targetOf } from './evidence-bed.ts';

const test = suite('evidence server');
const bed = await executorBed();
const first = await bed.newAuthority('first');
await bed.believe([first]);
test.after(() => bed.stop());

/** Bytes that a peer with this key and certificate gets before the connection ends. */
async function bytesFor(port: number, path: string, shown: { cert?: string; key?: string }): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...shown });
  let got = '';
  socket.on('data', (chunk) => {
    got += chunk;
  });
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: probe\r\n\r\n`);
  // An error is what most of them get.
  await new Promise((resolve) => socket.once('close', resolve));
  return got;
}

test('a probe is enrolled when it is first asked, and answers', async () => {
  const probe = await bed.start(1);
  const outcome = await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
  assert.is(outcome.type, 'Evidence', JSON.stringify(outcome));
  assert.is(outcome.type === 'Evidence' && outcome.evidence.facts.vswitchd?.bridge.name, 'br-int');
  const reviews = bed.reviewed.length;
  assert.is((await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]))).type, 'Evidence');
  assert.is(bed.reviewed.length, reviews, 'an enrolled probe costs the API server nothing');
});

test('whoever is not the executor gets nothing, before and after the enrolment', async () => {
  const probe = await bed.start(2);
  const stranger = await bed.newAuthority('stranger');
  const foreign = await makeExecutorPair(stranger, bed.validity());
  const expired = await makeExecutorPair(first, { from: bed.clock.now() - 3_000_000, to: bed.clock.now() - 1_000 });
  const offer = await makeOffer(subjectOf(1), ['127.0.0.1'], bed.clock.now());
  const read = await readRequest(offer.csr);
  if (read.type !== 'read') throw new Error(read.why);
  const { publicKey } = read.request;
  const leaf = { authority: first, publicKey, identity: subjectOf(1), addresses: [], validity: bed.validity() };
  const node = { key: offer.key, cert: await signPod(leaf) };
  const shown = {
    none: {},
    'its own': { key: offer.key, cert: offer.selfSigned },
    foreign: { key: foreign.key, cert: foreign.certificate },
    expired: { key: expired.key, cert: expired.certificate },
    'of another probe': node,
  };
  for (const when of ['before', 'after']) {
    for (const [who, pair] of Object.entries(shown))
      for (const path of ['/v1/enrolment', `/v1/evidence?nonce=${'ab'.repeat(16)}`])
        assert.is(await bytesFor(probe.port, path, pair), '', `${who} ${when} ${path}`);
    assert.is((await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]))).type, 'Evidence');
  }
  const good = bed.trust()?.identities[0];
  if (good === undefined) throw new Error('the executor is nobody');
  const answer = await bytesFor(probe.port, '/none', { key: good.key, cert: good.certificate });
  assert.match(answer, /^HTTP\/1.1 404/);
});

test('the key of one node does not speak for another', async () => {
  const [thief, victim] = [await bed.start(3), await bed.start(4)];
  const pulling = bed.pulling([thief.port]);
  assert.is((await bed.pull(targetOf(thief.subject), pulling)).type, 'Evidence');
  const enrolled = await bed.pull(targetOf(victim.subject), pulling);
  assert.is(enrolled.type, 'Untrusted', 'a certificate of another node');
  const fresh = await bed.start(5);
  const impostor = await bed.pull({ ...targetOf(victim.subject) }, bed.pulling([fresh.port]));
  assert.is(impostor.type, 'Untrusted');
  assert.match(JSON.stringify(impostor), /the token is one of pod/);
});

test('a request that names another node is refused though its token is good', async () => {
  const subject = subjectOf(6);
  const probe = await bed.start(6, {
    makeOffer: () => makeOffer({ ...subject, node: 'node-9' }, ['127.0.0.1'], bed.clock.now()),
  });
  const outcome = await bed.pull(targetOf(subject), bed.pulling([probe.port]));
  assert.is(outcome.type, 'Untrusted');
  assert.match(JSON.stringify(outcome), /names that are not those of/);
});

test('the old pod at the port is passed by for the new one at the spare', async () => {
  const [old, young] = [await bed.start(7), await bed.start(8)];
  assert.is((await bed.pull(targetOf(old.subject), bed.pulling([old.port]))).type, 'Evidence');
  const outcome = await bed.pull(targetOf(young.subject), bed.pulling([old.port, young.port]));
  assert.is(outcome.type === 'Evidence' && outcome.evidence.subject.podUID, young.subject.podUID);
});

test('a hung component is named, the rest is told, and it is not asked twice at a time', async () => {
  let calls = 0;
  const back = Promise.withResolvers<void>();
  const probe = await bed.start(9, {
    collectors: {
      ...chassisCollectors,
      vswitchd: {
        limitMs: 100,
        async collect() {
          calls += 1;
          await back.promise;
          return fault('timeout', 'late');
        },
      },
      controller: { limitMs: 1_000, collect: async () => fault('refused', 'no socket; password=hunter2') },
    },
  });
  const ask = () => bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
  const outcome = await ask();
  if (outcome.type !== 'Evidence') throw new Error(JSON.stringify(outcome));
  const { complete, facts, problems } = outcome.evidence;
  assert.is(complete, false);
  assert.equal(Object.keys(facts), ['ovsdb']);
  assert.equal(
    problems.map(({ component, code }) => [component, code]),
    [
      ['controller', 'refused'],
      ['vswitchd', 'timeout'],
    ],
  );
  assert.not.ok(JSON.stringify(problems).includes('hunter2'));
  await ask();
  assert.is(calls, 1);
  back.resolve();
  await ask();
  assert.is(calls, 2);
});

test('nothing is kept from one answer to the next', async () => {
  let n = 0;
  const ovsdb = {
    limitMs: 1_000,
    collect: async (signal: AbortSignal) => {
      n += 1;
      const found = await chassisCollectors.ovsdb.collect(signal);
      return found.type === 'ok' ? { ...found, value: { ...found.value, systemID: `n${n}` } } : found;
    },
  };
  const probe = await bed.start(1, { collectors: { ...chassisCollectors, ovsdb } });
  const ids = [];
  for (let turn = 0; turn < 3; turn += 1) {
    const outcome = await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
    ids.push(outcome.type === 'Evidence' && outcome.evidence.facts.ovsdb?.systemID);
  }
  assert.equal(ids, ['n1', 'n2', 'n3']);
});

test('a component beyond the size of an answer is told of as too large', async () => {
  const version = 'x'.repeat(300_000);
  const huge = { limitMs: 1_000, collect: async () => ({ type: 'ok', value: { connected: true, version } }) as never };
  const probe = await bed.start(2, { collectors: { ...chassisCollectors, controller: huge } });
  const outcome = await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
  assert.equal(
    outcome.type === 'Evidence' && outcome.evidence.problems.map(({ component, code }) => [component, code]),
    [['controller', 'tooLarge']],
  );
});

test('answers are bounded, and so are connections', async () => {
  const back = Promise.withResolvers<void>();
  const began = Promise.withResolvers<void>();
  const slow = {
    limitMs: 10_000,
    collect: async (signal: AbortSignal) => {
      began.resolve();
      await back.promise;
      return chassisCollectors.ovsdb.collect(signal);
    },
  };
  const probe = await bed.start(3, { collectors: { ...chassisCollectors, ovsdb: slow }, limits: { answers: 1 } });
  const ask = () => bed.pull(targetOf(probe.subject), bed.pulling([probe.port]));
  const one = ask();
  await began.promise;
  assert.match(JSON.stringify(await ask()), /status 503/);
  back.resolve();
  assert.is((await one).type, 'Evidence');
});

test('a stranger that says nothing holds a connection only as long as a handshake may take', async () => {
  const probe = await bed.start(5, { limits: { connections: 1, handshakeMs: 200 } });
  const silent = connectPlain({ port: probe.port, host: '127.0.0.1' });
  silent.on('error', () => undefined);
  await once(silent, 'connect');
  const refused = connectPlain({ port: probe.port, host: '127.0.0.1' });
  refused.on('error', () => undefined);
  // One beyond the bound is closed at once, the silent one when its time is over.
  await Promise.all(
    [refused, silent].map((socket) => new Promise((resolve) => socket.resume().once('close', resolve))),
  );
  assert.is((await bed.pull(targetOf(probe.subject), bed.pulling([probe.port]))).type, 'Evidence');
});

test('a port that is taken is waited for', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const said: string[] = [];
  const starting = bed.start(4, {
    ports: [port],
    log(message) {
      said.push(message);
      if (message.startsWith('no port is free')) holder.close();
    },
  });
  assert.is((await starting).port, port);
  assert.match(said.join('\n'), /EADDRINUSE/);
});

test.run();
