import { z } from 'zod';
import { isObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { CelRule } from './cel.ts';
import { labels, managedByValue } from './constants.ts';
import { applyDefaults } from './defaults.ts';
import { crdName, type Kind } from './kinds/kind.ts';

/** The structural OpenAPI v3 schema of a zod schema, and the CustomResourceDefinition of a kind. */

/** The part of JSON Schema that structural schemas use. */
export interface StructuralSchema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  description?: string;
  default?: JsonValue;
  nullable?: boolean;
  enum?: JsonValue[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  properties?: Record<string, StructuralSchema>;
  required?: string[];
  items?: StructuralSchema;
  additionalProperties?: StructuralSchema | boolean;
  'x-kubernetes-validations'?: CelRule[];
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
}

const unbounded = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER } as const;

function toStructural(json: Record<string, unknown>): void {
  if (json['x-kubernetes-int-or-string'] === true) {
    delete json.anyOf;
    delete json.oneOf;
  }
  if (json.minimum === unbounded.minimum) delete json.minimum;
  if (json.maximum === unbounded.maximum) delete json.maximum;
  // The API server's own check of the format is the one that counts.
  if (json.format === 'date-time') delete json.pattern;
  if (json.additionalProperties === false) delete json.additionalProperties;
  if (json['x-kubernetes-preserve-unknown-fields'] === true) delete json.additionalProperties;
  if (isObject(json.properties) && Object.keys(json.properties).length === 0) delete json.properties;
  delete json.propertyNames;
  delete json.$schema;
  delete json.id;
}

/** Structural schema of a zod schema, defaults and CEL rules included. */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ jsonSchema }) => toStructural(jsonSchema as Record<string, unknown>),
  });
  return completeDefaults(JSON.parse(JSON.stringify(json)) as StructuralSchema);
}

/** The API server checks a default against the rules of its schema as it stands, before inner defaults are filled in. */
function completeDefaults(schema: StructuralSchema): StructuralSchema {
  for (const child of Object.values(schema.properties ?? {})) completeDefaults(child);
  if (schema.items !== undefined) completeDefaults(schema.items);
  if (typeof schema.additionalProperties === 'object') completeDefaults(schema.additionalProperties);
  if (schema.default !== undefined) schema.default = applyDefaults(schema, schema.default);
  return schema;
}

/** Schema of whole objects of a kind. */
export function kindSchema(kind: Kind): StructuralSchema {
  return {
    type: 'object',
    description: kind.description,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structuralSchema(kind.spec),
      ...(kind.status === undefined ? {} : { status: structuralSchema(kind.status) }),
    },
    required: ['spec'],
    ...(kind.rules.length > 0 ? { 'x-kubernetes-validations': [...kind.rules] } : {}),
  };
}

/** A list, or nothing of it: the server stores no empty ones, and whoever applies one again is in conflict with the first. */
const stored = (name: string, list: readonly string[]): JsonObject => (list.length === 0 ? {} : { [name]: [...list] });

/** The CustomResourceDefinition of a kind. */
export function crdOf(kind: Kind): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName(kind), labels: { [labels.managedBy]: managedByValue } },
    spec: {
      group: kind.group,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...stored('shortNames', kind.shortNames),
        ...stored('categories', kind.categories ?? ['keelson']),
      },
      scope: kind.scope,
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          ...(kind.status === undefined ? {} : { subresources: { status: {} } }),
          additionalPrinterColumns: kind.columns.map(({ name, type, jsonPath, description, priority }) => ({
            name,
            type,
            jsonPath,
            ...(description === undefined ? {} : { description }),
            ...(priority === undefined ? {} : { priority }),
          })),
          schema: { openAPIV3Schema: kindSchema(kind) as unknown as JsonObject },
        },
      ],
    },
  };
}

/** Every CEL rule of a schema, with the path of the field that carries it. */
export function rulesOf(schema: StructuralSchema, path = ''): { path: string; rule: CelRule }[] {
  const own = (schema['x-kubernetes-validations'] ?? []).map((rule) => ({ path, rule }));
  const children = Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
    rulesOf(child, `${path}.${name}`),
  );
  const items = schema.items === undefined ? [] : rulesOf(schema.items, `${path}[]`);
  const values = isObject(schema.additionalProperties)
    ? rulesOf(schema.additionalProperties as StructuralSchema, `${path}{}`)
    : [];
  return [...own, ...children, ...items, ...values];
}
