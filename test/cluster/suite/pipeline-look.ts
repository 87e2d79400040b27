import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  apiVersion,
  leaseNames,
  networkApiVersion,
  ports,
  systemNamespace,
} from '../../../constructs/api/constants.ts';
import { type PayloadIndex, payloadObjectId } from '../../../constructs/api/payload.ts';
import { indexPath } from '../../../constructs/api/tree.ts';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { getAt, isObject, type JsonObject, type JsonValue } from '../../../constructs/lib/json.ts';
import { waitFor } from '../../../constructs/lib/wait.ts';
import { createClient, type KubeClient } from '../../../executor/kube/client.ts';
import { kubeConfigCredentials } from '../../../executor/kube/credentials.ts';
import { createTransport } from '../../../executor/kube/transport.ts';
import { type KubeObject, type ObjectRef, uidOf } from '../../../executor/kube/types.ts';
import { allPids, identify, type ProcessId } from '../processes.ts';
import { mustRun } from '../run.ts';
import type { Cluster } from '../types.ts';

/** An object of a payload as it is live, as far as a comparison before and after needs it. */
export interface Seen {
  readonly uid: string;
  readonly resourceVersion: string;
  /** What the executor last wrote: time and fields of its own entry. */
  readonly applied: string;
  readonly created: number;
}

export interface ConditionView {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** An object of a payload: where it is, and in which phase. */
export interface PayloadRef extends ObjectRef {
  readonly id: string;
  readonly phase: string;
}

/** The holder of the executor's Lease. No two terms have the same holder. */
export interface Leader {
  readonly holder: string;
  readonly pod: string;
}

/** What a test sees of a cluster, as administrator. */
export interface Look {
  readonly client: KubeClient;
  /** The object, or undefined when it does not exist. @throws Error when it can not be read. */
  get(ref: ObjectRef): Promise<KubeObject | undefined>;
  release(name: string): Promise<KubeObject | undefined>;
  installation(): Promise<KubeObject | undefined>;
  nodes(): Promise<KubeObject[]>;
  /** Objects of the payload that was published last. */
  payload(release: string): PayloadRef[];
  /** Those of the references that exist, by object id. */
  snapshot(refs: readonly PayloadRef[]): Promise<Map<string, Seen>>;
  /** Digest of the payload that was published last. */
  digest(release: string): string;
  /** Who leads, once one does: the Lease's holder, which names pod and term. */
  leader(): Promise<Leader | undefined>;
  /** What the executor on a node says of itself: the text of its metrics, which only the node's loopback serves. */
  metrics(node: string): Promise<string>;
  /** The status page that the executor on a node serves, to the node's loopback as well. */
  page(node: string): Promise<string>;
  /** Name of the node that a pod of the executor is on. */
  nodeOf(pod: string): Promise<string>;
  /** The executor's processes on all nodes, by the name of their pod. */
  executors(): ReadonlyMap<string, ProcessId>;
  close(): Promise<void>;
}

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

/** A condition of an object's status. */
export function conditionOf(object: KubeObject | undefined, type: string): ConditionView | undefined {
  const conditions = object?.status?.conditions;
  const found = (Array.isArray(conditions) ? conditions : []).filter(isObject).find((each) => each.type === type);
  if (found === undefined) return undefined;
  const { status, reason, message, lastTransitionTime } = found;
  return {
    status: text(status),
    reason: text(reason),
    message: text(message),
    since: Date.parse(text(lastTransitionTime)),
  };
}

/** A value in an object, as text; the empty string when there is none. */
export function textAt(object: JsonObject | undefined, pointer: string): string {
  const value = object === undefined ? undefined : getAt(object, pointer);
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

/** A script for node that asks a URL and prints the answer. */
export const asking = (url: string): string =>
  `fetch('${url}', { signal: AbortSignal.timeout(3000) }).then((r) => r.text()).then((t) => process.stdout.write(t))`;

/** What a command answers, tried for as long as a way that was just made may need. */
export const answered = (argv: readonly string[]): Promise<string> =>
  until('an answer', 20_000, (saw) =>
    mustRun(argv).catch((error) => {
      saw(String(error));
      return undefined;
    }),
  );

/** Asks until there is an answer, four times a second. */
export function until<T>(
  what: string,
  limitMs: number,
  probe: (saw: (text: string) => void) => Promise<T | undefined>,
  intervalMs = 250,
): Promise<T> {
  return waitFor({ what, limitMs, intervalMs, clock: systemClock, probe });
}

function seen(object: KubeObject): Seen {
  const { resourceVersion = '', managedFields = [], creationTimestamp } = object.metadata;
  const own = managedFields.filter(({ manager, operation }) => manager === 'keelson' && operation === 'Apply');
  return {
    uid: uidOf(object),
    resourceVersion,
    applied: JSON.stringify(own),
    created: Date.parse(creationTimestamp ?? ''),
  };
}

function executorPod(pid: number, cgroup: string): string | undefined {
  try {
    const [program, script, verb, role] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    if (program !== '/bin/node' || script !== '/keelson' || verb !== 'executor') return undefined;
    if (role !== '--role=executor') return undefined;
    if (!readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(`/${cgroup}/`)) return undefined;
    return /(?:^|\0)POD_NAME=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'latin1'))?.[1];
  } catch {
    // It has ended in between.
    return undefined;
  }
}

