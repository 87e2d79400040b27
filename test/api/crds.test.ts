import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { crdOf } from '../../constructs/api/crd.ts';
import { findKind, kinds } from '../../constructs/api/kinds/index.ts';
import { crdName, type Kind } from '../../constructs/api/kinds/kind.ts';
import { validateDocument } from '../../constructs/api/validate.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { isObject, type JsonObject, type JsonValue, setAt, sortedCopy, toPointer } from '../../constructs/lib/json.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import type { Reply } from '../apiserver/client.ts';
import { freshNamespace } from '../apiserver/namespace.ts';
import { type SharedServer, sharedApiServer } from '../apiserver/shared.ts';
import { celCases } from '../pure/cel-cases.ts';
import {
  address,
  addressClass,
  approval,
  type CelCase,
  claim,
  installation,
  recovery,
  release,
} from '../pure/cel-objects.ts';

let server: SharedServer;
let namespace: string;

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const strict = { fieldValidation: 'Strict' };
const dryRun = { ...strict, dryRun: 'All' };

function collection(object: JsonObject): string {
  const kind = findKind(String(object.apiVersion), String(object.kind));
  if (kind === undefined) throw new Error(`no kind ${String(object.kind)}`);
  return collectionOf(kind);
}

const collectionOf = (kind: Kind): string =>
  `/apis/${kind.group}/${kind.version}/${kind.scope === 'Namespaced' ? `namespaces/${namespace}/` : ''}${kind.plural}`;

const nameOf = (object: JsonObject): string => String((object.metadata as JsonObject).name);
const here = (object: JsonObject): JsonObject => {
  const kind = findKind(String(object.apiVersion), String(object.kind));
  return kind?.scope === 'Cluster' ? object : (setAt(object, '/metadata/namespace', namespace) as JsonObject);
};
const textOf = (reply: Reply): string => `${reply.status} ${reply.body?.message ?? ''}`;

const create = (object: JsonObject, query: Record<string, string>): Promise<Reply> =>
  server.admin.request('POST', collection(object), { query, body: here(object) });

/** A hook that fails would end the run without a word of why. */
const told = (hook: () => Promise<void>) => async (): Promise<void> => {
  try {
    await hook();
  } catch (error) {
    console.error(error);
    throw error;
  }
};

test.before(
  told(async () => {
    server = await sharedApiServer();
    namespace = await freshNamespace(server.admin, 'crds');
    for (const kind of kinds) {
      const query = { fieldManager: 'keelson', fieldValidation: 'Strict' };
      const request = { query, body: crdOf(kind), type: 'application/apply-patch+yaml' };
      await server.admin.expect('PATCH', `${crds}/${crdName(kind)}`, {
        ...request,
        query: { ...query, dryRun: 'All' },
      });
      await server.admin.expect('PATCH', `${crds}/${crdName(kind)}`, request);
    }
    for (const kind of kinds) {
      await waitFor({
        what: `${kind.kind} to be served`,
        limitMs: 30_000,
        intervalMs: 50,
        clock: systemClock,
        probe: async () => {
          const reply = await server.admin.request('GET', collectionOf(kind));
          return reply.status === 200 ? true : undefined;
        },
      });
    }
  }),
);

/** What stands in no namespace, and so does not go with ours. */
const leftBehind: string[] = [];

test.after(async () => {
  for (const path of leftBehind) await server.admin.request('DELETE', path);
  await server.admin.request('DELETE', `/api/v1/namespaces/${namespace}`);
  await server.admin.close();
});

test('the server takes the CRDs without a structural complaint', async () => {
  for (const kind of kinds) {
    const { body } = await server.admin.expect('GET', `${crds}/${crdName(kind)}`);
    const bad = body.status.conditions.filter(
      (c: { type: string; status: string }) =>
        (c.type === 'NonStructuralSchema' && c.status === 'True') ||
        (['Established', 'NamesAccepted'].includes(c.type) && c.status !== 'True'),
    );
    assert.equal(bad, [], kind.kind);
  }
});

/** The server keeps the schema as we wrote it: nothing was dropped or rewritten. */
test('the stored schema is the one we validate with', async () => {
  for (const kind of kinds) {
    const { body } = await server.admin.expect('GET', `${crds}/${crdName(kind)}`);
    const ours = (crdOf(kind).spec as JsonObject).versions as JsonObject[];
    assert.equal(sortedCopy(body.spec.versions[0].schema), sortedCopy(ours[0]?.schema ?? {}), kind.kind);
  }
});

