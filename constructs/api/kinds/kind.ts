import type { z } from 'zod';
import type { CelRule } from '../cel.ts';

/** A kind that we define: everything its CRD, its reference page and its validation are made from. */

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  /** Above 0 the column shows in wide output only. */
  readonly priority?: number;
}

export interface ConditionType {
  readonly type: string;
  /** What True means. */
  readonly meaning: string;
}

export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly description: string;
  readonly spec: z.ZodType;
  /** Absent: the kind has none. Those of kinds that report an outcome carry the default `{observedGeneration: -1}`. */
  readonly status?: z.ZodType;
  /** Rules over the whole object. */
  readonly rules: readonly CelRule[];
  readonly columns: readonly PrinterColumn[];
  readonly conditionTypes: readonly ConditionType[];
  /** Absent: `keelson`. */
  readonly categories?: readonly string[];
  readonly facts?: KindFacts;
}

/** What no schema tells, for the reference. */
export interface KindFacts {
  readonly annotations?: readonly (readonly [name: string, meaning: string])[];
  readonly finalizers?: readonly (readonly [name: string, meaning: string])[];
  readonly phases?: readonly (readonly [name: string, meaning: string])[];
  /** Reasons of the Events about objects of the kind. */
  readonly events?: readonly string[];
}

export const kindApiVersion = (kind: Kind): string => `${kind.group}/${kind.version}`;
export const crdName = (kind: Kind): string => `${kind.plural}.${kind.group}`;

/** Conditions that every kind reports. */
export const commonConditions: readonly ConditionType[] = [
  {
    type: 'Available',
    meaning: 'a payload or spec was carried out once in full; it is not withdrawn for later trouble',
  },
  { type: 'Progressing', meaning: 'work is under way; the message names how far it is and what it waits for' },
  { type: 'Failing', meaning: 'something went wrong; Unknown means slower than the soft limit' },
  { type: 'Ready', meaning: 'everything was looked at and found good; Unknown while work or evidence is outstanding' },
  { type: 'Reconciling', meaning: 'the controller is working; absent otherwise' },
  { type: 'Stalled', meaning: 'no retry can help before the spec changes; absent otherwise' },
];

/** Whether objects of a kind say by {@link commonConditions} how they are. */
export const reportsOutcome = (kind: Kind): boolean => kind.conditionTypes.some(({ type }) => type === 'Ready');

export const readyColumns: readonly PrinterColumn[] = [
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
];

export const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

export const messageColumn: PrinterColumn = {
  name: 'Message',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].message',
  priority: 1,
};