/** Looks at a cluster whose rendered repository is at `rendered`. */
export function openLook(cluster: Cluster, rendered: string): Look {
  const credentials = kubeConfigCredentials({ clock: systemClock, file: cluster.kubeconfig });
  const transport = createTransport({ credentials });
  const client = createClient({ transport: transport.send, clock: systemClock, random: Math.random });
  const get = async (ref: ObjectRef): Promise<KubeObject | undefined> => {
    const outcome = await client.get(ref);
    if (outcome.type === 'found') return outcome.object;
    if (outcome.type === 'absent' || outcome.type === 'kindAbsent') return undefined;
    throw new Error(`${ref.kind} ${ref.name}: ${outcome.message}`);
  };
  const index = (release: string): PayloadIndex => {
    const file = `main:local/${indexPath(release)}`;
    return JSON.parse(execFileSync('git', ['-C', rendered, 'show', file], { encoding: 'utf8' })) as PayloadIndex;
  };
  const nodeOf = async (pod: string): Promise<string> =>
    textAt(await get({ apiVersion: 'v1', kind: 'Pod', namespace: systemNamespace, name: pod }), '/spec/nodeName');
  const onLoopback = async (node: string, path: string): Promise<string> =>
    answered([
      'nsenter',
      `--net=${cluster.node(node).netns}`,
      process.execPath,
      '-e',
      asking(`http://127.0.0.1:${path}`),
    ]);
  return {
    client,
    get,
    nodeOf,
    metrics: (node) => onLoopback(node, `${ports.metrics}/metrics`),
    page: (node) => onLoopback(node, `${ports.page}/`),
    release: (name) => get({ apiVersion, kind: 'Release', namespace: systemNamespace, name }),
    installation: () =>
      get({ apiVersion: networkApiVersion, kind: 'KubeOVNInstallation', namespace: 'kube-system', name: 'local' }),
    async nodes() {
      const listed = await client.list({ apiVersion: 'v1', kind: 'Node' });
      if (listed.type !== 'listed') throw new Error(listed.message);
      return [...listed.items];
    },
    digest: (release) => index(release).digest,
    payload(release) {
      return index(release).content.phases.flatMap((phase) =>
        phase.objects.map((object) => ({
          id: payloadObjectId(object),
          phase: phase.name,
          apiVersion: object.apiVersion,
          kind: object.kind,
          name: object.name,
          ...(object.namespace === undefined ? {} : { namespace: object.namespace }),
        })),
      );
    },
    async snapshot(refs) {
      const found = await Promise.all(refs.map(async (ref) => [ref.id, await get(ref)] as const));
      return new Map(found.flatMap(([id, object]) => (object === undefined ? [] : [[id, seen(object)] as const])));
    },
    async leader() {
      const lease = await get({
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        namespace: systemNamespace,
        name: leaseNames.role('executor'),
      });
      const holder = textAt(lease, '/spec/holderIdentity');
      return holder === '' ? undefined : { holder, pod: holder.split('_')[0] ?? '' };
    },
    executors() {
      const { cgroup } = cluster.state();
      const found = allPids().flatMap((pid) => {
        const pod = executorPod(pid, cgroup);
        const id = identify(pid);
        return pod === undefined || id === undefined ? [] : [[pod, id] as const];
      });
      return new Map(found);
    },
    close: () => transport.close(),
  };
}

/** Ids of objects that another process than before wrote, or that are not there any more. */
export function changed(earlier: ReadonlyMap<string, Seen>, now: ReadonlyMap<string, Seen>): string[] {
  // Controllers write the status of their workloads whenever a pod changes; what counts there is what was asked for.
  const live = (id: string): boolean => /^apps\//.test(id);
  return [...earlier].flatMap(([id, was]) => {
    const is = now.get(id);
    const same =
      is?.uid === was.uid && is.applied === was.applied && (live(id) || is.resourceVersion === was.resourceVersion);
    return same ? [] : [id];
  });
}

/** Names of the nodes that are Ready. */
export const readyNodes = async (look: Look): Promise<string[]> =>
  (await look.nodes())
    .filter((node) => conditionOf(node, 'Ready')?.status === 'True')
    .map((node) => node.metadata.name ?? '');

/** Requests of an executor so far, by method. */
export async function requestsOf(look: Look, pod: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const told = await look.metrics(await look.nodeOf(pod));
  for (const [, method = '', count] of told.matchAll(/^keelson_api_requests_total\{method="(\w+)",.*\} (\d+)$/gm))
    counts[method] = (counts[method] ?? 0) + Number(count);
  return counts;
}

/** A ConfigMap of the demo as its file has it. */
export const configMap = (name: string, words: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: demo\ndata:\n  text: ${words}\n`;

/** Jobs that look at nodes before a first install, as they are now. */
export const preflightJobs = async (look: Look): Promise<readonly unknown[]> => {
  const listed = await look.client.list({ apiVersion: 'batch/v1', kind: 'Job', namespace: 'kube-system' });
  return listed.type === 'listed' ? listed.items : [listed];
};
