/**
 * Whether the pods of a network are at rest. A kubelet calls a container not ready, or ends it, only after several failures in a
 * row: what a fault has begun may come out when it is long mended, and would look like a part of the next one.
 */
import { Agent, request } from 'undici';
import { rest, systemClock } from '../../../constructs/lib/clock.ts';
import { objectOf, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import { conditionOf, type Look } from '../suite/pipeline-look.ts';
import type { Cluster } from '../types.ts';
import { containerOf, type ProbeCounts, probeCounts, stillFailing } from './evidence-probes.ts';

const everyMs = 1_000;
const askMs = 3_000;
/** Port on which kubelets serve. */
const kubeletPort = 10_250;

/** A look at all pods, and when it began. */
interface Looked {
  readonly from: number;
  readonly unready: readonly string[];
  readonly failing: readonly string[];
}

/** Jobs end; whatever else is there has to be ready. */
function isUnready(pod: KubeObject): boolean {
  if (pod.status?.phase === 'Succeeded') return false;
  return pod.metadata.deletionTimestamp !== undefined || conditionOf(pod, 'Ready')?.status !== 'True';
}

/** How often containers were started anew, as probes name them. */
const restartsOf = (pods: readonly KubeObject[]): Map<string, number> =>
  new Map(
    pods.flatMap(({ metadata, status }) =>
      objectsOf(status?.containerStatuses).map(({ name, restartCount }) => [
        `${metadata.name}/${name} ${metadata.uid}`,
        Number(restartCount),
      ]),
    ),
  );

/** A container that was started anew, and how it had ended. */
export interface Ended {
  /** When it was seen. */
  readonly at: number;
  readonly text: string;
}

const lastLines = 5;

/** Containers that were started anew since a look that knew them, with the last that they had said. */
async function endedSince(
  pods: readonly KubeObject[],
  before: ReadonlyMap<string, number>,
  at: number,
  kubectl: Cluster['kubectl'],
): Promise<Ended[]> {
  const anew = pods.flatMap(({ metadata, status, spec }) =>
    objectsOf(status?.containerStatuses).flatMap(({ name, restartCount, lastState }) => {
      const known = before.get(`${metadata.name}/${name} ${metadata.uid}`);
      if (known === undefined || known === Number(restartCount)) return [];
      const { exitCode } = objectOf(objectOf(lastState).terminated);
      return [{ pod: metadata.name ?? '', container: String(name), node: spec?.nodeName, exitCode }];
    }),
  );
  return Promise.all(
    anew.map(async ({ pod, container, node, exitCode }) => {
      const said = await kubectl([
        ...['-n', 'kube-system', 'logs', '--previous', `--tail=${lastLines}`, pod, '-c', container],
      ]).catch((error: unknown) => String(error));
      return { at, text: `${pod}/${container} on ${node} ended with ${exitCode} and was started anew: ${said}` };
    }),
  );
}

export class PodWatch {
  readonly #ended: Ended[] = [];
  readonly #failing = new Map<string, ReadonlySet<string>>();
  #restarts: ReadonlyMap<string, number> = new Map();
  readonly #counts = new Map<string, ProbeCounts>();
  #looked: Looked | undefined;
  #trouble = '';

  /** Watches until the signal aborts. */
  async run(look: Look, cluster: Cluster, signal: AbortSignal): Promise<void> {
    // Certificates of kubelets are their own.
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
    try {
      while (!signal.aborted) {
        try {
          this.#looked = await this.#look(look, cluster, dispatcher, signal);
        } catch (error) {
          this.#trouble = error instanceof Error ? error.message : String(error);
        }
        await rest(systemClock, everyMs, signal);
      }
    } finally {
      await dispatcher.destroy();
    }
  }

  async #look(look: Look, cluster: Cluster, dispatcher: Agent, signal: AbortSignal): Promise<Looked> {
    const from = systemClock.monotonic();
    const pods = look.client.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' }, { signal });
    const answers = cluster.nodes.map(async ({ name, ip }) => {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(askMs)]);
      const url = `https://${ip}:${kubeletPort}/metrics/probes`;
      const { statusCode, body } = await request(url, { dispatcher, signal: limit });
      const text = await body.text();
      if (statusCode !== 200) throw new Error(`the kubelet of ${name} answers ${statusCode}`);
      return [name, probeCounts(text)] as const;
    });
    const [listed, told] = await Promise.all([pods, Promise.all(answers)]);
    if (listed.type !== 'listed') throw new Error(listed.message);
    const restarts = restartsOf(listed.items);
    // What failed was another container, and the new one may not be probed for minutes.
    const isAnew = (container: string): boolean => restarts.get(container) !== this.#restarts.get(container);
    for (const [node, counts] of told) {
      const known = [...(this.#failing.get(node) ?? [])].filter((probe) => !isAnew(containerOf(probe)));
      this.#failing.set(node, stillFailing(new Set(known), this.#counts.get(node), counts));
      this.#counts.set(node, counts);
    }
    this.#ended.push(...(await endedSince(listed.items, this.#restarts, from, (argv) => cluster.kubectl(argv))));
    this.#restarts = restarts;
    return {
      from,
      unready: listed.items.filter(isUnready).map(({ metadata }) => metadata.name ?? ''),
      failing: [...this.#failing.values()].flatMap((each) => [...each]),
    };
  }

  /** Containers that were started anew since a moment. */
  ended(since: number): Ended[] {
    return this.#ended.filter(({ at }) => at >= since);
  }

  /** Why conditions may still move because of pods, by a look that began after a moment; undefined when nothing is left. */
  unrest(after: number): string | undefined {
    const looked = this.#looked;
    if (looked === undefined || looked.from < after) return `pods are not looked at yet ${this.#trouble}`.trimEnd();
    const { unready, failing } = looked;
    if (unready.length > 0) return `not ready: ${unready.join(', ')}`;
    return failing.length > 0 ? `probes that failed last: ${failing.join(', ')}` : undefined;
  }
}
