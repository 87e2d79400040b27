import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { Cluster } from '../types.ts';

/** Applies objects as admin. */
export async function apply(cluster: Cluster, ...items: readonly JsonObject[]): Promise<void> {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items] });
  await cluster.kubectl(['apply', '-f', '-'], { input: list });
}

/** A DaemonSet whose pods run wherever a kubelet runs, also without a pod network. */
export function daemonSet(name: string, spec: JsonObject): JsonObject {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace: 'default' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, ...spec } },
    },
  };
}

/** Runs one pod that does nothing on the host network of every node, and waits until all are there. */
export async function runIdlePods(cluster: Cluster): Promise<void> {
  const containers = [{ name: 'idle', image: cluster.registry.pauseImage }];
  await apply(cluster, daemonSet('idle', { hostNetwork: true, tolerations: [{ operator: 'Exists' }], containers }));
  await rollout(cluster, 'daemonset/idle');
}

export async function rollout(cluster: Cluster, what: string): Promise<void> {
  await cluster.kubectl(['rollout', 'status', what, '--timeout=60s'], { limitMs: 70_000 });
}
