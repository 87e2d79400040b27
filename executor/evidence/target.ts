import { networkProbe, ports } from '../../constructs/api/constants.ts';
import type { PodIdentity } from '../../constructs/api/evidence/identity.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';

/** A probe that is to be asked, as the API server has its pod. */
export interface ProbeTarget<K extends EvidenceKind = EvidenceKind> extends PodIdentity {
  readonly kind: K;
  /** Name of the probe's container. */
  readonly container: string;
  /** Addresses of the pod; the first one is dialled. */
  readonly addresses: readonly string[];
  /** What it is told to look at; absent where it looks at what is beside it. */
  readonly question?: string;
}

/** Ports at which a probe of a kind may be: while pods are replaced, two of them run on one node. */
export const probePorts = {
  central: [ports.central, ports.centralSpare],
  chassis: [ports.chassis, ports.chassisSpare],
  drain: [ports.drain],
  network: [networkProbe.evidencePort],
} as const satisfies Partial<Record<EvidenceKind, readonly number[]>>;
