import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { mustRun } from './run.ts';
import type { NodeRecord } from './state.ts';

/** The label of nodes that carry the control plane's own workloads; all nodes of a cluster have it. */
const controlPlaneLabel = 'node-role.kubernetes.io/control-plane';

export interface KubectlAccess {
  readonly kubectl: string;
  readonly kubeconfig: string;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

function kubectl(access: KubectlAccess, args: readonly string[]): Promise<string> {
  return mustRun([access.kubectl, `--kubeconfig=${access.kubeconfig}`, ...args], { limitMs: 60_000 });
}

interface NodeObject {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[];
  };
}

async function waitForNodes(
  access: KubectlAccess,
  nodes: readonly NodeRecord[],
  what: string,
  good: (node: NodeObject) => boolean,
): Promise<void> {
  await waitFor({
    what,
    limitMs: 60_000,
    intervalMs: 250,
    clock: access.clock,
    ...(access.signal === undefined ? {} : { signal: access.signal }),
    probe: async (saw) => {
      const list = JSON.parse(await kubectl(access, ['get', 'nodes', '-o', 'json'])) as { items: NodeObject[] };
      const left = nodes.filter(({ name }) => !list.items.some((item) => item.metadata.name === name && good(item)));
      saw(`missing: ${left.map((node) => node.name).join(', ')}`);
      return left.length === 0 ? true : undefined;
    },
  });
}

/** Waits until every kubelet has registered its node, then gives the nodes their label and pod range. */
export async function registerNodes(access: KubectlAccess, nodes: readonly NodeRecord[]): Promise<void> {
  await waitForNodes(
    access,
    nodes,
    'the kubelets to register their nodes',
    (node) => readyCondition(node) !== undefined,
  );
  for (const node of nodes) {
    const patch = {
      metadata: { labels: { [controlPlaneLabel]: '' } },
      spec: { podCIDR: node.podCIDR, podCIDRs: [node.podCIDR] },
    };
    await kubectl(access, ['patch', 'node', node.name, '--type=merge', '-p', JSON.stringify(patch)]);
  }
}

function readyCondition(node: NodeObject) {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready');
}

/** Waits until every node is Ready, which takes a CNI configuration. */
export function waitForReady(access: KubectlAccess, nodes: readonly NodeRecord[]): Promise<void> {
  return waitForNodes(access, nodes, 'the nodes to be Ready', (node) => readyCondition(node)?.status === 'True');
}
