import { readFileSync } from 'node:fs';
import { Environment } from '@marcbachmann/cel-js';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { outcomeRows } from '../../constructs/api/conditions.ts';
import { crdOf } from '../../constructs/api/crd.ts';
import { kinds } from '../../constructs/api/kinds/index.ts';
import { reportsOutcome } from '../../constructs/api/kinds/kind.ts';
import { releaseKind } from '../../constructs/api/kinds/release.ts';
import {
  courierFixtures,
  courierObject,
  courierReadings,
  type FluxReading,
} from '../../constructs/couriers/fixtures.ts';
import { releaseHealth } from '../../constructs/couriers/flux.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { kstatusOf } from './courier-kstatus.ts';
import { at } from './courier-support.ts';

/** What Flux makes of our kinds, by its own rules and by the expressions that it is given for Releases. */

const environment = new Environment({ unlistedVariablesAreDyn: true });
const program = (text: string): ((object: JsonObject) => unknown) => {
  const parsed = environment.parse(text);
  return (object) => parsed({ ...object });
};
const programs = {
  inProgress: program(releaseHealth.inProgress),
  failed: program(releaseHealth.failed),
  current: program(releaseHealth.current),
};

/** Flux compares generations, and then asks in this order. */
function celOf(object: JsonObject): FluxReading {
  const observed = at(object, 'status', 'observedGeneration');
  if (observed !== undefined && observed !== at(object, 'metadata', 'generation')) return 'InProgress';
  if (programs.inProgress(object) === true) return 'InProgress';
  if (programs.failed(object) === true) return 'Failed';
  return programs.current(object) === true ? 'Current' : 'InProgress';
}

test('every outcome has a reading, and every reading an outcome', () => {
  assert.equal(Object.keys(courierReadings).sort(), [...Object.keys(outcomeRows), 'unseen'].sort());
});

for (const kind of kinds.filter(reportsOutcome))
  test(`Flux reads ${kind.kind} as the table says, after every outcome`, () => {
    const fixtures = courierFixtures(kind);
    assert.ok(fixtures.length > Object.keys(outcomeRows).length);
    for (const { name, object, flux } of fixtures) assert.is(kstatusOf(object), flux, name);
  });

test('the expressions for Releases agree with the rules of Flux after every outcome', () => {
  for (const { name, object, flux } of courierFixtures(releaseKind)) assert.is(celOf(object), flux, name);
});

test('a Release without conditions, or never carried out in full, is not current by the expressions', () => {
  const bare = courierObject(releaseKind, {});
  assert.equal([kstatusOf(bare), celOf(bare)], ['Current', 'InProgress']);
  const never = courierObject(releaseKind, { observedGeneration: 4, conditions: [{ type: 'Ready', status: 'True' }] });
  assert.equal([kstatusOf(never), celOf(never)], ['Current', 'InProgress']);
});

test('an object that nothing has looked at is not current: each definition says so by its default', () => {
  for (const kind of kinds.filter(reportsOutcome)) {
    const [version] = at(crdOf(kind), 'spec', 'versions') as JsonObject[];
    const status = at(version, 'schema', 'openAPIV3Schema', 'properties', 'status', 'default');
    assert.equal(status, { observedGeneration: -1 }, kind.kind);
    if (isObject(status)) assert.is(kstatusOf(courierObject(kind, status)), 'InProgress');
  }
});

test('a status that is about an older spec says nothing about the new one', () => {
  for (const { name, object } of courierFixtures(releaseKind)) {
    const changed = { ...object, metadata: { ...(object.metadata as JsonObject), generation: 5 } };
    assert.equal([kstatusOf(changed), celOf(changed)], ['InProgress', 'InProgress'], name);
  }
});

test('the page about couriers shows the same table', () => {
  const page = readFileSync(new URL('../../docs/couriers.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Za-z]+)` \|[^|]*\| (\w+) \| (\w+) \|$/gm)];
  const shown = Object.fromEntries(rows.map(([, outcome, flux, argo]) => [outcome, { flux, argo }]));
  assert.equal(shown, courierReadings);
});

test.run();
