import type { CorpusObject } from '../corpus.ts';
import type { Place } from '../place.ts';

/** What a program used: CPU seconds since the last question, and the most memory it ever had resident. */
export interface Usage {
  readonly cpuSeconds: number;
  readonly peakMiB: number;
}

/** One thing a contender is told to do. */
export interface Deed {
  /** Key of the object below /registry/ that tells how far it is; empty where the program itself tells. */
  readonly statusKey: string;
  /** Begins; what follows is on the clock. */
  begin(): Promise<void>;
  /** Whether the contender says that it is done, given its object as it is stored. @throws when it says that it failed. */
  done(object: unknown): boolean;
}

/** A contender at work in one place. */
export interface Worker {
  /** Everything for the first time. */
  cold(): Promise<Deed>;
  /** The same again, nothing changed. */
  again(): Promise<Deed>;
  /** Brings back values that a stranger changed; undefined where the contender does so unasked. */
  repair(): Promise<Deed | undefined>;
  /** Only these are wanted from now on; undefined where the contender removes nothing. */
  keep(objects: readonly CorpusObject[]): Promise<Deed | undefined>;
  usage(): Usage;
  close(): Promise<void>;
}

export interface Contender {
  readonly name: ContenderName;
  /** As tables and pictures call it. */
  readonly title: string;
  /** Starts it, up to the point where it waits for work. */
  open(place: Place, objects: readonly CorpusObject[]): Promise<Worker>;
}

export type ContenderName = 'keelson' | 'keelsonWithoutDryRun' | 'kubectl' | 'kustomizeController';
