/** The client against a real ovsdb-server: over a socket, TCP and TLS, its errors, its monitors, its echoes. */
import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { parseAddress } from '../../probes/jsonrpc/address.ts';
import { JsonRpcConnection, type Outcome } from '../../probes/jsonrpc/connection.ts';
import { dial, type TlsIdentity } from '../../probes/jsonrpc/dial.ts';
import type { Json } from '../../probes/jsonrpc/json.ts';
import { applyUpdates, noRows, type Rows, type UpdateForm } from '../../probes/ovsdb/cache.ts';
import { databaseError } from '../../probes/ovsdb/errors.ts';
import { echo, getSchema, getServerId, listDatabases, select, transact } from '../../probes/ovsdb/methods.ts';
import { readNotification } from '../../probes/ovsdb/monitor.ts';
import { narrow, type Tables } from '../../probes/ovsdb/schema.ts';
import { ControlSocket } from '../../probes/unixctl/control.ts';
import { canonicalChanges, canonicalRows, changesOf, rowModel, type ServerRows } from '../pure/ovsdb-model.ts';
import { demoColumns, demoSchema } from '../pure/ovsdb-schema.ts';
import { eventually, OvnBed, pidOf } from './bed.ts';
import { certificates } from './certificates.ts';

interface Context {
  bed: OvnBed;
  at: (name: string) => string;
  /** `tcp:` and `ssl:` addresses. */
  tcp: string;
  ssl: string;
  identity: TlsIdentity;
}

const limits = { maxBytes: 1_000_000, maxDepth: 32, maxTokenBytes: 500_000, maxPending: 8, maxOutgoing: 500_000 };
const limit = { limitMs: 3000 };

interface Use {
  readonly tls?: TlsIdentity;
  readonly onNotification?: (method: string, params: readonly Json[]) => void;
}

async function open(address: string, { tls, onNotification }: Use = {}): Promise<JsonRpcConnection> {
  const parsed = parseAddress(address);
  assert.ok(parsed, address);
  const dialled = await dial(parsed, { clock: systemClock, limitMs: 3000, ...(tls === undefined ? {} : { tls }) });
  if (dialled.type !== 'ok') throw new Error(`${dialled.code} ${dialled.message}`);
  return new JsonRpcConnection(dialled.value, {
    peer: 'ovsdb-server',
    clock: systemClock,
    limits,
    ...(onNotification === undefined ? {} : { onNotification }),
  });
}

/** How an attempt to talk over TLS ends: by the dial, or, where the server refuses, by the first call. */
async function tlsOutcome(address: string, tls: TlsIdentity | undefined): Promise<string> {
  const parsed = parseAddress(address);
  assert.ok(parsed);
  const dialled = await dial(parsed, { clock: systemClock, limitMs: 3000, ...(tls === undefined ? {} : { tls }) });
  if (dialled.type !== 'ok') return dialled.code;
  const rpc = new JsonRpcConnection(dialled.value, { peer: 'ovsdb-server', clock: systemClock, limits });
  const names = await listDatabases(rpc, limit);
  rpc.close();
  return names.type === 'fault' ? names.code : names.type;
}

const identityOf = async (dir: string, authority = dir): Promise<TlsIdentity> => {
  const [ca, cert, key] = await Promise.all(
    [join(authority, 'cacert'), join(dir, 'cert'), join(dir, 'key')].map((file) => readFile(file, 'utf8')),
  );
  return { ca: ca ?? '', cert: cert ?? '', key: key ?? '' };
};

const value = <T>(outcome: Outcome<T>): T => {
  if (outcome.type !== 'ok') throw new Error(JSON.stringify(outcome));
  return outcome.value;
};

const test = suite<Context>('server');