async function runChange(rule: CelCase, n: number, old: JsonObject): Promise<void> {
  const named = (object: JsonObject): JsonObject => setAt(object, '/metadata/name', `case-${n}`) as JsonObject;
  const path = `${collection(old)}/case-${n}`;
  const target = rule.status === true ? `${path}/status` : path;
  if (!collection(old).includes('/namespaces/')) leftBehind.push(path);
  let stored = (await server.admin.expect('POST', collection(old), { query: strict, body: here(named(old)) })).body;
  if (rule.status === true)
    stored = (await server.admin.expect('PUT', target, { body: { ...stored, status: old.status } })).body;
  const change = (next: JsonObject): Promise<Reply> =>
    server.admin.request('PUT', target, {
      query: dryRun,
      body: { ...stored, spec: next.spec, ...(next.status === undefined ? {} : { status: next.status }) },
    });
  const accepted = await change(rule.accepted);
  assert.is(accepted.status, 200, textOf(accepted));
  expectRefusal(await change(rule.refused), rule.rule);
}

function expectRefusal(reply: Reply, rule: string): void {
  assert.is(reply.status, 422, `not refused: ${textOf(reply)}`);
  assert.ok(String(reply.body.message).includes(rule), textOf(reply));
}

for (const [n, rule] of celCases.entries())
  test(`rule ${n}: ${rule.rule}`, async () => {
    if (rule.old !== undefined) {
      await runChange(rule, n, rule.old);
      return;
    }
    const accepted = await create(rule.accepted, dryRun);
    assert.is(accepted.status, 201, textOf(accepted));
    const ours = validateDocument(here(rule.accepted));
    assert.ok(ours.ok);
    if (ours.ok) assert.equal(sortedCopy(accepted.body.spec), sortedCopy(ours.value.spec ?? {}), 'defaults');
    expectRefusal(await create(rule.refused, dryRun), rule.rule);
  });

for (const object of [installation, approval, recovery, release])
  test(`a new ${String(object.kind)} says that nobody has looked at it`, async () => {
    const reply = await create(setAt(object, '/metadata/name', `${nameOf(object)}-new`) as JsonObject, strict);
    assert.is(reply.status, 201, textOf(reply));
    assert.equal(reply.body.status, { observedGeneration: -1 });
    const read = await server.admin.expect('GET', `${collection(object)}/${nameOf(object)}-new`);
    assert.is(read.body.status.observedGeneration, -1);
  });

/** Pointers to every value below spec. */
function pointers(value: JsonValue, path: (string | number)[] = ['spec']): string[] {
  const children: [string | number, JsonValue | undefined][] = Array.isArray(value)
    ? [...value.entries()]
    : isObject(value)
      ? Object.entries(value)
      : [];
  return [toPointer(path), ...children.flatMap(([key, child]) => pointers(child ?? null, [...path, key]))];
}

const junk: fc.Arbitrary<JsonValue | undefined> = fc.oneof(
  fc.constantFrom<JsonValue | undefined>(undefined, null, undefined, 0, -1, 3.5, 70_000, true, '', 'x', 'X_y', [], {}, [
    'a',
    'a',
  ]),
  fc.constantFrom<JsonValue>(false, 1, 5, 'abc', '90s', 'v1.2.3'),
  fc.constantFrom<JsonValue>('a'.repeat(400), '2026-01-01', '10m', 'tcp:10.0.0.1:6641', { unknown: true }, [
    { name: 'a' },
  ]),
);

test('our verdict on damaged documents is that of the server', async () => {
  const bases = [
    installation,
    approval,
    recovery,
    release,
    addressClass,
    address,
    claim,
    ...celCases.filter((c) => c.old === undefined).map((c) => c.accepted),
  ];
  const seen = { accepted: 0, refused: 0 };
  const damaged = fc.constantFrom(...bases).chain((base) =>
    fc.record({
      base: fc.constant(base),
      at: fc.constantFrom(...pointers(base.spec ?? {})),
      value: junk,
      extra: fc.option(fc.constantFrom('surprise', 'Mode', 'spec'), { freq: 6 }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(damaged, async ({ base, at, value, extra }) => {
      const changed = setAt(base, extra === null ? at : `/spec/${extra}`, value) as JsonObject;
      const reply = await create(changed, dryRun);
      const ours = validateDocument(here(changed));
      const verdict = reply.status === 201;
      seen[verdict ? 'accepted' : 'refused']++;
      const problems = ours.ok ? '' : ours.problems.map((p) => `${p.path}: ${p.message}`).join('; ');
      assert.is(ours.ok, verdict, `server: ${textOf(reply)}\nours: ${problems}`);
      if (ours.ok) assert.equal(sortedCopy(reply.body.spec), sortedCopy(ours.value.spec ?? {}));
    }),
    { numRuns: 400, seed: 20_261_129 },
  );
  // The property says nothing when all documents share one fate.
  assert.ok(seen.accepted > 20 && seen.refused > 100, JSON.stringify(seen));
});

test.run();
