import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of what is looked at before the first write of a network: the cluster, and the nodes of OVN central. */
export const preflightReasons: readonly Reason[] = [
  ...reasonsOf('Accepted', 'error', 'retry', [
    [
      'DatabaseRootOccupied',
      'the folder {path} of the databases on node {node} is not empty',
      'Adopt the installation that it belongs to, or recover it; nothing of Keelson deletes it.',
    ],
    ['PortTaken', 'port {port} of node {node} is taken', 'Stop whoever listens there.'],
    [
      'CniConflict',
      'the container network of node {node} is configured by {file}, which is read before that of Kube-OVN',
      'Remove the other network from the node first.',
    ],
    ['KernelUnsupported', 'the kernel {release} of node {node} does not work: {message}', 'Update the kernel.'],
    ['DiskTooSmall', 'node {node} has {observed} left for the databases, wanted {wanted}', 'Make room on its disk.'],
    [
      'PreflightIncomplete',
      'node {node} could not be looked at: {message}',
      'Look at its Job and pod in namespace keelson-system; it is tried again.',
    ],
    ['RangeUnusable', 'the range {range} can not be used', 'Correct the chart.'],
    ['RangesOverlap', '{one} overlaps {other}', 'Choose ranges, or a networkStack, that fit this cluster.'],
    [
      'RangeDiffers',
      'the range {range} of Services is not that of the API server',
      'Choose the networkStack of the cluster.',
    ],
    ['FamilyUnavailable', '{subject} has no address of {family}', 'Choose a networkStack that all nodes have.'],
    [
      'PodSecurityTooStrict',
      'namespace {namespace} lets in no pods beyond level {level}',
      'Label it pod-security.kubernetes.io/enforce=privileged.',
    ],
  ]),
];