test.before(async (context) => {
  const bed = await OvnBed.start();
  const at = (name: string): string => join(bed.dir, name);
  await certificates(at('tls'));
  await writeFile(at('demo.ovsschema'), JSON.stringify(demoSchema));
  const env = bed.dirs('server');
  for (const [file, schema] of [
    ['demo.db', at('demo.ovsschema')],
    ['nb.db', '/usr/share/ovn/ovn-nb.ovsschema'],
  ] as const) {
    const made = await bed.command(['ovsdb-tool', 'create', at(file), schema], env);
    assert.ok(made.ok, made.out);
  }
  const tls = [`--private-key=${at('tls/key')}`, `--certificate=${at('tls/cert')}`, `--ca-cert=${at('tls/cacert')}`];
  const remotes = [
    `punix:${at('db.sock')}`,
    'ptcp:0:127.0.0.1',
    'pssl:0:127.0.0.3',
    'db:OVN_Northbound,NB_Global,connections',
  ];
  const files = [
    `--log-file=${at('log')}`,
    `--unixctl=${at('ctl')}`,
    `--pidfile=${at('pid')}`,
    ...remotes.map((remote) => `--remote=${remote}`),
  ];
  const argv = ['ovsdb-server', '-vconsole:off', '-vfile:info', ...tls, ...files, at('demo.db'), at('nb.db')];
  // Outside, where the test's own connections reach it.
  bed.daemon(argv, env, 'outside');
  Object.assign(context, {
    bed,
    at,
    tcp: `tcp:[127.0.0.1]:${await listening(at('log'), '127.0.0.1')}`,
    ssl: `ssl:127.0.0.3:${await listening(at('log'), '127.0.0.3')}`,
    identity: await identityOf(at('tls')),
  });
});
test.after(async ({ bed }) => bed.close());

/** The port on an address that was left to the kernel, as the server's log tells it. */
const listening = (log: string, host: string): Promise<number> =>
  eventually(`a port on ${host}`, async (saw) => {
    const text = await readFile(log, 'utf8').catch(() => '');
    saw(text);
    const port = new RegExp(`0:${host.replaceAll('.', '\\.')}: listening on port ([0-9]+)`).exec(text)?.[1];
    return port === undefined ? undefined : Number(port);
  });

test('over a socket, TCP and TLS the same server answers the same', async ({ at, tcp, ssl, identity }) => {
  const ids: string[] = [];
  for (const [address, tls] of [[`unix:${at('db.sock')}`], [tcp], [ssl, identity]] as [string, TlsIdentity?][]) {
    const rpc = await open(address, tls === undefined ? {} : { tls });
    assert.equal([...value(await listDatabases(rpc, limit))].sort(), ['Demo', 'OVN_Northbound', '_Server'], address);
    const schema = value(await getSchema(rpc, 'Demo', limit));
    assert.equal([schema.name, schema.version, [...schema.tables.keys()]], ['Demo', '1.2.3', ['T']]);
    assert.equal(value(await echo(rpc, ['é€😀', 9223372036854775807n, ['}']], limit)), [
      'é€😀',
      9223372036854775807n,
      ['}'],
    ]);
    ids.push(value(await getServerId(rpc, limit)));
    rpc.close();
  }
  assert.is(new Set(ids).size, 1);
});

test('TLS: only with a certificate of the authority, only to a server of it, and pinned only to that one', async (context) => {
  const { at, ssl, tcp, identity } = context;
  await certificates(at('other'));
  const other = await identityOf(at('other'));
  assert.is(await tlsOutcome(ssl, identity), 'ok');
  assert.is(await tlsOutcome(ssl, { ...other, ca: identity.ca }), 'denied', 'a foreign certificate is refused');
  assert.is(await tlsOutcome(ssl, { ...identity, ca: other.ca }), 'denied', 'a foreign server is not trusted');
  assert.is(await tlsOutcome(ssl, undefined), 'denied');
  assert.is(await tlsOutcome(ssl, { ...identity, key: other.key }), 'denied', 'a key of another certificate');
  assert.is(await tlsOutcome(ssl, { ...identity, pin: '00'.repeat(32) }), 'denied');
  const pin = new X509Certificate(identity.cert).fingerprint256;
  assert.is(await tlsOutcome(ssl, { ...identity, pin }), 'ok');
  assert.is(await tlsOutcome(ssl.replace('ssl:', 'tcp:'), undefined), 'closed', 'plain text to a TLS port');
  assert.is(await tlsOutcome(tcp.replace('tcp:', 'ssl:'), identity), 'closed', 'TLS to a port of plain text');
});

test('nobody there, a directory, a path that may not be', async ({ at }) => {
  const codes: string[] = [];
  for (const path of [at('absent.sock'), at('demo.db')]) {
    const dialled = await dial({ type: 'unix', path }, { clock: systemClock, limitMs: 1000 });
    codes.push(dialled.type === 'fault' ? dialled.code : 'ok');
  }
  assert.equal(codes, ['refused', 'refused']);
});

