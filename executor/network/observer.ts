/**
 * Observes installations round after round, and keeps the last verdict of each. It writes nothing: gates and status read from
 * it. What it remembers between rounds goes with the process.
 */
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import { type AskWays, askByEitherWay } from '../observe/ask-ways.ts';
import type { DrainPace } from '../observe/drain-turn.ts';
import type { ClusterLook, NetworkNames, PayloadNode } from '../observe/expect.ts';
import type { PeerObservation } from '../observe/hcp.ts';
import { matrixOf } from '../observe/matrix.ts';
import type { AskedBefore } from '../observe/pull-pods.ts';
import { pinOf } from '../observe/retained.ts';
import { type RoundDeps, runRound } from '../observe/run-round.ts';
import type { RecordRead } from '../observe/topology-record.ts';
import { emptyMemory, freshnessLimitMs, judgeRound, type Memory, type Wanted } from '../observe/verdict.ts';
import { type DrainProvider, Drains } from './drains.ts';
import { enforcedIn, knowsEnforced } from './enforced.ts';
import type { Observations, Observed } from './evidence.ts';
import { readRecord } from './record.ts';
import { readInstallation } from './snapshot.ts';

/** How sidecars are asked; composed where keys, ports and ways are known. */
export interface EvidenceSource extends AskWays {
  /** Names of the sidecars' containers; without one of `drain` nobody is asked what a node would take along. */
  readonly containers: RoundDeps['containers'] & { readonly drain?: string };
  readonly networkNames?: NetworkNames;
  /** Looks at the other half of a pair; absent where this executor has no provider. */
  readonly peer?: (installation: KubeObject, signal: AbortSignal) => Promise<PeerObservation>;
  /** Other domains that know what hangs on a node. */
  readonly drain?: readonly DrainProvider[];
}

export interface ObserverOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Where records of topologies are. */
  readonly namespace: string;
  readonly source: EvidenceSource;
  readonly look: () => ClusterLook | undefined;
  /** How many nodes are asked at a time. */
  readonly atOnce: number;
  /** Pause between rounds, while something is not well, and while everything is. */
  readonly openEveryMs?: number;
  readonly settledEveryMs?: number;
  readonly drainPace?: Partial<DrainPace>;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

interface Known {
  readonly memory: Memory;
  readonly asked: AskedBefore;
  readonly observed: Observed | undefined;
  /** What was told last, and when. */
  readonly told: { readonly text: string; readonly tick: number } | undefined;
}

/**
 * OVN itself takes up to 20 seconds to see a connection to SB that carries nothing any more: what a node lost is told within 30.
 */
const defaultSettledMs = 8_000;

/** Between rounds, hints or not. */
const leastPauseMs = 1_000;

/** A verdict that says what the one before said is told so often, so that what it rests on does not look old. */
const tellAgainMs = 60_000;

export class Observer implements Observations {
  readonly #options: ObserverOptions;
  readonly #known = new Map<string, Known>();
  readonly #drains: Drains | undefined;
  #wake = new AbortController();
  /** How long the last turn over all installations took: none is observed anew sooner. */
  #turnMs = 0;

  constructor(options: ObserverOptions) {
    this.#options = options;
    const { drainPace, source } = options;
    const container = source.containers.drain;
    this.#drains =
      container === undefined
        ? undefined
        : new Drains({
            ...options,
            ask: (target, signal) => askByEitherWay(source, target, signal),
            container,
            ...(drainPace === undefined ? {} : { pace: drainPace }),
            ...(source.drain === undefined ? {} : { providers: source.drain }),
          });
  }

  of(installationUID: string): Observed | undefined {
    const observed = this.#known.get(installationUID)?.observed;
    const drains = this.#drains?.of(installationUID) ?? [];
    return observed === undefined || drains.length === 0 ? observed : { ...observed, drains };
  }

  hurry(_installationUID?: string): void {
    this.#wake.abort();
  }

  /** Something about a node changed. */
  hurryNodes(): void {
    this.hurry();
    this.#drains?.hurry();
  }

