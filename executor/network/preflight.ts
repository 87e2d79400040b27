/** What was seen of the nodes of OVN central before anything is installed there, and what follows. Pure. */
import type { EvidenceProblem, FactsOf } from '../../constructs/api/evidence.ts';
import { preflight } from '../../constructs/api/preflight.ts';
import { isObject, type JsonObject, type JsonValue, objectsOf } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeObject } from '../kube/types.ts';
import { argumentsOf, rangesOf } from './ranges.ts';

/** What a look at a node is to answer. */
export interface HostQuestion {
  /** Folder of the databases, as the node names it. */
  readonly database: string;
  readonly ports: readonly number[];
  readonly cni: string;
  /** Whether Kube-OVN is to be the network of the node's pods. */
  readonly primary: boolean;
  /** Whether addresses of IPv6 are handed out. */
  readonly ipv6: boolean;
}

/** What a look at a node came to. */
export type HostLook = { readonly node: string } & (
  | {
      readonly type: 'seen';
      readonly facts: FactsOf<'host'>;
      readonly problems: readonly Pick<EvidenceProblem, 'component' | 'message'>[];
    }
  /** Nothing was seen: who should have looked, and what keeps it from that. */
  | { readonly type: 'unseen'; readonly message: string }
);

/** Bytes that a new pair of databases should have before it; compaction writes each of them anew beside itself. */
const leastFreeBytes = 1024 * 1024 * 1024;

const mebibytes = (bytes: bigint): string => `${bytes / 1_048_576n} MiB`;

/** Kernels under which the network does not come up, whatever is done; and those on which it does not without IPv6. */
const badKernel = /^3\.10\.0-862\b/;
const needsIPv6 = /^3\.10\./;

const part = (value: JsonValue | undefined, key: string): JsonObject => {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
};
const workloadKinds: readonly string[] = ['Deployment', 'StatefulSet', 'DaemonSet'];

/** The workload of a name; its account and its roles are often called the same. */
export const workloadNamed = (objects: readonly KubeObject[], name: string): KubeObject | undefined =>
  objects.find(({ kind, metadata }) => workloadKinds.includes(kind) && metadata.name === name);

/** Where the containers of OVN central find their databases. */
const databaseMount = '/etc/ovn';

/** What to ask, as the payload has it. Undefined where no node's folder becomes the home of a database. */
export function hostQuestion(objects: readonly KubeObject[]): HostQuestion | undefined {
  const central = workloadNamed(objects, 'ovn-central');
  const pod = part(part(central?.spec, 'template'), 'spec');
  const volume = objectsOf(pod.containers)
    .flatMap(({ volumeMounts }) => objectsOf(volumeMounts))
    .find(({ mountPath }) => mountPath === databaseMount)?.name;
  const { path } = part(
    objectsOf(pod.volumes).find(({ name }) => name === volume),
    'hostPath',
  );
  if (volume === undefined || typeof path !== 'string') return undefined;
  const cni = workloadNamed(objects, 'kube-ovn-cni');
  const secondary = cni === undefined || argumentsOf(cni).includes('--non-primary-cni-mode=true');
  const ipv6 = (rangesOf(objects)?.pods ?? []).some((range) => range.includes(':'));
  return { database: path, ports: preflight.ports, cni: preflight.cni, primary: !secondary, ipv6 };
}

const nodeName = (node: string): string => `Node ${node}`;

function databaseProblems(node: string, facts: FactsOf<'host'>): Problem[] {
  const { database } = facts;
  if (database === undefined) return [];
  const problems: Problem[] = [];
  if (database.state === 'occupied')
    problems.push({
      reason: 'DatabaseRootOccupied',
      message: `${database.path} holds ${database.entries.join(', ') || 'something'}: OVN central would go on with the cluster that this belongs to. Adopt that installation, or recover it`,
      object: nodeName(node),
      path: database.path,
      remedy:
        'adopt it by spec.adoption, or recover it by a KubeOVNRecoveryRequest. Where it belongs to nobody any more, a person moves it away; nothing here deletes it',
    });
  if (BigInt(database.freeBytes) < BigInt(leastFreeBytes))
    problems.push({
      reason: 'DiskTooSmall',
      message: `the disk of ${database.path} has ${mebibytes(BigInt(database.freeBytes))} left, wanted ${mebibytes(BigInt(leastFreeBytes))}`,
      object: nodeName(node),
      remedy: 'make room; a database on a full disk stops and has to be started again by hand',
    });
  return problems;
}

function portProblems(node: string, { ports }: FactsOf<'host'>): Problem[] {
  return (ports ?? [])
    .filter(({ free }) => !free)
    .map(({ port }) => ({
      reason: 'PortTaken',
      message: `somebody listens on TCP port ${port}, which OVN central needs`,
      object: nodeName(node),
      remedy: 'stop whoever listens there',
    }));
}

function cniProblems(node: string, { cni }: FactsOf<'host'>, { primary }: HostQuestion): Problem[] {
  const before = (cni?.files ?? []).filter((file) => file < preflight.ownConfiguration);
  if (!primary || before.length === 0) return [];
  return [
    {
      reason: 'CniConflict',
      message: `${before.join(', ')} in ${cni?.path ?? ''} ${before.length === 1 ? 'is' : 'are'} read before ${preflight.ownConfiguration}: pods would get the other network`,
      object: nodeName(node),
      remedy: 'remove the other network from the node first',
    },
  ];
}

function kernelProblems(node: string, { kernel }: FactsOf<'host'>, { ipv6 }: HostQuestion): Problem[] {
  if (kernel === undefined) return [];
  const say = (message: string, remedy: string): Problem => ({
    reason: 'KernelUnsupported',
    message: `kernel ${kernel.release}: ${message}`,
    object: nodeName(node),
    remedy,
  });
  return [
    ...(badKernel.test(kernel.release) ? [say('Open vSwitch does not work with it', 'update the kernel')] : []),
    ...(kernel.ipv6 || !(ipv6 || needsIPv6.test(kernel.release))
      ? []
      : [say('it has no IPv6, which this network needs', 'enable IPv6 in the kernel')]),
  ];
}

/** What a look has to have answered: what nobody saw is not taken for fine. */
function unanswered(node: string, look: Extract<HostLook, { type: 'seen' }>): Problem[] {
  return look.problems.map(({ component, message }) => ({
    reason: 'PreflightIncomplete',
    message: `${component}: ${message}`,
    object: nodeName(node),
    remedy: 'mend what keeps the probe from looking; it is tried again',
  }));
}

function problemsOf(look: HostLook, question: HostQuestion): Problem[] {
  const { node } = look;
  if (look.type === 'unseen')
    return [
      {
        reason: 'PreflightIncomplete',
        message: look.message,
        object: nodeName(node),
        remedy: 'look at the node, and at the Job that looks at it; it is tried again',
      },
    ];
  const { facts } = look;
  return [
    ...databaseProblems(node, facts),
    ...portProblems(node, facts),
    ...cniProblems(node, facts, question),
    ...kernelProblems(node, facts, question),
    ...unanswered(node, look),
  ];
}

/** Everything that stands against an install on these nodes, node by node. */
export const hostProblems = (looks: readonly HostLook[], question: HostQuestion): Problem[] =>
  looks.flatMap((look) => problemsOf(look, question));