test('errors are values, by kind', async ({ at }) => {
  const rpc = await open(`unix:${at('db.sock')}`);
  const kind = <T>(outcome: Outcome<T>): string =>
    outcome.type === 'error' ? databaseError(outcome.error).kind : outcome.type;
  assert.is(kind(await rpc.call('no_such_method', [], limit)), 'unknownMethod');
  assert.is(kind(await getSchema(rpc, 'Nowhere', limit)), 'unknownDatabase');
  const insert = { op: 'insert', table: 'T', row: { count: -1 } };
  const failed = value(await transact(rpc, 'Demo', [insert, { op: 'comment', comment: 'not reached' }], limit));
  assert.equal(
    failed.operations.map((one) => (one.type === 'failed' ? one.error.kind : one.type)),
    ['constraintViolation', 'skipped'],
  );
  const waiting = {
    op: 'wait',
    table: 'T',
    where: [],
    columns: ['name'],
    until: '==',
    rows: [{ name: 'x' }],
    timeout: 0,
  };
  const timedOut = value(await transact(rpc, 'Demo', [waiting], limit));
  assert.is(timedOut.operations[0]?.type === 'failed' && timedOut.operations[0].error.kind, 'timedOut');
  const owner = value(await transact(rpc, 'Demo', [{ op: 'assert', lock: 'mine' }], limit));
  assert.is(owner.operations[0]?.type === 'failed' && owner.operations[0].error.kind, 'notOwner');
  assert.is(kind(await select(rpc, 'Demo', [{ table: 'Absent', columns: ['a'] }], limit)), 'unknown');
  rpc.close();
});

test('64-bit integers come back as they went, and a select never writes', async ({ at }) => {
  const rpc = await open(`unix:${at('db.sock')}`);
  const large = 9223372036854775807n;
  value(await transact(rpc, 'Demo', [{ op: 'insert', table: 'T', row: { name: 'large', count: large } }], limit));
  const rows = value(
    await select(rpc, 'Demo', [{ table: 'T', columns: ['count'], where: [['count', '==', large]] }], limit),
  );
  assert.equal(rows, [[{ count: large }]]);
  value(await transact(rpc, 'Demo', [{ op: 'delete', table: 'T', where: [] }], limit));
  rpc.close();
});

/** Brings the table to a state by one transaction, rows with the ids of the state. */
function operations(before: ServerRows, after: ServerRows): { readonly [name: string]: Json }[] {
  const where = (id: string): Json => [['_uuid', '==', ['uuid', id]]];
  const gone = [...before.keys()]
    .filter((id) => !after.has(id))
    .map((id) => ({ op: 'delete', table: 'T', where: where(id) }));
  const rows = [...after].map(([id, row]) => {
    const columns = Object.fromEntries(row);
    return before.has(id)
      ? { op: 'update', table: 'T', where: where(id), row: columns }
      : { op: 'insert', table: 'T', uuid: id, row: columns };
  });
  return [...gone, ...rows];
}

