/** A network with all of its probes on three nodes, watched, for a file that breaks it. */
import { systemClock } from '../../../constructs/lib/clock.ts';
import { pipelineBed } from '../suite/pipeline-bed.ts';
import { causes, type Ground, grounds, moveLeaders, placeOf } from './evidence-faults.ts';
import { judgeFault, judgeRepair } from './evidence-judge.ts';
import { type Fault, type FaultName, movesOn } from './evidence-matrix.ts';
import { Watch } from './evidence-watch.ts';
import { type Disk, diskAt } from './node-tools.ts';

export interface EvidenceBed extends Ground {
  readonly watch: Watch;
  /** Name of the node of the executor that leads. */
  leaderNode(): Promise<string>;
  /** Makes a fault, judges it, looks at what else there is to see, mends it, judges that. @throws Error with what was wrong. */
  play(fault: Fault & { readonly name: FaultName }, besides?: Besides): Promise<Played>;
  close(): Promise<void>;
}

/**
 * What else there is to see of a fault, beside conditions. It is called at rest, right before the fault is made, and answers
 * how to look while that lasts.
 */
export type Besides = (node: string) => Promise<() => Promise<void>>;

/** How long it took until a fault was told, and until all was well again; undefined where nothing moves. */
export interface Played {
  readonly node: string;
  readonly toldMs: number;
  readonly backMs: number | undefined;
}

/** What the contract allows a fault before it is told. */
const toldLimitMs = 30_000;
/** Between two rounds of an executor at its own pace, with what the round itself takes. */
const ownPaceMs = 10_000;
/** A container that starts anew is Ready once its readiness probe has passed, which is looked at every 15 seconds. */
const backLimitMs = 45_000;
/** Beyond which nothing is waited for, with three rounds of which each waits for a daemon that hangs. */
const patienceMs = 120_000;
const heldRounds = 3;
/** For everything to be well again: a pod whose probe failed waits for the next one, and the slowest have 15 seconds. */
const restLimitMs = 120_000;
const mostMoves = 8;

const databaseFolder = '/etc/origin/ovn';

/**
 * Starts the cluster; the network is not delivered yet.
 * @param observeEvery pause between rounds; undefined for the executor's own
 */
export async function evidenceBed(observeEvery: string | undefined): Promise<EvidenceBed> {
  const bed = await pipelineBed('evidence');
  const over = new AbortController();
  const watch = new Watch();
  const { cluster, look } = bed;
  if (observeEvery !== undefined)
    bed.edit('cluster.yaml', (text) =>
      text.replace('  executor:\n    #', `  executor:\n    testObserveInterval: ${observeEvery}\n    #`),
    );
  // There before anything writes to it: what is mounted over a folder later is not seen by who has the folder open.
  const disks = new Map<string, Disk>();
  for (const node of cluster.nodes) disks.set(node.name, await diskAt(node, databaseFolder));
  await bed.prepare();
  const watching = watch.run(look, cluster, over.signal);
  const leaderNode = async (): Promise<string> => look.nodeOf((await look.leader())?.pod ?? '');
  return {
    bed,
    disks,
    watch,
    leaderNode,
    async play(fault, besides = async () => async () => undefined) {
      const { name, follow = {}, touched = [], noticed } = fault;
      const limitMs = observeEvery === undefined && noticed !== undefined ? toldLimitMs + ownPaceMs : toldLimitMs;
      let before = await watch.rest(restLimitMs);
      let place = placeOf(fault, watch.report(), await leaderNode());
      // Leaders, the active northd and the executor may be on all nodes: then some of them have to come together.
      for (let n = 0; place === undefined && n < mostMoves; n += 1) {
        await moveLeaders({ bed, disks }, watch.report());
        before = await watch.rest(restLimitMs);
        place = placeOf(fault, watch.report(), await leaderNode());
      }
      if (place === undefined) throw new Error(`${name}: no node is fit for it`);
      const node = cluster.node(place);
      const prepare = grounds[name];
      if (prepare !== undefined) {
        await prepare({ bed, disks }, node);
        before = await watch.rest(restLimitMs);
      }
      const moves = movesOn(fault, node.name);
      const lookAt = await besides(node.name);
      const causedAt = systemClock.monotonic();
      const mend = await causes[name]({ bed, disks }, node);
      let toldMs: number;
      let mendedAt: number;
      try {
        toldMs = await watch.judged(
          `${name} on ${node.name}`,
          { before, doneAt: causedAt },
          (seen) => judgeFault(seen, moves, Object.keys(follow), { limitMs, rounds: heldRounds }),
          patienceMs,
        );
        await lookAt();
      } finally {
        mendedAt = systemClock.monotonic();
        await mend();
      }
      if (moves.length === 0) return { node: node.name, toldMs, backMs: undefined };
      const backMs = await watch.judged(
        `${name} on ${node.name}, mended`,
        { before, doneAt: mendedAt },
        (seen) => judgeRepair(seen, touched, { limitMs: backLimitMs, rounds: 1 }),
        patienceMs,
      );
      return { node: node.name, toldMs, backMs };
    },
    async close() {
      over.abort();
      await watching.catch(() => undefined);
      await bed.close();
    },
  };
}
