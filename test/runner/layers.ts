import { fluxTools } from '../cluster/flux/programs.ts';
import { clusterPackages, clusterTools } from '../cluster/programs.ts';
import type { DefinitionsName, ToolName } from '../tools/catalog.ts';

export type LayerName = 'pure' | 'api' | 'ovn' | 'cluster';

/** One kind of test: where its files are, what they need, how long all of them may take. */
export interface Layer {
  readonly name: LayerName;
  /** Folder of the test files, from the top. */
  readonly folder: string;
  /** How many files run at once by default. */
  readonly jobs: number;
  /** Milliseconds for the layer's files together, without getting tools and packages. */
  readonly budgetMs: number;
  readonly tools: readonly ToolName[];
  /** CustomResourceDefinitions of other projects. */
  readonly definitions: readonly DefinitionsName[];
  readonly packages: readonly string[];
  /** True when the files share one API server that the runner starts. */
  readonly sharedServer: boolean;
}

const minute = 60_000;

/** Milliseconds for building tools and installing packages, which runs beside the first layers. */
export const preparationBudgetMs = 12 * minute;

/** With the preparation these budgets stay under the 45 minutes that a cold run may take. */
export const layers: readonly Layer[] = [
  {
    name: 'pure',
    folder: 'test/pure',
    jobs: 2,
    budgetMs: 3 * minute,
    tools: [],
    definitions: [],
    packages: [],
    sharedServer: false,
  },
  {
    name: 'api',
    folder: 'test/api',
    jobs: 2,
    budgetMs: 11 * minute,
    tools: [
      'etcd',
      'kube-apiserver',
      'kubectl',
      'crane',
      'helm',
      'kube-controller-manager',
      'kube-scheduler',
      'kwok',
      'glua',
    ],
    definitions: ['source-controller', 'kustomize-controller', 'argo-cd'],
    packages: [],
    sharedServer: true,
  },
  {
    name: 'ovn',
    folder: 'test/ovn',
    jobs: 1,
    budgetMs: 3 * minute,
    tools: ['etcd', 'kube-apiserver', 'kubectl'],
    definitions: [],
    packages: ['openvswitch-switch', 'ovn-central', 'ovn-host', 'iproute2', 'ethtool'],
    sharedServer: false,
  },
  {
    name: 'cluster',
    folder: 'test/cluster/suite',
    jobs: 1,
    budgetMs: 15 * minute,
    tools: [...clusterTools, 'crane', 'helm', ...fluxTools],
    definitions: fluxTools,
    packages: clusterPackages,
    sharedServer: false,
  },
];
