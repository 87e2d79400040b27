import { join } from 'node:path';
import type { ToolName } from '../tools/catalog.ts';
import { freePort } from '../tools/ports.ts';
import type { AdminClient } from './client.ts';

/** The rest of a control plane; `kwok` plays the kubelets: it makes fake nodes and the pods on them ready. */
export type Extra = 'controllers' | 'scheduler' | 'kwok';

export const extraTools = {
  controllers: 'kube-controller-manager',
  scheduler: 'kube-scheduler',
  kwok: 'kwok',
} as const satisfies Record<Extra, ToolName>;

interface ExtraInput {
  readonly kubeconfig: string;
  readonly caFile: string;
  readonly directory: string;
  readonly privateKey: string;
}

/** Name and arguments of one extra program. */
export async function startExtra(extra: Extra, input: ExtraInput): Promise<[ToolName, string[]]> {
  const serving = async (): Promise<string[]> => [
    '--bind-address=127.0.0.1',
    `--secure-port=${await freePort()}`,
    `--cert-dir=${join(input.directory, `${extra}-certs`)}`,
    `--kubeconfig=${input.kubeconfig}`,
    `--authentication-kubeconfig=${input.kubeconfig}`,
    `--authorization-kubeconfig=${input.kubeconfig}`,
    '--leader-elect=false',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ];
  switch (extra) {
    case 'controllers':
      return [
        extraTools[extra],
        [
          ...(await serving()),
          `--service-account-private-key-file=${input.privateKey}`,
          `--root-ca-file=${input.caFile}`,
          '--use-service-account-credentials=true',
        ],
      ];
    case 'scheduler':
      return [extraTools[extra], await serving()];
    case 'kwok':
      return [
        extraTools[extra],
        [
          `--kubeconfig=${input.kubeconfig}`,
          '--manage-all-nodes=true',
          '--cidr=10.244.0.1/16',
          '--node-lease-duration-seconds=40',
        ],
      ];
  }
}

export interface FakeNode {
  readonly name: string;
  readonly address: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Creates nodes that kwok keeps ready. */
export async function createNodes(admin: AdminClient, nodes: readonly FakeNode[]): Promise<void> {
  for (const node of nodes) {
    const capacity = { cpu: '16', memory: '64Gi', pods: '200', 'ephemeral-storage': '100Gi' };
    await admin.expect('POST', '/api/v1/nodes', {
      body: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name: node.name,
          labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': node.name, ...node.labels },
          annotations: { 'kwok.x-k8s.io/node': 'fake' },
        },
        status: {
          capacity,
          allocatable: capacity,
          addresses: [
            { type: 'InternalIP', address: node.address },
            { type: 'Hostname', address: node.name },
          ],
        },
      },
    });
  }
}
