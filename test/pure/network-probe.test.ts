import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import {
  networkQuestionText,
  parseNetworkQuestion,
  questionLimits,
  type ServerIdentity,
  type WantedCheck,
} from '../../constructs/api/evidence/question.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { judgeEcho, judgeName } from '../../probes/network/check.ts';
import { networkCollectors } from '../../probes/network/collect.ts';
import { echoPath, echoText, readEcho } from '../../probes/network/echo.ts';
import { plainAddress, type Resolved, resolverOf, serviceName } from '../../probes/network/names.ts';
import { runEchoServer } from '../../probes/network/serve.ts';
import { type SourcePorts, sourcePorts } from '../../probes/network/source-ports.ts';
import { startNameServer } from '../standins/dns.ts';

const test = suite('network probe');
const over = new AbortController();
const running: Promise<void>[] = [];
const closing: (() => Promise<unknown>)[] = [];
test.after(async () => {
  over.abort();
  await Promise.all(running);
  await Promise.all(closing.map((close) => close()));
});

const identity = (n: number): ServerIdentity => ({
  namespace: 'kube-system',
  podUID: `00000000-0000-4000-8000-00000000000${n}`,
  node: `node-${n}`,
});
const service = { namespace: 'kube-system', name: 'keelson-network-probe' };
const resolvConf = 'nameserver 10.96.0.10\nsearch kube-system.svc.example.org svc.example.org example.org\n';
const fullName = 'keelson-network-probe.kube-system.svc.example.org';

/** A server of the probe on loopback. */
async function serving(who: ServerIdentity, addresses = ['127.0.0.1']): Promise<number> {
  const listening = Promise.withResolvers<number>();
  running.push(
    runEchoServer(
      {
        identity: who,
        addresses,
        port: 0,
        clock: systemClock,
        random: Math.random,
        log: () => undefined,
        onListening: (_address, port) => listening.resolve(port),
      },
      over.signal,
    ),
  );
  return listening.promise;
}

async function at(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const check = (more: Partial<WantedCheck> = {}): WantedCheck => ({
  target: 'sameNode',
  family: 'IPv4',
  address: '127.0.0.1',
  port: 1,
  server: identity(1),
  ...more,
});

const client = (
  resolve: (name: string) => Resolved | Promise<Resolved>,
  limitMs = 1_000,
  from = sourcePorts(Math.random),
) => {
  let n = 0;
  return networkCollectors({
    clock: systemClock,
    limitMs,
    resolve: async (name) => resolve(name),
    resolvConf: async () => resolvConf,
    nonce: () => String(++n).padStart(48, '0'),
    from,
  });
};
const nobody = (): Resolved => ({ type: 'resolved', addresses: [] });

async function ask(checks: readonly WantedCheck[], by = client(nobody)): Promise<NetworkCheck[]> {
  const result = await by.checks.collect(new AbortController().signal, networkQuestionText({ service, checks }));
  if (result.type !== 'ok') throw new Error(result.message);
  return result.value;
}

test('P4: the server echoes the nonce with its pod and its node; anything else is no answer', async () => {
  const port = await serving(identity(1));
  const nonce = 'ab'.repeat(24);
  const get = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });
  const good = await get(`${echoPath}?nonce=${nonce}`);
  assert.equal(await good.json(), { nonce, ...identity(1) });
  assert.is(good.headers.get('cache-control'), 'no-store');
  for (const path of [echoPath, `${echoPath}?nonce=zz`, `${echoPath}?nonce=${'a'.repeat(65)}`])
    assert.is((await get(path)).status, 400, path);
  assert.is((await get('/')).status, 404);
  assert.is((await get(`${echoPath}?nonce=${nonce}`, 'POST')).status, 405);
  assert.is((await get('/v1/ready')).status, 200);
});

