import type { z } from 'zod';
import { cluster } from './cluster.ts';
import { apiVersion } from './constants.ts';
import { kindSchema, type StructuralSchema, structuralSchema } from './crd.ts';
import { inventory } from './inventory.ts';
import { kinds } from './kinds/index.ts';
import { kindApiVersion } from './kinds/kind.ts';
import { lock } from './lock.ts';

/** Schemas of every document that people or Keelson write: our kinds, and the files of a cluster. */

export interface DocumentSchema {
  readonly apiVersion: string;
  readonly kind: string;
  readonly schema: StructuralSchema;
  /** Whether the API server serves it; the others are files only. */
  readonly served: boolean;
}

const files: readonly [string, z.ZodType][] = [
  ['Cluster', cluster],
  ['Inventory', inventory],
  ['Lock', lock],
];

export const documentSchemas: readonly DocumentSchema[] = [
  ...kinds.map((kind) => ({
    apiVersion: kindApiVersion(kind),
    kind: kind.kind,
    schema: kindSchema(kind),
    served: true,
  })),
  ...files.map(([kind, schema]) => ({ apiVersion, kind, schema: structuralSchema(schema), served: false })),
];

export const findDocumentSchema = (version: string, kind: string): DocumentSchema | undefined =>
  documentSchemas.find((document) => document.apiVersion === version && document.kind === kind);
