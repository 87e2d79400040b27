import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { kindSchema, type StructuralSchema } from '../../constructs/api/crd.ts';
import { ipAddressKind } from '../../constructs/api/kinds/ipaddress.ts';
import { ipAddressClaimKind } from '../../constructs/api/kinds/ipaddressclaim.ts';
import { ipAddressClassKind } from '../../constructs/api/kinds/ipaddressclass.ts';
import { findReason } from '../../constructs/api/reasons.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { canonicalJson, isObject, type JsonValue } from '../../constructs/lib/json.ts';
import { eventTypes } from './addresses-events.ts';

/** The API has no conversion: what a schema no longer knows is lost in stored objects. So every change of one is told. */

const kinds = [ipAddressClassKind, ipAddressKind, ipAddressClaimKind];

/** What earlier versions ended in: a row that was published is not rewritten, a further one is added. */
const published = ['74d16bda0cc1'];

/** A schema without words for people, which may change at any time. */
const bare = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(bare);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => !(key === 'description' && typeof member === 'string'))
      .map(([key, member]) => [key, bare(member ?? null)]),
  );
};

test('the page of the ledger tells of the schema as it is', () => {
  const schemas = kinds.map((kind) => bare(kindSchema(kind) as unknown as JsonValue));
  const digest = sha256Hex(canonicalJson(schemas)).slice(0, 12);
  const page = readFileSync(new URL('../../docs/addresses.md', import.meta.url), 'utf8');
  const [, changes = ''] = page.split('## Schema changes');
  const rows = [...(changes.split('\n## ')[0] ?? '').matchAll(/`([0-9a-f]{12})`/g)].map(([, found]) => found);
  assert.equal(rows.slice(0, published.length), published, 'rows stay as they are: whoever upgrades reads all of them');
  assert.is(
    rows.at(-1),
    digest,
    'a schema has changed: add a row to "Schema changes" of docs/addresses.md that ends in this digest',
  );
});

/** `spec.claimRef.uid: string` for every field. */
const fields = (schema: StructuralSchema, path = ''): string[] => [
  `${path}: ${schema.type ?? 'any'}`,
  ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) => fields(child, `${path}.${name}`)),
  ...(schema.items === undefined ? [] : fields(schema.items, `${path}[]`)),
];

test('no field of the first controllers was dropped, renamed or given another type', () => {
  const conditions = ['type', 'status', 'reason', 'message', 'lastTransitionTime'].map(
    (name) => `.status.conditions[].${name}: string`,
  );
  const ref = ['namespace', 'name', 'uid'].map((name) => `.spec.claimRef.${name}: string`);
  const wanted: Readonly<Record<string, readonly string[]>> = {
    IPAddressClass: [
      '.spec.provisioner: string',
      '.spec.reclaimPolicy: string',
      '.spec.parameters: object',
      '.spec.releaseDelay: string',
    ],
    IPAddress: [
      ...['className', 'address', 'reclaimPolicy'].map((name) => `.spec.${name}: string`),
      ...ref,
      '.spec.source.fromClass: object',
      '.spec.source.providerRef.id: string',
      '.status.phase: string',
      ...['kind', 'namespace', 'name'].map((name) => `.status.associatedTo.${name}: string`),
      ...conditions,
      '.status.conditions[].observedGeneration: integer',
    ],
    IPAddressClaim: [
      ...['className', 'family', 'addressName'].map((name) => `.spec.${name}: string`),
      '.status.phase: string',
      '.status.className: string',
      '.status.addresses[].name: string',
      '.status.addresses[].address: string',
      ...conditions,
    ],
  };
  for (const kind of kinds) {
    const present = new Set(fields(kindSchema(kind)));
    for (const field of wanted[kind.kind] ?? []) assert.ok(present.has(field), `${kind.kind} ${field}`);
  }
  assert.is(kindSchema(ipAddressClassKind).properties?.status, undefined, 'a class has no status');
});

test('columns, scopes and names are those of the first controllers', () => {
  const shape = kinds.map(({ plural, scope, shortNames, categories, columns }) => [
    plural,
    scope,
    [...shortNames, ...(categories ?? ['keelson'])],
    columns.map(({ name }) => name).join(' '),
  ]);
  assert.equal(shape, [
    ['ipaddressclasses', 'Cluster', [], 'Provisioner ReclaimPolicy Age'],
    ['ipaddresses', 'Cluster', [], 'Address Class Phase ClaimNamespace Claim AttachedTo Age'],
    ['ipaddressclaims', 'Namespaced', [], 'Phase Class Addresses Age'],
  ]);
});

test('the Events of a kind are those that are told of it, each with its type', () => {
  for (const { kind, facts } of kinds) {
    assert.equal([...(facts?.events ?? [])].sort(), Object.keys(eventTypes[kind] ?? {}).sort(), kind);
  }
  for (const types of Object.values(eventTypes))
    for (const [reason, type] of Object.entries(types))
      assert.is(findReason(reason)?.severity === 'info' ? 'Normal' : 'Warning', type, `${reason} in the reference`);
});

test.run();