test('P4: what is no path of a URL is answered as unknown, and the server goes on', async () => {
  const port = await serving(identity(1));
  for (const target of ['//', '//?nonce=a', 'http://[/']) {
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET ${target} HTTP/1.1\r\nhost: probe\r\n\r\n`);
    assert.match(await text(socket), /^HTTP\/1\.1 404 /, target);
  }
  const nonce = 'cd'.repeat(24);
  const good = await fetch(`http://127.0.0.1:${port}${echoPath}?nonce=${nonce}`);
  assert.equal(await good.json(), { nonce, ...identity(1) });
});

test('P4: an answer counts for its own nonce only, and names only what evidence may repeat', () => {
  const text = echoText(identity(1), 'n1');
  assert.equal(readEcho(text, 'n1'), identity(1));
  assert.is(readEcho(text, 'n2'), undefined);
  for (const other of [{ podUID: 'x'.repeat(65) }, { node: 'a b' }, { namespace: '<b>' }, { podUID: 7 }])
    assert.is(readEcho(JSON.stringify({ nonce: 'n1', ...identity(1), ...other }), 'n1'), undefined);
  for (const no of ['', '[]', 'null', '"x"', '{']) assert.is(readEcho(no, 'n1'), undefined, no);
});

test('P2 P4: the very pod that was meant answers; a healthy server that is another pod is rejected (X21)', async () => {
  const port = await serving(identity(1));
  const [right, wrong, node] = await ask([
    check({ port }),
    check({ port, server: identity(2) }),
    check({ port, server: { ...identity(1), node: 'node-9' } }),
  ]);
  assert.is(right?.outcome, 'ok');
  assert.equal(right?.answered, identity(1));
  assert.is(wrong?.outcome, 'wrongPeer');
  assert.equal(wrong?.answered, identity(1), 'who it was instead is told');
  assert.is(node?.outcome, 'wrongPeer');
});

test('P2: a Service may be answered by any of its servers, which the executor then judges', async () => {
  const port = await serving(identity(3));
  const { server: _any, ...open } = check({ target: 'service', port });
  const [one] = await ask([open]);
  assert.equal([one?.outcome, one?.answered], ['ok', identity(3)]);
});

test('P4: every question has a nonce of its own, and one that was heard before is no answer', async () => {
  const heard: string[] = [];
  let replay = '';
  const server = createHttpServer((request, response) => {
    const nonce = new URL(request.url ?? '', 'http://x').searchParams.get('nonce') ?? '';
    heard.push(nonce);
    replay ||= echoText(identity(1), nonce);
    response.end(replay);
  });
  const port = await at(server);
  const by = client(nobody);
  assert.is((await ask([check({ port })], by))[0]?.outcome, 'ok');
  const [again] = await ask([check({ port })], by);
  assert.equal([again?.outcome, again?.answered], ['wrongPeer', undefined]);
  assert.is(new Set(heard).size, 2);
});

test('no two questions come from one port, whomever they ask, until all ports had their turn', async () => {
  const heard: number[] = [];
  const answer = (): Server =>
    createHttpServer((request, response) => {
      heard.push(request.socket.remotePort ?? 0);
      response.end();
    });
  const [one, two] = [await at(answer()), await at(answer())];
  const by = client(
    nobody,
    1_000,
    sourcePorts(() => 0.5),
  );
  const checks = [one, two, one, two].map((port) => check({ port }));
  for (let n = 0; n < 25; n += 1) await ask(checks, by);
  assert.is(new Set(heard).size, 100, 'each has its own');
  const from = sourcePorts(() => 0.999_999);
  const all = Array.from({ length: 28_232 }, from);
  assert.is(new Set(all).size, all.length);
  assert.equal([Math.min(...all), Math.max(...all)], [32_768, 60_999]);
  assert.is(from(), all[0]);
});

test("a port that is somebody else's is passed over; where all are, the kernel chooses", async () => {
  const port = await serving(identity(1));
  const taken = await at(createServer());
  const free = sourcePorts(Math.random);
  for (const others of [1, Number.POSITIVE_INFINITY]) {
    let asked = 0;
    const from: SourcePorts = () => (asked++ < others ? taken : free());
    const [found] = await ask([check({ port })], client(nobody, 1_000, from));
    assert.is(found?.outcome, 'ok', `${others} taken`);
    assert.ok(asked > 1, 'it was met');
  }
});

test('what answers otherwise is told apart: refused, another status, no HTTP, too much', async () => {
  const status = await at(createHttpServer((_request, response) => response.writeHead(503).end()));
  const noise = await at(createServer((socket) => socket.on('error', () => undefined).end('220 mail\r\n\r\n')));
  const large = await at(createHttpServer((_request, response) => response.end('x'.repeat(8_192))));
  const gone = createServer();
  const closed = await at(gone);
  gone.close();
  await once(gone, 'close');
  const found = await ask([status, noise, large, closed].map((port) => check({ port })));
  assert.equal(
    found.map(({ outcome }) => outcome),
    ['wrongPeer', 'wrongPeer', 'wrongPeer', 'refused'],
  );
  assert.match(found[0]?.message ?? '', 'status 503');
  assert.match(found[3]?.message ?? '', 'ECONNREFUSED');
});

test('each check has its own limit: what hangs is named, and the others are answered', async () => {
  const port = await serving(identity(1));
  const silent = await at(createServer((socket) => void socket.on('error', () => undefined)));
  const from = performance.now();
  const results = ask([check({ port }), check({ port: silent, target: 'nextNode' })], client(nobody, 400));
  const [good, hung] = await results;
  assert.ok(performance.now() - from < 400, 'within the limit of the whole');
  assert.is(good?.outcome, 'ok');
  assert.equal(
    [hung?.target, hung?.outcome, hung?.message],
    ['nextNode', 'timeout', 'connected, but no answer in time'],
  );
});

test('P3: a name has to lead to the observed address, and to no other', () => {
  const wanted = check({ target: 'name', address: '10.96.0.9' });
  const resolved = (...addresses: string[]): Resolved => ({ type: 'resolved', addresses });
  assert.is(judgeName(wanted, fullName, resolved('10.96.0.9')), undefined);
  for (const addresses of [['10.96.0.7'], ['10.96.0.9', '10.96.0.7']])
    assert.is(judgeName(wanted, fullName, resolved(...addresses))?.outcome, 'wrongAddress', addresses.join());
  const none = judgeName(wanted, fullName, resolved());
  assert.is(none?.outcome, 'failed');
  assert.match(none?.message ?? '', `${fullName} has no IPv4 address`);
  const late = judgeName(wanted, fullName, { type: 'timeout', message: 'no answer to x in time' });
  assert.equal([late?.outcome, late?.message], ['timeout', 'DNS: no answer to x in time']);
  assert.is(judgeEcho(wanted, { type: 'failed', message: 'x'.repeat(999) }).message?.length, 256);
});

test('P3: the name is resolved anew and asked at what it leads to; a wrong one is not asked at all', async () => {
  const port = await serving(identity(1));
  const asked: string[] = [];
  const to = (...addresses: string[]) =>
    client((name) => {
      asked.push(name);
      return { type: 'resolved', addresses };
    });
  const { server: _any, ...named } = check({ target: 'name', port });
  const [right] = await ask([named], to('127.0.0.1'));
  assert.equal([right?.outcome, right?.resolved, right?.answered], ['ok', ['127.0.0.1'], identity(1)]);
  const [wrong] = await ask([named], to('127.0.0.2'));
  assert.equal([wrong?.outcome, wrong?.resolved, wrong?.answered], ['wrongAddress', ['127.0.0.2'], undefined]);
  assert.equal(asked, [fullName, fullName]);
});

test('the domain of the cluster is taken from the search list of the pod', () => {
  assert.is(serviceName(service, resolvConf), fullName);
  assert.is(serviceName(service, 'search a.svc.x.y. svc.x.y.\n'), 'keelson-network-probe.kube-system.svc.x.y');
  assert.is(
    serviceName(service, 'search one.svc.a svc.a\nsearch two.svc.b svc.b\n').endsWith('.svc.b'),
    true,
    'the last',
  );
  assert.is(serviceName(service, 'nameserver 10.0.0.1\n'), 'keelson-network-probe.kube-system.svc');
});

test('P3: names are asked of the resolver, by family, within a limit', async () => {
  const dns = await startNameServer();
  closing.push(() => dns.close());
  dns.names.set(fullName, ['10.96.0.9', 'fd01:0:0::9']);
  const resolve = resolverOf([dns.address], 200);
  const signal = new AbortController().signal;
  assert.equal(await resolve(fullName, 'IPv4', signal), { type: 'resolved', addresses: ['10.96.0.9'] });
  assert.equal(await resolve(fullName, 'IPv6', signal), { type: 'resolved', addresses: ['fd01::9'] });
  dns.names.set(fullName, ['10.96.0.9']);
  assert.equal(await resolve(fullName, 'IPv6', signal), { type: 'resolved', addresses: [] });
  assert.equal(await resolve('absent.example.org', 'IPv4', signal), { type: 'resolved', addresses: [] });
  dns.silent = true;
  const stop = new AbortController();
  const waiting = resolverOf([dns.address], 60_000)(fullName, 'IPv4', stop.signal);
  stop.abort();
  assert.is((await waiting).type, 'timeout');
  assert.is((await resolve(fullName, 'IPv4', signal)).type, 'timeout');
  assert.is(plainAddress('FD01:0::0009'), 'fd01::9');
});

test('a question is read whole, or not at all', async () => {
  const question = { service, checks: [check(), check({ family: 'IPv6', address: 'fd00::1' })] };
  assert.equal(parseNetworkQuestion(networkQuestionText(question)), question);
  const { server: _any, ...open } = check();
  assert.equal(parseNetworkQuestion(networkQuestionText({ checks: [open] })), { checks: [open] });
  const spoilt: object[] = [
    { address: '10.0.0' },
    { address: 'fd00::1' },
    { port: 0 },
    { port: 1.5 },
    { target: 'other' },
    { family: 'IPv5' },
    { server: { ...identity(1), node: '../x' } },
    { server: 'n1' },
  ];
  for (const one of spoilt) {
    const text = JSON.stringify({ ...JSON.parse(networkQuestionText(question)), checks: [{ ...check(), ...one }] });
    assert.is(parseNetworkQuestion(text), undefined, JSON.stringify(one));
  }
  const many = Array.from({ length: questionLimits.checks + 1 }, () => check());
  assert.is(parseNetworkQuestion(networkQuestionText({ checks: many })), undefined);
  for (const text of ['', '{}', '{"schema":"keelson.dev/network-question/v2","checks":[]}'])
    assert.is(parseNetworkQuestion(text), undefined);
  const unasked = await client(nobody).checks.collect(new AbortController().signal);
  assert.equal([unasked.type, unasked.type === 'fault' && unasked.code], ['fault', 'protocol']);
});

test.run();