  /** Observes until the signal aborts. `told` hears of every round that ended. */
  async run(
    installations: () => readonly KubeObject[],
    told: (installation: KubeObject) => void,
    signal: AbortSignal,
  ): Promise<void> {
    await Promise.all([this.#rounds(installations, told, signal), this.#drains?.run(installations, signal)]);
  }

  async #rounds(
    installations: () => readonly KubeObject[],
    told: (installation: KubeObject) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, openEveryMs = 5_000, settledEveryMs = defaultSettledMs, log } = this.#options;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      const all = installations();
      const began = clock.monotonic();
      let settled = true;
      for (const installation of all) {
        try {
          settled = (await this.#observe(installation, signal)) && settled;
          if (this.#isNews(uidOf(installation))) told(installation);
        } catch (error) {
          if (signal.aborted) return;
          settled = false;
          log(
            'warn',
            `observation of ${installation.metadata.name ?? ''}: ${error instanceof Error ? error.message : String(error)}`,
          );
        }
      }
      this.#turnMs = clock.monotonic() - began;
      this.#forget(new Set(all.map(uidOf)));
      const pause = AbortSignal.any([signal, this.#wake.signal]);
      const from = clock.monotonic();
      await rest(clock, settled && all.length > 0 ? settledEveryMs : openEveryMs, pause);
      // However many hints come, sidecars and API server get their rest.
      await rest(clock, Math.min(leastPauseMs, openEveryMs) - (clock.monotonic() - from), signal);
    }
  }

  /** Whether the last verdict is worth a look at the whole installation. */
  #isNews(uid: string): boolean {
    const known = this.#known.get(uid);
    if (known?.observed === undefined) return true;
    const { conditions, toRecord, network } = known.observed.verdict;
    const text = JSON.stringify([conditions, toRecord !== undefined, network]);
    const tick = this.#options.clock.monotonic();
    if (known.told?.text === text && tick - known.told.tick < tellAgainMs) return false;
    this.#known.set(uid, { ...known, told: { text, tick } });
    return true;
  }

  #forget(kept: ReadonlySet<string>): void {
    for (const uid of this.#known.keys()) if (!kept.has(uid)) this.#known.delete(uid);
  }

  /** One round. Answers whether all is well. */
  async #observe(installation: KubeObject, signal: AbortSignal): Promise<boolean> {
    const { client, clock, namespace, source, look, atOnce, settledEveryMs = defaultSettledMs } = this.#options;
    const live = readInstallation(installation).installation?.spec;
    const seen = look();
    if (live === undefined || seen === undefined) return false;
    const spec = enforcedIn(installation, live);
    const uid = uidOf(installation);
    const nothing: Known = { memory: emptyMemory, asked: new Map(), observed: undefined, told: undefined };
    const { memory, asked: before, told } = this.#known.get(uid) ?? nothing;
    const pin = pinOf(installation.status);
    const wanted: Wanted = {
      spec,
      installation: {
        namespace: installation.metadata.namespace ?? '',
        name: installation.metadata.name ?? '',
        uid,
      },
      chartReplicas: spec.central.replicas,
      pin,
    };
    let last = seen;
    const { round, asked } = await runRound(
      { wanted, centralNodes: nodesOf(installation.status), networkNames: source.networkNames, memory, before },
      {
        clock,
        atOnce,
        ask: source.ask,
        ...(source.retry === undefined ? {} : { retry: source.retry }),
        containers: source.containers,
        // Watches that broke off meanwhile tell nothing new; what they told last still does.
        look: () => {
          last = look() ?? last;
          return last;
        },
        peer: (stop) => source.peer?.(lookedAt(installation, spec), stop) ?? Promise.resolve({ type: 'noProvider' }),
        record: (stop): Promise<RecordRead | undefined> =>
          pin === undefined ? Promise.resolve(undefined) : readRecord(client, namespace, pin.name, stop),
      },
      signal,
    );
    const judged = judgeRound(round, wanted, memory);
    // A record never changes: none is made of what a specification asks for that may not be the enforced one.
    const verdict = knowsEnforced(installation) ? judged : { ...judged, toRecord: undefined };
    const took = round.time.endedTick - round.time.startedTick;
    const limitMs = freshnessLimitMs(Math.max(took, this.#turnMs) + settledEveryMs);
    const observed: Observed = { verdict, limitMs, matrix: matrixOf(round) };
    this.#known.set(uid, { memory: verdict.memory, asked, observed, told });
    return verdict.conditions.every(({ type, status }) => status === (type === 'Degraded' ? 'False' : 'True'));
  }
}

/** The installation with the other side that is enforced, half of a pair or not, whatever its specification asks for now. */
function lookedAt(installation: KubeObject, { version, external, hcp }: InstallationSpec): KubeObject {
  const { external: _external, hcp: _hcp, ...spec } = installation.spec ?? {};
  return {
    ...installation,
    spec: {
      ...spec,
      version,
      ...(external === undefined ? {} : { external: { ...external } }),
      ...(hcp === undefined ? {} : { hcp: { ...hcp } }),
    },
  };
}

/** Nodes of OVN central as the status has them from the accepted payload. */
function nodesOf(status: JsonObject | undefined): PayloadNode[] {
  const nodes = Array.isArray(status?.nodes) ? status.nodes.filter(isObject) : [];
  return nodes.map(({ name, uid, addresses }) => ({
    name: String(name),
    uid: String(uid),
    addresses: Array.isArray(addresses) ? addresses.map(String) : [],
  }));
}
