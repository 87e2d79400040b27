import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { kinds as allKinds } from '../../constructs/api/kinds/index.ts';
import { reportsOutcome } from '../../constructs/api/kinds/kind.ts';
import { releaseKind } from '../../constructs/api/kinds/release.ts';
import { type ArgoReading, courierFixtures, courierObject } from '../../constructs/couriers/fixtures.ts';
import { healthData } from '../../constructs/couriers/health.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { run } from '../tools/process.ts';
import { ensureTool } from '../tools/tools.ts';

/** The health checks run by the interpreter that Argo CD is built with, over what our controllers report. */

const kinds = allKinds.filter(reportsOutcome);

interface Case {
  readonly name: string;
  readonly source: string;
  readonly object: unknown;
}

interface Answer {
  readonly name: string;
  readonly status: string;
  readonly message: string;
}

/** A value as Lua writes it; null is nil there, as it is for Argo CD. */
function lua(value: unknown): string {
  if (value === null || value === undefined) return 'nil';
  if (typeof value === 'string')
    return `"${[...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}"`;
  if (Array.isArray(value)) return `{${value.map(lua).join(', ')}}`;
  if (typeof value !== 'object') return String(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `[${lua(key)}] = ${lua(member)}`)
    .join(', ')}}`;
}

/** Each check runs alone, with the base of Lua and nothing else; an error of it is an answer, and fails the test. */
const program = (cases: readonly Case[]): string =>
  `${cases
    .map(({ source, object }) => `ask(${lua(source)}, ${lua(object)})`)
    .reduce((text, line) => `${text}${line}\n`, prelude)}`;

const prelude = `
local function ask(source, obj)
  local chunk, syntax = loadstring(source)
  if chunk == nil then print("syntax\\t" .. syntax) return end
  setfenv(chunk, { obj = obj, type = type, ipairs = ipairs, pairs = pairs, tostring = tostring })
  local fine, health = pcall(chunk)
  if not fine then print("error\\t" .. tostring(health)) return end
  print(tostring(health.status) .. "\\t" .. tostring(health.message))
