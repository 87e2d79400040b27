/**
 * Asks nodes what would be lost by taking them away, turn after turn, beside the rounds of observation and without holding
 * them up. It writes nothing, and nothing is decided by it: people read it. A turn asks the API server once for volumes and
 * once for the pods of each cordoned node, and nothing at all while none is cordoned.
 */
import { type Clock, rest } from '../../constructs/lib/clock.ts';
import { cut } from '../../constructs/lib/cut.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import type { Ask } from '../observe/ask-ways.ts';
import { type DrainRow, type DrainVerdict, judgeDrain, type LoadRead } from '../observe/drain.ts';
import { nodeLoad, slimPod } from '../observe/drain-load.ts';
import { chooseDrains, type DrainPace, defaultDrainPace, drainLimitMs } from '../observe/drain-turn.ts';
import { type ClusterLook, expectChassis } from '../observe/expect.ts';
import type { Finding } from '../observe/finding.ts';
import { pullAll } from '../observe/pull-all.ts';
import type { ChassisTarget, NodeFacts, Outcome } from '../observe/round.ts';
import { targetOf } from '../observe/run-round.ts';

/**
 * Somebody else who knows what hangs on a node: another domain whose data or addresses lie there. What it finds `broken` blocks
 * a node, what it can not tell it finds `open`, in words of the table of reasons. It answers within a limit of its own and
 * rejects only on abort; it is asked with the node's sidecar, at the pace of that.
 */
export interface DrainProvider {
  readonly look: (node: NodeFacts, signal: AbortSignal) => Promise<readonly Finding[]>;
}

export interface DrainOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly ask: Ask;
  /** Name of the sidecars' container. */
  readonly container: string;
  readonly look: () => ClusterLook | undefined;
  /** How many nodes are asked at a time. */
  readonly atOnce: number;
  readonly pace?: Partial<DrainPace>;
  readonly providers?: readonly DrainProvider[];
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

type Rows = ReadonlyMap<string, DrainRow>;

/** Between turns, hints or not. */
const leastPauseMs = 1_000;

export class Drains {
  readonly #options: DrainOptions;
  readonly #pace: DrainPace;
  readonly #rows = new Map<string, Rows>();
  #wake = new AbortController();

  constructor(options: DrainOptions) {
    this.#options = options;
    this.#pace = { ...defaultDrainPace, ...options.pace };
  }