const rowIds = ['a', 'b', 'c'].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`);
const states = fc.array(
  fc
    .dictionary(fc.constantFrom(...rowIds), rowModel, { maxKeys: 3 })
    .map((rows): ServerRows => new Map(Object.entries(rows))),
  { minLength: 3, maxLength: 5 },
);

test('three ways to follow: the rows are those of the server, and it tells what the model tells', async ({ at }) => {
  const writer = await open(`unix:${at('db.sock')}`);
  const schema = value(await getSchema(writer, 'Demo', limit));
  const narrowed = narrow(schema, { T: demoColumns });
  assert.ok(narrowed.type === 'ok');
  const tables: Tables = narrowed.value;
  const followers: [string, UpdateForm, Json[]][] = [
    ['monitor', 'update', []],
    ['monitor_cond', 'update2', []],
    ['monitor_cond_since', 'update2', ['00000000-0000-0000-0000-000000000000']],
  ];
  const views: { readonly form: UpdateForm; readonly told: Json[]; rows: Rows }[] = [];
  const connections: JsonRpcConnection[] = [];
  for (const [method, form, more] of followers) {
    const view = { form, told: [] as Json[], rows: noRows };
    views.push(view);
    const rpc = await open(`unix:${at('db.sock')}`, {
      onNotification: (name, params) => {
        const told = readNotification('m', name, params);
        if (told?.type === 'updates') view.told.push(told.updates);
      },
    });
    connections.push(rpc);
    const first = value(await rpc.call(method, ['Demo', 'm', { T: [{ columns: demoColumns }] }, ...more], limit));
    const initial = method === 'monitor_cond_since' ? (first as readonly Json[])[2] : first;
    assert.is(applyUpdates(noRows, form, initial, tables).type, 'ok');
  }
  let before: ServerRows = new Map();
  for (const state of fc.sample(states, { numRuns: 12, seed: 5 }).flat()) {
    const result = value(await transact(writer, 'Demo', operations(before, state), limit));
    assert.ok(
      result.operations.every(({ type }) => type === 'done'),
      JSON.stringify(result, (_, v) => String(v)),
    );
    // An answer to each follower comes after the updates of what was committed before.
    for (const [index, rpc] of connections.entries()) {
      value(await echo(rpc, [], limit));
      const view = views[index];
      assert.ok(view);
      const expected = changesOf(view.form, before, state);
      const told = view.told.splice(0);
      assert.equal(
        canonicalChanges(told),
        canonicalChanges(Object.keys(expected).length === 0 ? [] : [{ T: expected }]),
      );
      for (const updates of told) {
        const applied = applyUpdates(view.rows, view.form, updates, tables);
        assert.ok(applied.type === 'ok', JSON.stringify(applied));
        view.rows = applied.rows;
      }
      assert.equal(canonicalRows(view.rows.get('T') ?? new Map()), canonicalRows(state));
    }
    before = state;
  }
  for (const rpc of [...connections, writer]) rpc.close();
});

test('the server asks whether the client is there, and keeps one that answers', async ({ at }) => {
  const rpc = await open(`unix:${at('db.sock')}`);
  // Another address: a second listener of the same name would take the place of the first.
  const host = '127.0.0.2';
  const listener = { target: `ptcp:0:${host}`, inactivity_probe: 1000 };
  value(
    await transact(
      rpc,
      'OVN_Northbound',
      [
        { op: 'insert', table: 'Connection', 'uuid-name': 'c', row: listener },
        { op: 'insert', table: 'NB_Global', row: { connections: ['named-uuid', 'c'] } },
      ],
      limit,
    ),
  );
  const port = await listening(at('log'), host);
  const [answering, silent] = await Promise.all([
    open(`tcp:${host}:${port}`),
    dial({ type: 'tcp', host, port }, { clock: systemClock, limitMs: 1000 }),
  ]);
  assert.ok(silent.type === 'ok');
  silent.value.resume();
  await new Promise((resolve) => silent.value.once('close', resolve));
  assert.is((await listDatabases(answering, limit)).type, 'ok');
  answering.close();
  rpc.close();
});

test('a server that hangs: calls end at their limit, and the silence is noticed', async ({ bed, tcp, at }) => {
  const parsed = parseAddress(tcp);
  assert.ok(parsed);
  const dialled = await dial(parsed, { clock: systemClock, limitMs: 1000 });
  assert.ok(dialled.type === 'ok', JSON.stringify(dialled));
  const probed = new JsonRpcConnection(dialled.value, {
    peer: 'ovsdb-server',
    clock: systemClock,
    limits,
    probeIntervalMs: 200,
  });
  const control = await ControlSocket.open({
    daemon: 'ovsdb-server',
    path: at('ctl'),
    clock: systemClock,
    limitMs: 300,
  });
  assert.ok(control.type === 'ok');
  const pid = String(await pidOf(at('pid')));
  const stop = (signal: string) => bed.command(['kill', signal, pid], bed.dirs('server'));
  await stop('-STOP');
  const [call, command, ended] = await Promise.all([
    listDatabases(probed, { limitMs: 100 }),
    control.value.command('version'),
    probed.ended,
  ]);
  assert.ok(call.type === 'fault' && call.code === 'timeout', JSON.stringify(call));
  assert.equal(command, {
    type: 'fault',
    code: 'timeout',
    message: 'ovsdb-server: no answer to version within 300 ms',
  });
  assert.is(ended.code, 'timeout');
  await stop('-CONT');
  control.value.close();
});

test('a control socket: answers, errors, and no more than the limit', async ({ at }) => {
  const options = { daemon: 'ovsdb-server', path: at('ctl'), clock: systemClock, limitMs: 3000 };
  const control = await ControlSocket.open(options);
  assert.ok(control.type === 'ok');
  const [version, unknown, few] = await Promise.all([
    control.value.command('version'),
    control.value.command('no-such-command'),
    control.value.command('ovsdb-server/get-db-storage-status'),
  ]);
  assert.match(JSON.stringify(version), /ovsdb-server \(Open vSwitch\)/);
  assert.match(JSON.stringify(unknown), /is not a valid command/);
  assert.match(JSON.stringify(few), /requires at least 1 arguments/);
  control.value.close();
  const bounded = await ControlSocket.open({ ...options, maxBytes: 200 });
  assert.ok(bounded.type === 'ok');
  const large = await bounded.value.command('list-commands');
  assert.ok(large.type === 'fault' && large.code === 'tooLarge', JSON.stringify(large));
});

test.run();
