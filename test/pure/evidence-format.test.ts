import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { limits } from '../../constructs/api/constants.ts';
import { type EvidenceKind, evidenceComponents, evidenceKinds, parseEvidence } from '../../constructs/api/evidence.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';

const nonce = 'ab'.repeat(16);
const sid = '6ba7b810-9dad-41d1-80b4-00c04fd430c8';
const daemon = { socketInode: '18446744073709551615', startTicks: '123' };

const chassis: JsonObject = {
  ovsdb: {
    systemID: 'n1',
    remote: 'tcp:10.0.0.1:6642',
    encaps: [{ type: 'geneve', ip: '10.0.0.2' }],
    matchNorthdVersion: false,
    daemon,
  },
  controller: { connected: true, daemon },
  vswitchd: { bridge: { name: 'br-int', inVswitchd: true, datapath: 'netdev' }, daemon },
};

const database: JsonObject = {
  name: 'OVN_Northbound',
  model: 'clustered',
  connected: true,
  leading: true,
  index: '9007199254740993',
  cid: sid,
  sid,
  status: 'member',
  role: 'leader',
  term: '2',
  leader: 'self',
  log: { first: '2', last: '9', committed: '9', applied: '9', unapplied: '0', uncommitted: '0' },
  members: [{ sid, address: 'tcp:10.0.0.1:6643', self: true, phase: 'stable' }],
  connections: [{ direction: 'out', sid: '0000', up: false }],
  storage: 'ok',
  freeBytes: '1024',
  daemon,
};

const central: JsonObject = {
  nb: database,
  sb: { ...database, name: 'OVN_Southbound' },
  northd: { state: 'active', nb: true, sb: true, daemon },
  progress: { nbCfg: '3', sbCfg: '3', hvCfg: '2' },
};

const answer = (over: JsonObject = {}): JsonObject => ({
  schema: 'keelson.dev/evidence/v1',
  kind: 'chassis',
  nonce,
  observation: { startedAt: '2026-01-31T12:00:00Z', endedAt: '2026-01-31T12:00:01Z', elapsedMs: 1000 },
  subject: {
    namespace: 'kube-system',
    pod: 'ovs-ovn-x',
    podUID: sid,
    container: 'keelson-probe',
    node: 'n1',
    nodeBootID: sid,
  },
  probe: { version: '0.1.0' },
  complete: true,
  facts: chassis,
  problems: [],
  ...over,
});

const read = (value: unknown, kind: EvidenceKind = 'chassis') =>
  parseEvidence(new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)), { kind, nonce });

const problem = { component: 'controller', code: 'timeout', message: 'no answer', elapsedMs: 2000, limitMs: 2000 };

test('an answer is read; what a newer probe adds is left out', () => {
  const found = read(answer({ colour: 'red', facts: { ...chassis, extra: 1 } }));
  assert.is(found.outcome, 'evidence');
  assert.not.ok(JSON.stringify(found).includes('red'));
  assert.is(read(answer({ kind: 'central', facts: central }), 'central').outcome, 'evidence');
});

test('integers of 64 bits come through whole, and nothing larger or otherwise written does', () => {
  const found = read(answer({ kind: 'central', facts: central }), 'central');
  assert.is(
    found.outcome === 'evidence' && found.evidence.kind === 'central' && found.evidence.facts.nb?.index,
    '9007199254740993',
  );
  for (const index of [5, '-1', '01', '1e3', '1'.repeat(21), '18446744073709551616', 'NaN']) {
    const broken = { ...central, nb: { ...database, index } };
    assert.is(read(answer({ kind: 'central', facts: broken }), 'central').outcome, 'invalid', String(index));
  }
});

test('whatever else a probe sends is no evidence: deep, long, of other types, not in UTF-8', () => {
  const bytes = new TextEncoder().encode(JSON.stringify(answer()));
  bytes[bytes.indexOf(0x6e)] = 0xff;
  const asked = { kind: 'chassis', nonce } as const;
  assert.is(parseEvidence(bytes, asked).outcome, 'invalid');
  const values = [null, 0, [], '', '['.repeat(200_000), '{"a":'.repeat(50_000), 'NaN', '{"schema":1e999}'];
  for (const value of values) assert.is(read(value).outcome, 'invalid', JSON.stringify(value)?.slice(0, 20));
  const facts = (over: JsonObject) => answer({ facts: { ...chassis, ...over } });
  for (const wrong of [
    answer({ observation: { startedAt: 'now', endedAt: '', elapsedMs: -1 } }),
    answer({ complete: 'true' }),
    answer({ problems: Array.from({ length: 17 }, () => problem) }),
    answer({ facts: [] }),
    facts({ controller: { connected: 'true', daemon } }),
    facts({ controller: { connected: true, daemon: { ...daemon, startTicks: 1e300 } } }),
    facts({ vswitchd: { bridge: { name: 'b'.repeat(65), inVswitchd: true }, daemon } }),
    answer({ complete: false, facts: {}, problems: [{ ...problem, limitMs: 1e308 }] }),
  ])
    assert.is(read(wrong).outcome, 'invalid', JSON.stringify(wrong).slice(0, 300));
});

