/** The phases of a network release, in the order that a cluster must see them, and the gates between them. */

import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Gate } from '../../constructs/api/payload.ts';
import type { ChartObject } from './object.ts';
import { type Plane, planeOf } from './table.ts';

export interface NetworkPhase {
  readonly name: string;
  /** Folder of the phase: its number and name. */
  readonly dir: string;
  readonly objects: readonly ChartObject[];
  readonly gates: readonly Gate[];
}

const gate = (type: string, scope: string, softLimit: string): Gate => ({ type, scope, softLimit });

interface PhaseDefinition {
  readonly plane: Plane;
  readonly name: string;
  readonly number: string;
  readonly gates: (spec: InstallationSpec) => Gate[];
}

const definitions: readonly PhaseDefinition[] = [
  { plane: 'definitions', number: '10', name: 'definitions', gates: () => [gate('Established', 'definitions', '1m')] },
  { plane: 'access', number: '20', name: 'access', gates: () => [] },
  {
    plane: 'central',
    number: '30',
    name: 'central',
    gates: () => [
      gate('WorkloadsReady', 'central', '10m'),
      gate('OVNDBReady', 'central', '10m'),
      gate('NorthdReady', 'central', '10m'),
    ],
  },
  {
    plane: 'dataPlane',
    number: '40',
    name: 'data-plane',
    gates: () => [gate('WorkloadsReady', 'data-plane', '20m'), gate('DataPlaneReady', 'data-plane', '20m')],
  },
];

/** The network is there once packets arrive, and not before. */
const probePhase = (objects: readonly ChartObject[]): NetworkPhase => ({
  name: 'network-probe',
  dir: '50-network-probe',
  objects,
  gates: [gate('WorkloadsReady', 'network-probe', '10m'), gate('NetworkReady', 'network-probe', '10m')],
});

/** Phases that hold an object; a phase without any is left out together with its gates. */
export function networkPhases(
  objects: readonly ChartObject[],
  spec: InstallationSpec,
  extraKinds: readonly string[],
  probe: readonly ChartObject[] = [],
): NetworkPhase[] {
  const charted = definitions
    .map((definition) => ({
      name: definition.name,
      dir: `${definition.number}-${definition.name}`,
      objects: objects.filter((object) => planeOf(object, extraKinds) === definition.plane),
      gates: definition.gates(spec),
    }))
    .filter((phase) => phase.objects.length > 0);
  return probe.length === 0 ? charted : [...charted, probePhase(probe)];
}
