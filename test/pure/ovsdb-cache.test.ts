/**
 * The rows that a monitor keeps, against a model of the server: any history, told by differences or by whole rows, gives the
 * same rows; what does not fit is refused and changes nothing.
 */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Json } from '../../probes/jsonrpc/json.ts';
import { applyUpdates, noRows, type Rows, type UpdateForm } from '../../probes/ovsdb/cache.ts';
import { readNotification } from '../../probes/ovsdb/monitor.ts';
import { narrow, readSchema } from '../../probes/ovsdb/schema.ts';
import { atomKey, optional, pairsOf, setOf, stringMap, uuid } from '../../probes/ovsdb/values.ts';
import { canonicalRows, changesOf, rowModel, type ServerRows } from './ovsdb-model.ts';
import { demoColumns, demoSchema } from './ovsdb-schema.ts';

const read = readSchema(demoSchema);
assert.ok(read);
const narrowed = narrow(read, { T: demoColumns });
assert.ok(narrowed.type === 'ok');
const tables = narrowed.value;

const history = fc.array(
  fc
    .dictionary(fc.constantFrom('a', 'b', 'c'), rowModel, { maxKeys: 3 })
    .map((rows): ServerRows => new Map(Object.entries(rows))),
  { minLength: 1, maxLength: 8 },
);

for (const form of ['update', 'update2'] as const)
  test(`any history told by ${form} gives the server's rows`, () => {
    fc.assert(
      fc.property(history, (states) => {
        let rows: Rows = noRows;
        let before: ServerRows = new Map();
        for (const state of states) {
          const applied = applyUpdates(rows, form, { T: changesOf(form, before, state) }, tables);
          assert.is(applied.type, 'ok', JSON.stringify(applied));
          rows = applied.type === 'ok' ? applied.rows : rows;
          assert.equal(canonicalRows(rows.get('T') ?? new Map()), canonicalRows(state));
          before = state;
        }
      }),
      { numRuns: 200 },
    );
  });

const told = (form: UpdateForm, updates: Json, rows = noRows) => applyUpdates(rows, form, updates, tables);
const start = told('update2', { T: { a: { initial: { name: 'x', tags: ['set', ['p', 'q']] } } } });
assert.ok(start.type === 'ok');

test('what a new row does not tell is the initial value of the schema', () => {
  const row = start.rows.get('T')?.get('a');
  assert.equal(Object.fromEntries(row ?? []), {
    name: 'x',
    count: 0,
    ratio: 0,
    up: ['set', []],
    tags: ['set', ['p', 'q']],
    ids: ['map', []],
    one: ['map', []],
  });
});

test('a change that does not fit is refused, and the rows stay', () => {
  const before = canonicalRows(start.rows.get('T') ?? new Map());
  const wrong: [UpdateForm, Json][] = [
    ['update2', { T: { a: { insert: { name: 'again' } } } }],
    ['update2', { T: { b: { modify: { name: 'unknown' } } } }],
    ['update2', { T: { b: { delete: null } } }],
    ['update2', { T: { a: { renamed: {} } } }],
    ['update2', { T: { a: { modify: { other: 1 } } } }],
    ['update2', { T: { a: { modify: { tags: ['map', []] } } } }],
    ['update2', { T: { a: 1 } }],
    ['update2', { T: [] }],
    ['update2', { Other: {} }],
    ['update2', 7],
    ['update', { T: { a: { new: { name: 'y' } } } }],
    ['update', { T: { b: { old: {} } } }],
    ['update', { T: { b: {} } }],
  ];
  for (const [form, updates] of wrong)
    assert.is(told(form, updates, start.rows).type, 'disagreement', JSON.stringify(updates));
  assert.equal(canonicalRows(start.rows.get('T') ?? new Map()), before);
});

test('no update whatever throws', () => {
  const anything = fc.oneof(
    fc.jsonValue() as fc.Arbitrary<Json>,
    fc.record({
      T: fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue() as fc.Arbitrary<Json>),
    }) as fc.Arbitrary<Json>,
    fc.record({
      T: fc.record({
        a: fc.record({ modify: fc.dictionary(fc.constantFrom(...demoColumns), fc.jsonValue() as fc.Arbitrary<Json>) }),
      }),
    }) as fc.Arbitrary<Json>,
  );
  fc.assert(
    fc.property(anything, fc.constantFrom('update', 'update2'), (updates, form) => {
      assert.ok(['ok', 'disagreement'].includes(told(form, updates, start.rows).type));
    }),
    { numRuns: 500 },
  );
});

test('a schema that is none is refused; a column that does not exist is named', () => {
  for (const bad of [1, null, {}, { ...demoSchema, tables: 1 }, { ...demoSchema, tables: { T: {} } }] as Json[])
    assert.is(readSchema(bad), undefined);
  assert.is(readSchema({ ...demoSchema, tables: { T: { columns: { a: { type: 'colour' } } } } }), undefined);
  assert.equal(narrow(read, { T: ['name', 'colour'], U: ['x'] }), { type: 'absent', names: ['T.colour', 'U.x'] });
});

test('notifications: who they are for and what they carry', () => {
  assert.equal(readNotification('m', 'update3', ['m', 't', { T: {} }]), {
    type: 'updates',
    form: 'update2',
    updates: { T: {} },
    transaction: 't',
  });
  assert.is(readNotification('m', 'update2', ['m', {}])?.type, 'updates');
  assert.equal(readNotification('m', 'monitor_canceled', ['m']), { type: 'canceled' });
  const others: [string, Json[]][] = [
    ['update3', ['m', 1, {}]],
    ['update2', ['n', {}]],
    ['update', ['m']],
    ['locked', ['m']],
    ['update', []],
  ];
  for (const [method, params] of others) assert.is(readNotification('m', method, params), undefined, method);
});

test('values: sets of one may stand bare, optionals, maps, uuids', () => {
  const id = 'ABCDEF00-0000-4000-8000-000000000001';
  assert.is(uuid(['uuid', id]), id.toLowerCase());
  assert.is(uuid(['uuid', 'short']), undefined);
  assert.equal(setOf('x'), ['x']);
  assert.equal(setOf(['set', []]), []);
  assert.equal(setOf(['uuid', id]), [['uuid', id]]);
  for (const bad of [['map', []], ['set', [['set', []]]], null, undefined, {}, [1, 2]] as (Json | undefined)[])
    assert.is(setOf(bad), undefined);
  assert.equal(optional(['set', []]), { present: false });
  assert.equal(optional(5), { present: true, value: 5 });
  assert.is(optional(['set', [1, 2]]), undefined);
  assert.equal(pairsOf(['map', [['a', 1]]]), [['a', 1]]);
  for (const bad of [['map', [['a']]], ['map', [['a', 1, 2]]], ['map', 'x'], 'a'] as Json[])
    assert.is(pairsOf(bad), undefined);
  assert.equal([...(stringMap(['map', [['a', 'b']]]) ?? [])], [['a', 'b']]);
  assert.is(stringMap(['map', [['a', 1]]]), undefined);
  assert.is(atomKey(7), atomKey(7n));
  assert.is(atomKey(['uuid', id]), atomKey(['uuid', id.toLowerCase()]));
  assert.is.not(atomKey('7'), atomKey(7));
});

test.run();
