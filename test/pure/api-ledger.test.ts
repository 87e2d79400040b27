import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { annotations, limits } from '../../constructs/api/constants.ts';
import {
  decodeLedger,
  encodeLedger,
  type LedgerConfigMap,
  type LedgerEntry,
  ledgerDigest,
  ledgerKey,
  ledgerWriteOrder,
} from '../../constructs/api/ledger.ts';

const target = { release: 'manifests-demo', namespace: 'keelson-system' };

const entry = (n: number, state: LedgerEntry['state'] = 'applied'): LedgerEntry => ({
  id: `/ConfigMap/demo/name-${n}`,
  uid: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  state,
  sha256: 'a'.repeat(64),
  phase: 'configuration',
  payload: `sha256:${'b'.repeat(64)}`,
});

const ledgerOf = (count: number): Map<string, LedgerEntry> =>
  new Map(Array.from({ length: count }, (_, n) => [entry(n).id, entry(n)]));

const decoded = (configMaps: readonly LedgerConfigMap[]) => {
  const read = decodeLedger(configMaps);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.value;
};

test('a ledger survives its way through ConfigMaps, in any order of entries and of ConfigMaps', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.nat(4000), { maxLength: 200 }),
      fc.constantFrom<LedgerEntry['state']>('intended', 'applied', 'pruning', 'unmanaged'),
      (numbers, state) => {
        const ledger = new Map(numbers.map((n) => [entry(n).id, entry(n, state)]));
        const shuffled = new Map([...ledger].reverse());
        const configMaps = encodeLedger(ledger, { ...target, minShards: 4 });
        assert.equal(configMaps, encodeLedger(shuffled, { ...target, minShards: 4 }));
        const back = decoded(configMaps.toReversed());
        assert.equal(back.settled, true);
        assert.equal(back.shards, 4);
        assert.equal(ledgerDigest(back.ledger), ledgerDigest(ledger));
      },
    ),
    { numRuns: 50 },
  );
});

test('a large ledger is divided so that no ConfigMap is over the limit', () => {
  const configMaps = encodeLedger(ledgerOf(3000), target);
  assert.ok(configMaps.length > 1);
  for (const configMap of configMaps)
    assert.ok(Buffer.byteLength(configMap.data[ledgerKey] ?? '') <= limits.chunkBytes);
  assert.equal(decoded(configMaps).ledger.size, 3000);
});

test('one changed entry changes one ConfigMap', () => {
  const before = ledgerOf(3000);
  const after = new Map(before).set(entry(7).id, entry(7, 'pruning'));
  const [a, b] = [encodeLedger(before, target), encodeLedger(after, target)];
  const changed = a.filter((configMap, n) => JSON.stringify(configMap) !== JSON.stringify(b[n]));
  assert.is(changed.length, 1);
});

test('no entry is lost when the writing stops at any point, at first or while the ledger grows', () => {
  const small = encodeLedger(ledgerOf(300), target);
  const cases: [LedgerConfigMap[], LedgerConfigMap[], number, number][] = [
    [[], ledgerWriteOrder(encodeLedger(ledgerOf(3000), target), 0), 0, 0],
    [
      small,
      ledgerWriteOrder(encodeLedger(ledgerOf(3000), { ...target, minShards: small.length }), small.length),
      300,
      small.length,
    ],
  ];
  for (const [start, order, least] of cases) {
    for (let written = 0; written <= order.length; written++) {
      const stored = new Map(start.map((configMap) => [configMap.metadata.name, configMap]));
      for (const configMap of order.slice(0, written)) stored.set(configMap.metadata.name, configMap);
      const back = decoded([...stored.values()]);
      assert.ok(back.ledger.size >= least, `after ${written} writes ${back.ledger.size} entries`);
      if (written === order.length) {
        assert.is(back.ledger.size, 3000);
        assert.is(back.settled, true);
      } else if (written > 1) assert.is(back.settled, false);
    }
  }
});

test('nor when any of the new ConfigMaps are there while none of the old ones has changed', () => {
  const large = ledgerOf(3000);
  for (const shards of [1, 2]) {
    const small = encodeLedger(ledgerOf(300), { ...target, minShards: shards });
    const grown = encodeLedger(large, { ...target, minShards: shards });
    const added = grown.slice(shards);
    assert.ok(added.length >= 2, `${grown.length} ConfigMaps`);
    fc.assert(
      fc.property(fc.subarray(added), (there) => {
        const back = decoded([...small, ...there]);
        for (let n = 0; n < 300; n += 1) assert.ok(back.ledger.has(entry(n).id));
      }),
      { numRuns: 40 },
    );
  }
});

test('a shard that somebody removed is seen, and nothing is read from the rest', () => {
  const configMaps = encodeLedger(ledgerOf(3000), target);
  for (let n = 0; n < configMaps.length; n++) {
    const read = decodeLedger(configMaps.filter((_, m) => m !== n));
    assert.is(read.ok, false);
    if (!read.ok) assert.is(read.problems[0]?.reason, 'LedgerUnreadable');
  }
});

test('a damaged shard is refused with the name of the ConfigMap', () => {
  const [first] = encodeLedger(ledgerOf(2), target);
  assert.ok(first);
  const damaged = [
    { ...first, data: { [ledgerKey]: '[' } },
    { ...first, data: {} },
    { ...first, data: { [ledgerKey]: '[{"id":"x"}]' } },
    { ...first, metadata: { ...first.metadata, annotations: { [annotations.shards]: '3' } } },
  ];
  for (const configMap of damaged) {
    const read = decodeLedger([configMap]);
    assert.is(read.ok, false);
    if (!read.ok) assert.match(read.problems[0]?.object ?? '', 'keelson-ledger-manifests-demo-0');
  }
});

test('no ConfigMaps are an empty ledger', () => {
  assert.equal(decoded([]), { ledger: new Map(), shards: 0, settled: true });
});

test.run();
