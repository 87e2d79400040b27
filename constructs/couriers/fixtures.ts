import { conditionsFor, type OutcomeKind } from '../api/conditions.ts';
import { apiGroup, networkNamespace, systemNamespace } from '../api/constants.ts';
import type { Condition } from '../api/fields.ts';
import { type Kind, kindApiVersion } from '../api/kinds/kind.ts';
import type { JsonObject } from '../lib/json.ts';

/** What Flux (kstatus) makes of an object; `last` is what it made of it before. */
export type FluxReading = 'Current' | 'InProgress' | 'Failed';
export type ArgoReading = 'Healthy' | 'Progressing' | 'Degraded' | 'Suspended';

/** What both couriers show for each outcome, and for an object that nothing has looked at. */
export const courierReadings: Readonly<
  Record<OutcomeKind | 'unseen', { readonly flux: FluxReading | 'last'; readonly argo: ArgoReading }>
> = {
  unseen: { flux: 'InProgress', argo: 'Progressing' },
  applying: { flux: 'InProgress', argo: 'Progressing' },
  waiting: { flux: 'InProgress', argo: 'Progressing' },
  slow: { flux: 'InProgress', argo: 'Progressing' },
  retrying: { flux: 'InProgress', argo: 'Degraded' },
  terminal: { flux: 'Failed', argo: 'Degraded' },
  steady: { flux: 'Current', argo: 'Healthy' },
  unhealthy: { flux: 'InProgress', argo: 'Degraded' },
  driftFight: { flux: 'InProgress', argo: 'Degraded' },
  paused: { flux: 'last', argo: 'Suspended' },
  planOnly: { flux: 'InProgress', argo: 'Degraded' },
  gatesBypassed: { flux: 'InProgress', argo: 'Progressing' },
};

/** An object as it stands in the cluster, and what the couriers make of it. */
export interface CourierFixture {
  readonly name: string;
  readonly object: JsonObject;
  readonly flux: FluxReading;
  readonly argo: ArgoReading;
  /** What Argo CD shows beside it. */
  readonly message: string;
}

const generation = 4;
const now = Date.UTC(2026, 0, 2, 3, 4, 5);

/** Reason and message as the outcome has them; a pause is told by its reason as well. */
const said = (kind: OutcomeKind): { reason: string; message: string } =>
  kind === 'paused'
    ? { reason: 'Paused', message: 'paused by the spec' }
    : { reason: 'Applying', message: `what ${kind} has to say` };

const conditions = (kind: OutcomeKind, previous: readonly Condition[]): Condition[] =>
  conditionsFor({ outcome: { kind, ...said(kind) }, previous, generation, now });

/** An object of a kind in the middle of its life; the status is as given, and absent without one. */
export function courierObject(kind: Kind, status?: unknown, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: kindApiVersion(kind),
    kind: kind.kind,
    metadata: {
      name: 'main',
      ...(kind.scope === 'Namespaced'
        ? { namespace: kind.group === apiGroup ? systemNamespace : networkNamespace }
        : {}),
      generation,
    },
    spec,
    ...(status === undefined ? {} : { status: status as JsonObject }),
  };
}

/** One object for each outcome, by the function that every controller of ours reports with, and one before any outcome. */
export function courierFixtures(kind: Kind): CourierFixture[] {
  const outcomes = Object.keys(courierReadings).filter((name): name is OutcomeKind => name !== 'unseen');
  const fixtures = outcomes.flatMap((outcome) => afterOutcome(kind, outcome));
  return [
    {
      name: 'unseen',
      object: courierObject(kind, { observedGeneration: -1 }),
      flux: 'InProgress',
      argo: 'Progressing',
      message: 'nothing has looked at it yet',
    },
    ...fixtures,
  ];
}

/** Where the reading is that of before, it depends on what was before. */
function afterOutcome(kind: Kind, outcome: OutcomeKind): CourierFixture[] {
  const { flux, argo } = courierReadings[outcome];
  const fixture = (name: string, before: OutcomeKind | undefined, reading: FluxReading): CourierFixture => {
    const previous = before === undefined ? [] : conditions(before, []);
    const status = { observedGeneration: generation, conditions: conditions(outcome, previous) };
    return { name, object: courierObject(kind, status), flux: reading, argo, message: said(outcome).message };
  };
  if (flux !== 'last') return [fixture(outcome, undefined, flux), fixture(`${outcome}-again`, 'steady', flux)];
  return [
    fixture(outcome, undefined, 'InProgress'),
    fixture(`${outcome}-ready`, 'steady', 'Current'),
    fixture(`${outcome}-failed`, 'terminal', 'InProgress'),
  ];
}
