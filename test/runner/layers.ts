import { fluxTools } from '../cluster/flux/programs.ts';
import { clusterPackages, clusterTools } from '../cluster/programs.ts';
import type { DefinitionsName, ToolName } from '../tools/catalog.ts';

export type LayerName = 'pure' | 'browser' | 'api' | 'ovn' | 'cluster' | 'faults';

/** One kind of test: where its files are, what they need, how long all of them may take. */
export interface Layer {
  readonly name: LayerName;
  /** Folder of the test files, from the top. */
  readonly folder: string;
  /** How many files run at once by default. */
  readonly jobs: number;
  /**
   * Milliseconds for the layer's files together, without getting tools and packages. A layer may also use what those before it
   * did not.
   */
  readonly budgetMs: number;
  /** Milliseconds from the start of the run until its tools and packages must be there; got beside the layers before. */
  readonly readyByMs: number;
  readonly tools: readonly ToolName[];
  /** CustomResourceDefinitions of other projects. */
  readonly definitions: readonly DefinitionsName[];
  readonly packages: readonly string[];
  /** True when the files share one API server that the runner starts. */
  readonly sharedServer: boolean;
  /** True for a layer that runs when it is named, and is no part of `npm test` by itself. */
  readonly named: boolean;
}

const minute = 60_000;

type Times = Pick<Layer, 'budgetMs' | 'readyByMs'>;

/**
 * Milliseconds from the start of a run after which each of these layers has ended at the latest: it begins when the one before
 * it has ended and its own preparation is over, whichever is later.
 */
export function latestEnds(all: readonly Times[]): number[] {
  let end = 0;
  return all.map(({ budgetMs, readyByMs }) => {
    end = Math.max(end, readyByMs) + budgetMs;
    return end;
  });
}

/**
 * Milliseconds that a layer may take which begins `elapsedMs` after the start of the run: its budget, and what those before it
 * left of theirs as far as no layer ends later than its latest end. Tools that came late are nothing that somebody saved.
 */
export const allowance = (budgetMs: number, savedMs: number, latestEndMs: number, elapsedMs: number): number =>
  Math.min(budgetMs + savedMs, Math.max(budgetMs, latestEndMs - elapsedMs));

/**
 * By what was seen on two cores, with room for a busy machine: tools for the API server take eight minutes cold, the two
 * controllers of Flux seven more, which is why nothing but the last layer needs them. The layers before it may use the time
 * that its tools take.
 */
export const layers: readonly Layer[] = [
  {
    name: 'pure',
    folder: 'test/pure',
    jobs: 2,
    budgetMs: 6 * minute,
    readyByMs: 1 * minute,
    tools: [],
    definitions: [],
    packages: [],
    sharedServer: false,
    named: false,
  },
  {
    // Browser and promtool are 150 MB of packages, two minutes; the layer is over before the next one's tools are there.
    name: 'browser',
    folder: 'test/browser/suite',
    jobs: 1,
    budgetMs: 0.5 * minute,
    readyByMs: 5 * minute,
    tools: [],
    definitions: [],
    packages: ['chromium', 'prometheus'],
    sharedServer: false,
    named: false,
  },
  {
    name: 'api',
    folder: 'test/api',
    jobs: 2,
    budgetMs: 17 * minute,
    readyByMs: 11 * minute,
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
      // After kwok, with which it shares most of what is compiled.
      'metallb-controller',
    ],
    definitions: ['source-controller', 'kustomize-controller', 'argo-cd', 'metallb'],
    packages: [],
    sharedServer: true,
    named: false,
  },
  {
    name: 'ovn',
    folder: 'test/ovn',
    jobs: 1,
    budgetMs: 2.3 * minute,
    readyByMs: 14 * minute,
    tools: ['etcd', 'kube-apiserver', 'kubectl'],
    definitions: [],
    packages: ['openvswitch-switch', 'ovn-central', 'ovn-host', 'iproute2', 'iptables', 'ethtool'],
    sharedServer: false,
    named: false,
  },
  {
    name: 'cluster',
    folder: 'test/cluster/suite',
    jobs: 1,
    budgetMs: 14.6 * minute,
    readyByMs: 28 * minute,
    tools: [...clusterTools, 'crane', 'helm', ...fluxTools, 'metallb-controller'],
    definitions: [...fluxTools, 'metallb'],
    packages: clusterPackages,
    sharedServer: false,
    named: false,
  },
  {
    // Every fault of the network in turn, ten minutes on a quiet machine. What it times needs one: looks at daemons have limits.
    name: 'faults',
    folder: 'test/cluster/faults',
    jobs: 1,
    budgetMs: 30 * minute,
    readyByMs: 28 * minute,
    tools: [...clusterTools, 'crane', 'helm'],
    definitions: [],
    packages: clusterPackages,
    sharedServer: false,
    named: true,
  },
];
