// time limit: 60s
/**
 * A member, and a node, whose probes prove who they are and say whatever their schema lets through: the others are told of as before,
 * and the status can be written.
 */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type EvidenceKind, type EvidenceOf, parseEvidence } from '../../constructs/api/evidence.ts';
import { installationStatus as statusSchema } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import { canonicalJson, isObject, type JsonValue } from '../../constructs/lib/json.ts';
import { evidenceStatus } from '../../executor/network/evidence.ts';
import { matrixOf } from '../../executor/observe/matrix.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { emptyMemory, judgeRound, type Memory, type Round } from '../../executor/observe/verdict.ts';
import {
  answer,
  centralFacts,
  centralRound,
  centralSample,
  chassisFacts,
  chassisListOf,
  chassisRound,
  chassisSample,
  podFacts,
} from './observe-support.ts';
import { healthy, time, wanted } from './observe-verdict-support.ts';

const nasty = [
  '',
  '__proto__',
  'constructor',
  'toString',
  '\ud83d',
  'x\udc00y',
  `${'a'.repeat(63)}\u{1f600}`,
  '\u001b[2J\u0007',
  '\u202e live',
  'a\nb\r\nc',
  '<script>alert(1)</script>',
  '%s {subject} {{x}}',
  'x'.repeat(250),
  '\u{1f600}'.repeat(120),
  '18446744073709551615',
  '0',
  '-',
];
const numbers = [0, 1, -1, 0.5, 2 ** 31, 86_400_000, 1_000_000];

/** Changes some leaves of a value to what nobody wants to read; keys and shapes stay. */
const spoilt = (value: JsonValue): fc.Arbitrary<JsonValue> => {
  if (typeof value === 'string')
    return fc.oneof({ weight: 6, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: fc.constantFrom(...nasty) });
  if (typeof value === 'number')
    return fc.oneof(
      { weight: 6, arbitrary: fc.constant(value) },
      { weight: 1, arbitrary: fc.constantFrom(...numbers) },
    );
  if (typeof value === 'boolean') return fc.oneof(fc.constant(value), fc.boolean());
  if (Array.isArray(value))
    return fc
      .tuple(fc.tuple(...value.map(spoilt)), fc.integer({ min: 1, max: 40 }))
      .map(([items, times]) => (times > 36 ? Array.from({ length: times }, () => items).flat() : items));
  if (!isObject(value)) return fc.constant(value);
  return fc.record(Object.fromEntries(Object.entries(value).map(([key, member]) => [key, spoilt(member ?? null)])));
};

/** Over the wire; what the schema does not let through is as good as silence. */
function heard<K extends EvidenceKind>(kind: K, evidence: JsonValue): Outcome<K> {
  const nonce = 'b'.repeat(32);
  const body = Buffer.from(JSON.stringify({ ...(evidence as object), nonce }));
  const read = parseEvidence(body, { kind, nonce });
  return read.outcome === 'evidence'
    ? { type: 'Evidence', evidence: read.evidence as EvidenceOf<K> }
    : { type: 'Unreadable', message: 'message' in read ? read.message : read.outcome };
}

const factsOf = <K extends 'central' | 'chassis'>(kind: K, facts: EvidenceOf<K>['facts']): fc.Arbitrary<Outcome<K>> => {
  const whole = answer(kind, podFacts(kind, 1), facts);
  if (whole.type !== 'Evidence') throw new Error(whole.type);
  const { facts: plain, ...envelope } = JSON.parse(JSON.stringify(whole.evidence));
  // Facts that pass, or a component as a problem with words of its own.
  const problem = fc
    .tuple(fc.constantFrom(...Object.keys(plain)), fc.constantFrom(...nasty))
    .map(([component, message]) => {
      const { [component]: _gone, ...rest } = plain;
      const told = { component, code: 'protocol', message, elapsedMs: 1, limitMs: 1 };
      return { ...envelope, complete: false, problems: [told], facts: rest };
    });
  return fc
    .oneof(
      { weight: 5, arbitrary: spoilt(plain).map((changed) => ({ ...envelope, facts: changed })) },
      { weight: 1, arbitrary: problem },
    )
    .map((evidence) => heard(kind, evidence as JsonValue));
};

const names = chassisListOf(['system-1', 'system-2', 'system-3'], ['system-3']);
const [nb, sb] = [centralFacts(1, 3).nb, centralFacts(1, 3).sb];
const member = factsOf(
  'central',
  centralFacts(1, 3, { nb: nb as never, sb: { ...(sb as object), chassis: names } as never }),
);
const node = factsOf('chassis', chassisFacts(1));

const hostile = (n: number): fc.Arbitrary<Round> =>
  fc.tuple(member, member, node).map(([first, second, chassis]) =>
    healthy({
      time: time(n),
      central: centralRound(3, (at) => (at === 1 ? { ...centralSample(1, 3), first, second } : undefined)),
      chassis: chassisRound(3, (at) => (at === 1 ? chassisSample(1, {}, chassis) : undefined)),
    }),
  );

let passed = 0;
test('property: whatever one member and one node say, the status fits its definition and has a canonical form', () => {
  fc.assert(
    fc.property(fc.tuple(hostile(1), hostile(2), hostile(3)), (rounds) => {
      let memory: Memory = emptyMemory;
      for (const round of rounds) {
        if (round.chassis?.samples[0]?.outcome.type === 'Evidence') passed += 1;
        const verdict = judgeRound(round, wanted, memory);
        memory = verdict.memory;
        const observed = { verdict, limitMs: 60_000, matrix: matrixOf(round) };
        const status = evidenceStatus({}, observed, round.time.endedTick);
        const conditions = verdict.conditions.map((one) => ({
          ...one,
          lastTransitionTime: '2026-01-01T00:00:00Z',
          observedGeneration: 1,
        }));
        const whole = { ...status, conditions } as JsonValue;
        assert.ok(Buffer.byteLength(canonicalJson(whole)) < 32 * 1024);
        const read = statusSchema.safeParse(whole);
        assert.ok(read.success, JSON.stringify(read.error?.issues));
        for (const { message } of verdict.conditions) assert.ok([...message].length <= 1_024);
        // Whatever that one says of itself, of the others as much is known as before.
        const others = round.chassis?.samples.slice(1) ?? [];
        assert.is(
          others.every(({ outcome }) => outcome.type === 'Evidence'),
          true,
        );
      }
      assert.ok(JSON.stringify(memory).length < 64 * 1024);
    }),
    { numRuns: 400 },
  );
  assert.ok(passed > 200, `${passed} answers passed the schema`);
});

test('half of a character is never told: what is left of it is', () => {
  const changed = answer('chassis', podFacts('ovs-ovn', 1), chassisFacts(1));
  if (changed.type !== 'Evidence') throw new Error(changed.type);
  const text = JSON.stringify(changed.evidence).replace('"system-1"', '"system-\\ud83d"');
  const outcome = heard('chassis', JSON.parse(text));
  assert.is(outcome.type === 'Evidence' && outcome.evidence.facts.ovsdb?.systemID, 'system-\ufffd');
});

test.run();