test('what is left of a character that somebody cut is read as the sign for that', () => {
  for (const half of ['\\ud83d', '\\uDC00', '\\ude00\\ud83d']) {
    const told = { ...problem, message: 'cut@' };
    const { vswitchd: _gone, ...facts } = chassis;
    const text = JSON.stringify(answer({ complete: false, problems: [{ ...told, component: 'vswitchd' }], facts }));
    const found = read(text.replace('cut@', `cut${half}`));
    assert.is(found.outcome, 'evidence', half);
    assert.match(found.outcome === 'evidence' ? (found.evidence.problems[0]?.message ?? '') : '', /^cut\ufffd+$/);
  }
  // A whole one stays, however it is written.
  const whole = JSON.stringify(answer({ probe: { version: '1@' } })).replace('1@', '1\\ud83d\\ude00');
  const found = read(whole);
  assert.is(found.outcome === 'evidence' && found.evidence.probe.version, '1\u{1f600}');
});

test('a component is a fact or a problem, never both and never neither', () => {
  const { controller: _, ...without } = chassis;
  const told = answer({ facts: without, complete: false, problems: [problem] });
  assert.is(read(told).outcome, 'evidence');
  assert.is(read({ ...told, problems: [] }).outcome, 'invalid');
  assert.is(read({ ...told, complete: true }).outcome, 'invalid');
  assert.is(read(answer({ complete: false, problems: [problem] })).outcome, 'invalid');
  assert.is(read(answer({ complete: false })).outcome, 'invalid');
});

test('every kind has components, and an empty answer of any kind is not evidence', () => {
  for (const kind of evidenceKinds) {
    assert.ok(evidenceComponents[kind].length > 0, kind);
    assert.is(read(answer({ kind, facts: {} }), kind).outcome, 'invalid', kind);
    const problems = evidenceComponents[kind].map((component) => ({ ...problem, component }));
    assert.is(read(answer({ kind, facts: {}, complete: false, problems }), kind).outcome, 'evidence', kind);
  }
});

test('another nonce and another kind answer another question', () => {
  assert.is(read(answer({ nonce: 'cd'.repeat(16) })).outcome, 'otherAnswer');
  assert.is(read(answer(), 'central').outcome, 'otherAnswer');
});

test('a format of another major version is told apart from rubbish', () => {
  assert.equal(read(answer({ schema: 'keelson.dev/evidence/v2' })), {
    outcome: 'unsupported',
    schema: 'keelson.dev/evidence/v2',
  });
  assert.is(read(answer({ schema: 'evidence' })).outcome, 'invalid');
  for (const rubbish of ['', 'null', '[]', '{', '"x"']) assert.is(read(rubbish).outcome, 'invalid', rubbish);
  assert.is(parseEvidence(Uint8Array.of(0x22, 0xff, 0x22), { kind: 'chassis', nonce }).outcome, 'invalid');
});

test('every list and string has an end', () => {
  const many = Array.from({ length: 17 }, () => problem);
  assert.is(read(answer({ complete: false, problems: many })).outcome, 'invalid');
  assert.is(read(answer({ problems: [{ ...problem, message: 'x'.repeat(513) }], complete: false })).outcome, 'invalid');
  assert.is(read(answer({ problems: [{ ...problem, code: 'bored' }], complete: false })).outcome, 'invalid');
  assert.is(read(' '.repeat(limits.evidenceBytes + 1)).outcome, 'tooLarge');
});

test('a message about a broken answer names the place and repeats nothing of it', () => {
  const secret = 'canary-7f3a';
  const found = read(answer({ probe: { version: `${secret}${'x'.repeat(100)}` } }));
  assert.is(found.outcome, 'invalid');
  assert.match(JSON.stringify(found), /probe\.version/);
  assert.not.ok(JSON.stringify(found).includes(secret));
});

test.run();