end
`;

async function ask(cases: readonly Case[]): Promise<Answer[]> {
  const glua = await ensureTool('glua', { onProgress: (line) => console.error(line) });
  const folder = mkdtempSync(join(tmpdir(), 'keelson-lua-'));
  try {
    writeFileSync(join(folder, 'ask.lua'), program(cases));
    const result = await run(glua, [join(folder, 'ask.lua')], { limitMs: 30_000 });
    assert.is(result.code, 0, result.stderr);
    const lines = result.stdout.trimEnd().split('\n');
    assert.is(lines.length, cases.length, result.stdout);
    return cases.map(({ name }, n) => {
      const [status = '', message = ''] = (lines[n] ?? '').split('\t');
      return { name, status, message };
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const sources = new Map(
  kinds.map((kind) => [kind, healthData(kinds)[`resource.customizations.health.${kind.group}_${kind.kind}`] ?? '']),
);

test('every kind has a check', () => {
  assert.is(Object.keys(healthData(kinds)).length, kinds.length);
  for (const source of sources.values()) assert.ok(source.length > 100);
});

test('every outcome of every kind reads as the table says', async () => {
  const wanted = kinds.flatMap((kind) =>
    courierFixtures(kind).map((fixture) => ({
      source: sources.get(kind) ?? '',
      ...fixture,
      name: `${kind.kind} ${fixture.name}`,
    })),
  );
  const answers = await ask(wanted);
  assert.equal(
    answers,
    wanted.map(({ name, argo, message }) => ({ name, status: argo, message })),
  );
  assert.equal([...new Set(answers.map(({ status }) => status))].sort(), [
    'Degraded',
    'Healthy',
    'Progressing',
    'Suspended',
  ] satisfies ArgoReading[]);
});

const condition = (type: string, status: unknown, more: JsonObject = {}): JsonObject => ({
  type,
  status: status as string,
  ...more,
});
const status = (conditions: unknown, observedGeneration: unknown = 4): unknown => ({ observedGeneration, conditions });

/** Statuses of all shapes that an object may have, also those that only a defect makes. */
const odd: readonly (readonly [name: string, object: unknown, status: ArgoReading])[] = [
  ['nothing at all', {}, 'Progressing'],
  ['no status', courierObject(releaseKind), 'Progressing'],
  ['status null', courierObject(releaseKind, null), 'Progressing'],
  ['status a text', courierObject(releaseKind, 'fine'), 'Progressing'],
  ['status empty', courierObject(releaseKind, {}), 'Progressing'],
  ['generation null', courierObject(releaseKind, status([condition('Ready', 'True')], null)), 'Progressing'],
  ['generation a text', courierObject(releaseKind, status([condition('Ready', 'True')], '4')), 'Progressing'],
  ['generation older', courierObject(releaseKind, status([condition('Ready', 'True')], 3)), 'Progressing'],
  [
    'no metadata',
    { ...courierObject(releaseKind, status([condition('Ready', 'True')])), metadata: null },
    'Progressing',
  ],
  ['no spec', { ...courierObject(releaseKind, status([condition('Ready', 'True')])), spec: null }, 'Healthy'],
  ['conditions absent', courierObject(releaseKind, { observedGeneration: 4 }), 'Progressing'],
  ['conditions null', courierObject(releaseKind, status(null)), 'Progressing'],
  ['conditions a text', courierObject(releaseKind, status('Ready')), 'Progressing'],
  ['conditions a map', courierObject(releaseKind, status({ Ready: 'True' })), 'Progressing'],
  ['conditions empty', courierObject(releaseKind, status([])), 'Progressing'],
  ['a condition that is a text', courierObject(releaseKind, status(['Ready', condition('Ready', 'True')])), 'Healthy'],
  ['a condition without type', courierObject(releaseKind, status([{ status: 'True' }])), 'Progressing'],
  ['a condition without status', courierObject(releaseKind, status([{ type: 'Ready' }])), 'Progressing'],
  ['a status that is a truth value', courierObject(releaseKind, status([condition('Ready', true)])), 'Progressing'],
  [
    'a message that is a number',
    courierObject(releaseKind, status([condition('Ready', 'False', { message: 7 })])),
    'Degraded',
  ],
  ['paused without conditions', courierObject(releaseKind, status(null), { paused: true }), 'Suspended'],
  ['suspended, as others say it', courierObject(releaseKind, status([]), { suspend: true }), 'Suspended'],
  ['paused is a text', courierObject(releaseKind, status([condition('Ready', 'True')]), { paused: 'yes' }), 'Healthy'],
  [
    'held',
    courierObject(releaseKind, status([condition('Progressing', 'False', { reason: 'ReleaseHeld' })])),
    'Suspended',
  ],
  ['paused, and not yet seen to be', courierObject(releaseKind, status([], 3), { paused: true }), 'Progressing'],
  [
    'stalled, whatever Ready says',
    courierObject(releaseKind, status([condition('Ready', 'True'), condition('Stalled', 'True')])),
    'Degraded',
  ],
];

test('absent fields, and fields of a wrong type, are no errors', async () => {
  const cases = [...sources].flatMap(([kind, source]) =>
    odd.map(([name, object]) => ({ name: `${kind.kind} ${name}`, source, object })),
  );
  const answers = await ask(cases);
  const wanted = [...sources.keys()].flatMap((kind) =>
    odd.map(([name, , reading]) => `${kind.kind} ${name}: ${reading}`),
  );
  assert.equal(
    answers.map(({ name, status: found }) => `${name}: ${found}`),
    wanted,
  );
});

test('a check that fails is seen to fail', async () => {
  const [broken, wrong] = await ask([
    { name: 'error', source: 'return { status = obj.status.health }', object: {} },
    { name: 'syntax', source: 'return {', object: {} },
  ]);
  assert.equal([broken?.status, wrong?.status], ['error', 'syntax']);
});

test.run();
