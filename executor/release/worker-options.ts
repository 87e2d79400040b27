/** What the worker of a Release is given. */
import type { BackoffPolicy } from '../../constructs/lib/backoff.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import type { DriftOptions } from '../apply/drift/keeper.ts';
import type { DriftEvent } from '../apply/drift/mend.ts';
import type { EngineOptions, Moved } from '../apply/engine.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ReflectorProblem } from '../kube/reflector.ts';
import type { KubeObject } from '../kube/types.ts';
import type { RetainedStore } from '../source/retained.ts';
import type { PayloadSources } from '../source/source.ts';
import type { SealedDomain } from './domain.ts';
import type { WorkerRecord } from './record.ts';

export interface WorkerOptions {
  /** How often a payload that is in place is looked at. */
  readonly reconcileMs: number;
  readonly backoff: BackoffPolicy;
  /** How long a write that was cut off may still take effect: longer than the API server works on any request. */
  readonly doubtMs: number;
  /** How many payloads are kept. */
  readonly retain: number;
  readonly allowUnsigned: boolean;
  /** Plans and writes nothing but the plan. */
  readonly planOnly: boolean;
}

export interface WorkerDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Name of the Release, and its namespace. */
  readonly release: string;
  readonly namespace: string;
  readonly source: PayloadSources;
  readonly retained: RetainedStore;
  readonly domains: readonly SealedDomain[];
  readonly options: WorkerOptions;
  readonly engine: EngineOptions;
  readonly drift: DriftOptions;
  /** Called before every write. @throws when this process may not write any more. */
  readonly check: () => void;
  readonly releaseOf: (name: string) => KubeObject | undefined;
  /** Told after every change of the record. */
  readonly changed: (record: WorkerRecord) => void;
  /** Stores what is told of the record now, if it can. Never rejects. */
  readonly told?: () => Promise<unknown>;
  readonly onDrift: (event: DriftEvent) => void;
  readonly onMoved: (moved: Moved) => void;
  readonly onProblem: (problem: ReflectorProblem) => void;
}