  /** What is told of the nodes of an installation, by name of the node. */
  of(installationUID: string): readonly DrainRow[] {
    return [...(this.#rows.get(installationUID)?.values() ?? [])];
  }

  /** Asks for a turn now. It shortens a wait; it decides nothing. */
  hurry(): void {
    this.#wake.abort();
  }

  /** Looks until the signal aborts. */
  async run(installations: () => readonly KubeObject[], signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      const all = installations();
      for (const installation of all) {
        try {
          await this.#turn(uidOf(installation), signal);
        } catch (error) {
          if (signal.aborted) return;
          log('warn', `nodes could not be looked at: ${error instanceof Error ? error.message : String(error)}`);
        }
      }
      const kept = new Set(all.map(uidOf));
      for (const uid of this.#rows.keys()) if (!kept.has(uid)) this.#rows.delete(uid);
      const from = clock.monotonic();
      await rest(clock, this.#pace.everyMs, AbortSignal.any([signal, this.#wake.signal]));
      await rest(clock, Math.min(leastPauseMs, this.#pace.everyMs) - (clock.monotonic() - from), signal);
    }
  }

  async #turn(uid: string, signal: AbortSignal): Promise<void> {
    const { clock, look, atOnce } = this.#options;
    const seen = look();
    if (seen === undefined) return;
    const targets = new Map(expectChassis(seen, uid).targets.map((target) => [target.node, target]));
    const before = this.#rows.get(uid) ?? new Map();
    const candidates = [...targets.values()].map(({ node, live }) => {
      const last = before.get(node);
      const cordoned = isCordoned(live);
      // What was told of a node that has been cordoned since, or is no more, is told no longer than needed.
      if (last === undefined || last.cordoned !== cordoned) return { node, cordoned };
      return { node, cordoned, askedTick: last.seenTick, open: isOpen(last.verdict) };
    });
    const began = clock.monotonic();
    const chosen = chooseDrains(candidates, this.#pace, began);
    const rows = new Map<string, Omit<DrainRow, 'limitMs'>>();
    const volumes = chosen.some((node) => isCordoned(targets.get(node)?.live)) ? this.#volumes(signal) : undefined;
    await pullAll(
      chosen.map((id) => ({ id, changed: false, healthy: true })),
      atOnce,
      async (node) => {
        const target = targets.get(node);
        if (target !== undefined) rows.set(node, await this.#node(uid, target, volumes, signal));
      },
      signal,
    );
    const took = clock.monotonic() - began;
    const cordoned = new Map(candidates.map((one) => [one.node, one.cordoned]));
    const limitOf = (node: string): number => {
      const mine = cordoned.get(node) === true;
      return drainLimitMs(mine, candidates.filter((one) => one.cordoned === mine).length, this.#pace, took);
    };
    const next = [...targets.keys()].flatMap((node): DrainRow[] => {
      const row = rows.get(node);
      return row === undefined ? (before.get(node) ?? []) : [{ ...row, limitMs: limitOf(node) }];
    });
    const order = new Intl.Collator('en', { numeric: true });
    this.#rows.set(uid, new Map(next.sort((a, b) => order.compare(a.node, b.node)).map((row) => [row.node, row])));
  }

  /** One look at one node. */
  async #node(
    uid: string,
    target: ChassisTarget,
    volumes: Promise<Volumes> | undefined,
    signal: AbortSignal,
  ): Promise<Omit<DrainRow, 'limitMs'>> {
    const { clock, look, providers = [] } = this.#options;
    const { node, live } = target;
    const seen = { seenAt: clock.now(), seenTick: clock.monotonic() };
    const [host, load, ...others] = await Promise.all([
      this.#host(target, signal),
      volumes === undefined || !isCordoned(live) ? undefined : this.#load(node, volumes, signal),
      ...(live === undefined ? [] : providers.map((provider) => provider.look(live, signal))),
    ]);
    const after = look();
    const now = after === undefined ? target : expectChassis(after, uid).targets.find((one) => one.node === node);
    const moved = now?.pod.uid !== target.pod.uid || now.live?.uid !== live?.uid;
    const verdict = judgeDrain({
      node,
      live: now?.live,
      host: moved ? { type: 'IdentityChanged', message: 'its pod or its node was replaced' } : host,
      load,
      others: others.flat(),
    });
    return { node, cordoned: isCordoned(now?.live), verdict, ...seen };
  }

  /** The sidecar's answer. A payload of an earlier Keelson has none, and then nobody is dialled. */
  async #host({ pod }: ChassisTarget, signal: AbortSignal): Promise<Outcome<'drain'>> {
    const { ask, container } = this.#options;
    if (!pod.containers.some(({ name }) => name === container))
      return { type: 'Unreachable', message: `pod ${pod.name} has no container ${container}` };
    return ask(targetOf('drain', pod, container), signal);
  }

  /** It is awaited by many, or by nobody: an abort is no rejection of its own. */
  async #volumes(signal: AbortSignal): Promise<Volumes> {
    const kind = { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment' };
    try {
      const listed = await this.#options.client.list(kind, { signal });
      return listed.type === 'listed' ? { type: 'read', all: listed.items } : unread(listed);
    } catch (error) {
      return unread({ message: error instanceof Error ? error.message : String(error) });
    }
  }

  async #load(node: string, attached: Promise<Volumes>, signal: AbortSignal): Promise<LoadRead> {
    const selection = { apiVersion: 'v1', kind: 'Pod', fieldSelector: `spec.nodeName=${node}` };
    const pods = await this.#options.client.list(selection, { signal, transform: slimPod });
    const volumes = await attached;
    if (pods.type !== 'listed') return unread(pods);
    return volumes.type === 'read'
      ? { type: 'read', load: nodeLoad(node, pods.items, volumes.all) }
      : { type: 'unread', message: volumes.message };
  }
}

type Volumes =
  | { readonly type: 'read'; readonly all: readonly KubeObject[] }
  | { readonly type: 'unread'; readonly message: string };

const unread = ({ message }: { readonly message: string }): { type: 'unread'; message: string } => ({
  type: 'unread',
  message: cut(message, 256),
});

const isCordoned = (live: NodeFacts | undefined): boolean => live?.unschedulable === true;

const isOpen = (verdict: DrainVerdict): boolean => verdict.state !== 'drained' && verdict.unknown.length > 0;
