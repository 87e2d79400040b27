/** What can go wrong with a network on three nodes, what its status has to say of it, and how it is mended. Pure data. */
import { degradedBy, type Move, type Status } from './evidence-judge.ts';

/** Where on the cluster something is broken. `{node}` in a message is the name of that node. */
type Place =
  /** A node that leads no database, and where another one can, whose northd does not work. */
  | 'follower'
  /** The same, without the executor that leads: on a node that is gone nobody can ask it what it saw. */
  | 'aside'
  /** The node whose northd works. */
  | 'activeNorthd'
  /** The node that leads NB. */
  | 'leader'
  /** A node without the executor that leads. */
  | 'away'
  | 'none';

export interface Fault {
  readonly name: string;
  /** Scenario of the contract. */
  readonly scenario?: string;
  /** What is broken, and how it is mended, as a person would say it. */
  readonly broken: string;
  readonly mended: string;
  readonly place: Place;
  /** The conditions that move; all others stand. */
  readonly moves: readonly Move[];
  /** Conditions that follow when it lasts, and why. */
  readonly follow?: Readonly<Record<string, string>>;
  /** Why OVN itself may take most of the limit to notice, where an executor at its own pace then comes too late. */
  readonly noticed?: string;
  /** Conditions that move while it is mended: what has to be started anew is away for a moment. */
  readonly touched?: readonly string[];
}

const probed = { WorkloadsReady: "the pod's own readiness probe fails by then" } as const;
const move = (type: string, status: Status, reason: string, message: string): Move => ({
  type,
  status,
  reason,
  message,
});

const member = 'node {node} (pod *)';

export const faults = [
  {
    name: 'server-killed',
    scenario: 'X7',
    broken: 'the ovsdb-server of OVN_Northbound is killed on one node',
    mended: 'it is started again',
    place: 'follower',
    moves: [
      move(
        'OVNDBReady',
        'False',
        'DaemonDown',
        `ovsdb-server of OVN_Northbound of ${member} does not run: *OVN_Northbound: leader node *, 2 of 3 members, quorum 2; OVN_Southbound: leader node *, 3 of 3 members, quorum 2`,
      ),
    ],
    follow: probed,
    touched: ['OVNDBReady'],
  },
  {
    name: 'disk-full',
    broken: 'the file system of the databases is full on one node',
    mended: 'the server is stopped, there is room again, it is started',
    place: 'follower',
    moves: [
      move(
        'OVNDBReady',
        'False',
        'DiskFull',
        `OVN_Northbound of ${member}: its disk has * left, and takes nothing more that is written*`,
      ),
    ],
    follow: probed,
    touched: ['OVNDBReady'],
  },
  {
    name: 'northd-paused',
    broken: 'the active northd is paused',
    mended: 'it is resumed',
    place: 'activeNorthd',
    moves: [move('NorthdReady', 'False', 'NorthdPaused', `northd of ${member} is paused, wanted active or standby*`)],
    touched: ['NorthdReady'],
  },
  {
    name: 'controller-stopped',
    broken: 'ovn-controller is stopped on one node, its flows stay',
    mended: 'it is started',
    place: 'follower',
    moves: [move('DataPlaneReady', 'False', 'DaemonDown', 'ovn-controller of node {node} does not run: *')],
    follow: probed,
    // A new ovn-controller writes all flows anew.
    touched: ['DataPlaneReady', 'NetworkReady', 'WorkloadsReady'],
  },
  {
    name: 'switch-frozen',
    broken: 'ovs-vswitchd is frozen on one node (SIGSTOP), and forwards nothing',
    mended: 'it goes on (SIGCONT)',
    place: 'away',
    moves: [
      move('DataPlaneReady', 'Unknown', 'EvidenceHung', 'ovs-vswitchd of node {node} did not answer within *'),
      {
        ...move('NetworkReady', 'False', 'ProbeFailed', 'IPv4 from node * to * at *, wanted an answer*'),
        mentions: 'node {node}',
      },
    ],
    follow: {
      ...probed,
      DataPlaneReady: 'the kubelet starts the container anew, whose daemons are away for that long',
    },
    touched: ['DataPlaneReady', 'NetworkReady', 'WorkloadsReady'],
  },
  {
    name: 'other-server',
    scenario: 'X21',
    broken: 'a server of the network probe answers in the place of another one',
    mended: 'the right one answers',
    place: 'follower',
    moves: [
      move(
        'NetworkReady',
        'False',
        'ProbeWrongPeer',
        'IPv4 from node * to the server on node {node}: answered by pod UID * on node *, wanted pod * with UID * on node {node}*',
      ),
    ],
    touched: ['NetworkReady'],
  },
  {
    name: 'southbound-blocked',
    broken: 'packets of one node to port 6642 are dropped; those back are not',
    mended: 'they get through',
    place: 'follower',
    moves: [
      move(
        'DataPlaneReady',
        'False',
        'ChassisDisconnected',
        'ovn-controller of node {node} is not connected to SB at *:6642*',
      ),
    ],
    follow: { WorkloadsReady: 'the agent of the node says that it is not ready' },
    noticed: 'ovn-controller waits for 20 seconds of silence',
    touched: ['DataPlaneReady', 'WorkloadsReady'],
  },
  {
    name: 'sidecar-killed',
    broken: 'the sidecar of a chassis is killed as often as it comes back',
    mended: 'it stays',
    place: 'away',
    moves: [
      move(
        'DataPlaneReady',
        'Unknown',
        'EvidenceUnreachable',
        'the sidecar of node {node} does not answer: * port 10674: ECONNREFUSED*port-forward to *',
      ),
    ],
    follow: { WorkloadsReady: 'a pod whose container has ended is not ready' },
    touched: ['DataPlaneReady', 'WorkloadsReady'],
  },
  {
    name: 'authority-rotated',
    broken: '`keelson pki rotate`: the authority of evidence gets a successor',
    mended: 'nothing is to be mended',
    place: 'none',
    moves: [],
  },
  {
    name: 'node-cordoned',
    scenario: 'X23',
    broken: 'a node of OVN central is cordoned',
    mended: 'it is uncordoned',
    place: 'follower',
    moves: [move('Degraded', 'True', 'NodeUnschedulable', 'node {node} of OVN central is cordoned')],
  },
  {
    name: 'node-deleted',
    scenario: 'X23',
    broken: 'the Node object of a node of OVN central is deleted, its daemons run on',
    mended: 'it is restored from etcd as it was; a node of that name that is made anew is another one',
    place: 'aside',
    moves: [
      move('OVNDBReady', 'False', 'MemberMissing', `OVN central is wanted on ${member}: the node is gone*`),
      move('DataPlaneReady', 'False', 'NodeGone', 'node {node} is gone, and its pod * is still there*'),
      move('TopologyRecorded', 'False', 'TopologyChanged', `the node of ${member} is gone, recorded is UID *`),
    ],
    follow: { WorkloadsReady: 'Kubernetes deletes the pods of a node that is gone for 40 seconds' },
    // A pod that Kubernetes took is made anew, and with it the daemons of the node start anew.
    touched: ['OVNDBReady', 'NorthdReady', 'DataPlaneReady', 'NetworkReady', 'TopologyRecorded', 'WorkloadsReady'],
  },
  {
    name: 'leadership-moved',
    scenario: 'X8',
    broken: 'leadership of OVN_Northbound moves in the middle of a round',
    mended: 'nothing is to be mended',
    place: 'leader',
    moves: [],
  },
] as const satisfies readonly Fault[];

