import { request } from 'node:http';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { evidenceReport } from '../../executor/page/evidence.ts';
import { type Known, pageModel } from '../../executor/page/page.ts';
import { type PageServer, servePage, tryServePage } from '../../executor/page/server.ts';
import { installationOf, knownOf, networkRelease, networkRound, observedOf, readyCondition } from './page-support.ts';

const well = observedOf({ network: networkRound() });
let known: Known | undefined;
let server: PageServer;
const source = {
  model: () => pageModel({ identity: 'executor-1', namespace: 'keelson-system', planOnly: false, known, tick: 1_000 }),
  evidence: (node: string | undefined) => evidenceReport('executor-1', known, 1_000, node),
};

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const ask = (path: string, { method = 'GET', host }: { method?: string; host?: string } = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { host };
    const sent = request({ host: '127.0.0.1', port: server.port, path, method, headers, agent: false }, (reply) => {
      let body = '';
      reply.setEncoding('utf8').on('data', (chunk) => {
        body += chunk;
      });
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body }));
    });
    sent.once('error', reject);
    sent.end();
  });

/** The next events of a stream, as they come. */
async function* events(signal: AbortSignal): AsyncGenerator<string> {
  const reply = await fetch(`http://127.0.0.1:${server.port}/events`, { signal });
  assert.is(reply.status, 200);
  let rest = '';
  for await (const chunk of reply.body ?? []) {
    rest += Buffer.from(chunk).toString('utf8');
    const parts = rest.split('\n\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}

test.before.each(async () => {
  known = knownOf(installationOf(well, readyCondition), well, [networkRelease()]);
  server = await servePage({ source, clock: systemClock, everyMs: 20, watchers: 2 }, 0);
});
test.after.each(() => server.close());

test('every answer forbids what it does not need, refusals included', async () => {
  for (const path of ['/', '/main', '/page.css', '/page.js', '/icon.svg', '/page.json', '/evidence.json', '/none']) {
    const { status, headers } = await ask(path);
    assert.is(status, path === '/none' ? 404 : 200, path);
    assert.match(
      String(headers['content-security-policy']),
      /^default-src 'none'; script-src 'self'; style-src 'self'/,
    );
    assert.not.match(String(headers['content-security-policy']), 'unsafe');
    assert.is(headers['x-content-type-options'], 'nosniff', path);
    assert.is(headers['cache-control'], 'no-store', path);
  }
});

test('it answers by local names alone, and nothing but questions', async () => {
  for (const host of ['localhost', 'localhost:8080', '127.0.0.1:1', '[::1]:1'])
    assert.is((await ask('/', { host })).status, 200);
  for (const host of ['evil.example', 'localhost.evil.example', 'localhostevil', '10.0.0.1'])
    assert.is((await ask('/', { host })).status, 421, host);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    assert.is((await ask('/', { method })).status, 405);
  const refused = await ask('/', { host: 'evil.example' });
  assert.not.match(refused.body, 'network-main');
});

test('the page as data, and the evidence of one node', async () => {
  const model = JSON.parse((await ask('/page.json')).body);
  assert.equal([model.releases.length, model.installations[0].databases.length], [1, 2]);
  const report = JSON.parse((await ask('/evidence.json?node=n2')).body);
  assert.equal(
    report.installations[0].nodes.map(({ name }: { name: string }) => name),
    ['n2'],
  );
});

test('who watches is told of a change, and of nothing else', async () => {
  const stop = new AbortController();
  const told = events(stop.signal);
  const [first] = [(await told.next()).value];
  assert.match(first, /^event: page\ndata: sha256:/);
  assert.match((await ask('/')).body, /data-digest="sha256:/);
  known = { ...(known as Known), releases: [] };
  const second = (await told.next()).value;
  assert.is.not(second, first);
  known = undefined;
  assert.is.not((await told.next()).value, second);
  stop.abort();
});

test('only so many may watch; a place is free again when one has left', async () => {
  const stops = [new AbortController(), new AbortController()];
  for (const { signal } of stops) await events(signal).next();
  const full = await ask('/events');
  assert.equal([full.status, full.headers['retry-after']], [503, '30']);
  stops[0]?.abort();
  let status = 503;
  const limit = AbortSignal.timeout(5_000);
  while (status === 503) {
    limit.throwIfAborted();
    const reply = await fetch(`http://127.0.0.1:${server.port}/events`, { signal: limit });
    status = reply.status;
    await reply.body?.cancel();
  }
  assert.is(status, 200);
  stops[1]?.abort();
});

test('a question for the head of the events watches nothing', async () => {
  for (let n = 0; n < 20; n++) {
    const { status, headers } = await ask('/events', { method: 'HEAD' });
    assert.equal([status, headers['content-type']], [200, 'text/event-stream'], `question ${n}`);
  }
  const stop = new AbortController();
  assert.match((await events(stop.signal).next()).value, /^event: page/);
  stop.abort();
});

test('a path that is none of a URL is not found, and the page goes on', async () => {
  assert.is((await ask('//')).status, 404);
  assert.is((await ask('/')).status, 200);
});

test('it closes although somebody watches; a taken port is told, and is no failure', async () => {
  const stop = new AbortController();
  await events(stop.signal).next();
  const said: string[] = [];
  const options = { source, clock: systemClock };
  assert.is(await tryServePage(options, server.port, (why) => said.push(why)), undefined);
  assert.match(said.join(), 'EADDRINUSE');
  assert.is(await tryServePage(options, undefined, (why) => said.push(why)), undefined);
  assert.is(said.length, 1);
  await server.close();
  stop.abort();
  server = await servePage(options, 0);
});

test.run();