export type FaultName = (typeof faults)[number]['name'];

/** The moves of a fault on a node. */
export const movesOn = ({ moves }: Fault, node: string): Move[] =>
  moves.map((one) => ({
    ...one,
    message: one.message.replaceAll('{node}', node),
    ...(one.mentions === undefined ? {} : { mentions: one.mentions.replaceAll('{node}', node) }),
  }));

/** What Ready comes to: a part that is False makes it so, one that is not known leaves it open. */
const readyBy = (moves: readonly Move[]): Status => {
  const own = moves.filter(({ type }) => type !== 'Degraded');
  if (own.length === 0) return 'True';
  return own.some(({ status }) => status === 'False') ? 'False' : 'Unknown';
};

/** A pattern as a person reads it. */
const shown = (message: string): string =>
  message.replaceAll('{node}', 'N').replaceAll('*', '…').replaceAll('|', '\\|');

/** The matrix as a table for people. */
export function faultTable(all: readonly Fault[]): string {
  const rows = all.map((fault) => {
    const { broken, mended, scenario, moves, follow = {}, noticed } = fault;
    const told = moves.map(
      ({ type, status, reason, message }) => `\`${type}\` ${status} \`${reason}\`: ${shown(message)}`,
    );
    const later = Object.entries(follow).map(([type, why]) => `later \`${type}\` as well: ${why}`);
    const before = noticed === undefined ? [] : [`before that nobody can know: ${noticed}`];
    const what = [...told, ...before, ...later].join('<br>') || 'nothing moves';
    const title = scenario === undefined ? broken : `${broken} (${scenario})`;
    return `| ${title} | ${what} | ${readyBy(moves)}, ${degradedBy(moves)} | ${mended} |`;
  });
  return ['| what is wrong | what is told | Ready, Degraded | until |', '|---|---|---|---|', ...rows].join('\n');
}
