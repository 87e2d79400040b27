import { type Reason, reasonsOf } from './reason.ts';

/**
 * Reasons of what a round of observation came to. Within a condition an earlier line is told before a later one: what
 * explains the rest stands first.
 */

/** Nobody knows: the condition is Unknown. */
const unknown: readonly Reason[] = [
  ...reasonsOf('Evidence', 'info', 'wait', [
    [
      'RoundPending',
      'no round of observation is complete yet',
      'Wait; it takes seconds once the sidecars of the pods run.',
    ],
    ['NothingExpected', 'nothing is expected to answer yet: {message}', 'Wait; look at the workload when it lasts.'],
    [
      'MemberElecting',
      '{database} of {subject} is a candidate and knows no leader',
      'Wait; an election takes seconds. Look at the links between the members when it lasts.',
    ],
    [
      'MemberJoining',
      '{database} of {subject} is joining the cluster for {elapsed}',
      'Wait; look at the log of ovsdb-server when it lasts.',
    ],
    [
      'LeaderMoving',
      '{database} of {subject}: {observed}, wanted {wanted}',
      'Wait; leadership moves in ordinary work. Look at the members when it lasts.',
    ],
    [
      'MembershipChanging',
      '{database}: the leader is {observed} the member {member} at {address}',
      'Wait for whoever changes the membership.',
    ],
    ['NorthdHandover', '{observed} northd are active, wanted 1', 'Wait; a hand-over takes seconds.'],
    [
      'TopologyNotRecorded',
      'no record of the topology exists yet: {message}',
      'Wait; it is recorded once all members were seen in one round.',
    ],
    ['TopologyUnconfirmed', 'the record could not be compared: {message}', 'Look at OVNDBReady.'],
    ['ProbeNotConfigured', 'spec.networkProbe.image is not set, so no packet is sent', 'Set spec.networkProbe.image.'],
    ['PeerPending', 'the other side was not observed yet', 'Wait; it takes seconds.'],
    [
      'PeerEvidenceMissing',
      'OVN central is outside of this installation ({message}), and no provider tells its role, version and schema',
      'Use hcp for a central of this cluster, or run an executor with a provider for the other one.',
    ],
    [
      'PeerSecretRotated',
      'Secret {secret} was {wanted} when the look began and {observed} when it ended',
      'Wait; the next round looks with the new one.',
    ],
    ['PeerEndpointUnreachable', '{endpoint} does not answer: {message}', 'Look at the endpoint and at the way to it.'],
  ]),
];

/** Seen to be broken: the condition is False. */
const broken: readonly Reason[] = [
  ...reasonsOf('Evidence', 'error', 'retry', [
    [
      'MemberMissing',
      'OVN central is wanted on {subject}: {message}',
      'Bring the node or the pod back; a member that is lost for good is replaced by a person.',
    ],
    [
      'MemberMisplaced',
      'pod {pod} of OVN central runs on {observed}; wanted only {wanted}',
      'Look at the labels of the nodes: only the recorded ones may match.',
    ],
    ['DaemonDown', '{component} of {subject} does not run: {message}', 'Look at the logs of its container.'],
    [
      'DatabaseOther',
      '{database} of {subject} is {observed}, wanted {wanted}',
      'Look at the files of the database and at the environment of the pod.',
    ],
    [
      'StorageFailed',
      '{database} of {subject}: its storage says {observed}, wanted ok',
      'Look at the disk; the server has to be restarted once there is room.',
    ],
    [
      'DiskFull',
      '{database} of {subject}: its disk has {observed} left, and takes nothing more that is written',
      'Stop the server at once, make room, then start it. One that goes on may leave a gap in its file: then it does not start any more, and its member has to be replaced.',
    ],
    [
      'ClusterSplit',
      '{database}: the members belong to {observed} clusters, wanted 1: {message}',
      'Stop the members of the wrong cluster before clients write to it; delete no file.',
    ],
    [
      'ServerIDTwice',
      '{database}: {observed} have the same server id {member}',
      'Stop the copy; a file of one member must never be started as another.',
    ],
    [
      'QuorumLost',
      '{database}: {observed} of {size} members answer as members, wanted {wanted}',
      'Bring the old members back with their files; only then think of recovery.',
    ],
    [
      'LeaderTwice',
      '{database}: {observed} lead, wanted one leader',
      'Look at the links between the members; the older leader steps down by itself.',
    ],
    ['NoLeader', '{database}: no member leads, wanted one leader', 'Look at the links between the members.'],
    [
      'MemberNotMember',
      '{database} of {subject} is {observed}, wanted member',
      'Look at the log of ovsdb-server; Ready of the pod says nothing about it.',
    ],
    [
      'GhostMember',
      '{database}: the cluster counts a member {member} at {address} that is none of the pods',
      'A person decides whether it is lost for good, and has it removed by its full id.',
    ],
    [
      'MemberUnlisted',
      '{database} of {subject} is no member of the cluster that {wanted} leads',
      'Look whether it was removed from the cluster; it has to join anew.',
    ],
    [
      'MembersDisagree',
      '{database} of {subject} counts {observed}, the leader counts {wanted}',
      'Look at the links between the members.',
    ],
    [
      'MemberUnlinked',
      '{database} of {subject}: {observed}, wanted a live link with the leader',
      'Look at the RAFT ports between the two nodes.',
    ],
    [
      'MemberLagging',
      '{database} of {subject} has {observed}, the leader had committed {wanted} before',
      'Look at disk and processor of the node.',
    ],
    [
      'IndexMissing',
      '{database} of {subject} tells clients the index {observed}, wanted a positive one',
      'Look at the log of ovsdb-server.',
    ],
    [
      'IndexBackwards',
      '{database} of {subject} tells clients the index {observed}, and told {wanted} before',
      'Data was lost or the file was exchanged: look before anything writes.',
    ],
    [
      'NorthdPaused',
      'northd of {subject} is paused, wanted active or standby',
      'Resume it: `ovn-appctl -t ovn-northd resume`.',
    ],
    [
      'NorthdDisconnected',
      'northd of {subject} is not connected to {database}',
      'Look at the way from it to the leader.',
    ],
    [
      'NorthdInactive',
      'no northd is active for {rounds} rounds, wanted 1 of {size}',
      'Look at the log of northd and at SB.',
    ],
    ['NorthdTwice', '{observed} are active for {rounds} rounds, wanted one', 'Look at the lock ovn_northd of SB.'],
    [
      'NorthdFlapping',
      'the active northd changed {observed} times within {elapsed}, wanted at most {wanted}',
      'Look at the load of SB and at northd_probe_interval.',
    ],
    [
      'NorthdStuck',
      'northd carries nothing to SB: sb_cfg is {observed} for {elapsed}, wanted {wanted}',
      'Look at the log of the active northd.',
    ],
    [
      'NodeGone',
      '{subject} is gone, and its pod {pod} is still there',
      'Wait for the pod to be removed, or remove it.',
    ],
    ['NodeNotReady', '{subject} is not Ready', 'Look at the kubelet of the node.'],
    [
      'BridgeMissing',
      'ovs-vswitchd of {subject} does not have the bridge {wanted}',
      'Look at the log of ovs-vswitchd.',
    ],
    [
      'ChassisDisconnected',
      'ovn-controller of {subject} is not connected to SB at {wanted}',
      'Look at the way from the node to port 6642 of OVN central.',
    ],
    [
      'ChassisUnlisted',
      'SB knows no chassis {member} of {subject}, whose ovn-controller says that it is connected',
      'Look which SB it is connected to, and at its log.',
    ],
    [
      'ChassisPaused',
      'ovn-controller of {subject} is paused',
      'Resume it: `ovn-appctl -t ovn-controller debug/resume`.',
    ],
    [
      'ChassisFrozen',
      'ovn-controller of {subject} ({observed}) waits for a northd of its own version and changes no flow; northd is {wanted}',
      'Bring both to one version, or take ovn-match-northd-version away.',
    ],
    [
      'EncapMissing',
      'Open vSwitch of {subject} names no tunnel address, wanted one',
      'Look at ovn-encap-ip of the node.',
    ],
    [
      'ChassisIDTwice',
      '{observed} have the same {what} {member}',
      'Give one of the nodes a system-id of its own; cloned images share one.',
    ],
    [
      'ChassisIDChanged',
      'the system-id of {subject} was {wanted} and is {observed}: its database was lost',
      'Restart the pods of the node; their ports hang on the old database.',
    ],
    ['TopologyRecordMissing', 'the record {wanted} is gone', 'Restore the ConfigMap from a backup of the cluster.'],
    [
      'TopologyRecordReplaced',
      'the record {name} has UID {observed}, wanted {wanted}',
      'Find out who made it; the one that was recorded is what counts.',
    ],
    [
      'TopologyRecordChanged',
      'the content of the record {name} has digest {observed}, wanted {wanted}',
      'Find out who changed it; restore what was recorded.',
    ],
    [
      'TopologyChanged',
      '{what} of {subject} is {observed}, recorded is {wanted}',
      'Find out what changed it; nothing is removed or recorded anew by itself.',
    ],
  ]),
];

/** Evidence of packets and of peers that are not what they should be: False as well. */
const brokenPeers: readonly Reason[] = [
  ...reasonsOf('Evidence', 'error', 'retry', [
    [
      'FamilyMissing',
      '{subject} has no {family} address, wanted {wanted}',
      'Look at the address families of node, pod and Service.',
    ],
    [
      'FamilyUnwanted',
      '{subject} has an {family} address, wanted only {wanted}',
      'Look at networkStack and at the subnets of Kube-OVN.',
    ],
    [
      'ProbeWrongPeer',
      '{family} from {subject} to {what}: answered by {observed}, wanted {wanted}',
      'Somebody else has the address: look at duplicate addresses and at the load balancer.',
    ],
    [
      'ProbeWrongAddress',
      '{family} from {subject}: {what} leads to {observed}, wanted {wanted}',
      'Look at DNS and at the Service.',
    ],
    [
      'ProbeFailed',
      '{family} from {subject} to {what} at {address}: {observed}, wanted an answer',
      'Look at the way between the two.',
    ],
    ['PeerProviderMissing', 'this executor has no provider that looks at the other half', 'Run an executor with one.'],
    [
      'PeerMissing',
      'there is no KubeOVNInstallation of the other half in namespace {wanted}',
      'Create it, or mend hcp.peerNamespace.',
    ],
    [
      'PeerAmbiguous',
      'namespace {wanted} holds {observed} installations that name this one as their peer',
      'Keep one.',
    ],
    [
      'PeerNotReciprocal',
      '{subject} names the peer namespace {observed}, wanted {wanted}',
      'Make both halves name each other.',
    ],
    ['PeerRoleWrong', '{subject} has the role {observed}, wanted {wanted}', 'Give the halves different roles.'],
    ['PeerVersionDiffers', '{subject} has version {observed}, wanted {wanted}', 'Bring both halves to one version.'],
    ['PeerSecretMissing', 'Secret {secret} does not exist', 'Create it; its data stays where it is.'],
    [
      'PeerSecretKeysMissing',
      'Secret {secret} has neither ca.crt, tls.crt and tls.key nor cacert, cert and key',
      'Give it one of the two sets.',
    ],
    ['PeerCertificateInvalid', 'the certificate in Secret {secret} can not be used: {message}', 'Replace it.'],
    ['PeerCertificateExpired', 'the certificate in Secret {secret} is valid {observed}', 'Replace it.'],
    [
      'PeerUntrusted',
      '{endpoint} does not prove itself by the CA in Secret {secret}: {message}',
      'Use one CA for both halves.',
    ],
    [
      'PeerSchemaDiffers',
      '{endpoint} serves {observed}, wanted {wanted}',
      'Point it at the databases of the other half.',
    ],
  ]),
];

/** What works and has less in reserve than was asked for. */
const weak: readonly Reason[] = [
  ...reasonsOf('Evidence', 'warning', 'wait', [
    ['NodeUnschedulable', '{subject} of OVN central is cordoned', 'Uncordon it, or replace the member first.'],
    [
      'DiskNearlyFull',
      '{database} of {subject} has {observed} left, wanted {wanted}',
      'Make room on the disk of the node.',
    ],
    ['LinkPartlyDown', '{database} of {subject}: {observed}', 'Look at the RAFT ports between the nodes.'],
    [
      'ElectionTimersDiffer',
      '{database}: the members have election timers of {observed}, wanted one',
      'Set one through the leader.',
    ],
    [
      'ChassisBehind',
      'chassis have carried out {observed}, northd has handed out {wanted} for {elapsed}; behind: {message}',
      'Look for chassis of nodes that are gone.',
    ],
    ['RedundancyLost', '{message}', 'Look at the conditions that are False.'],
  ]),
];

/** Seen to work. */
const good: readonly Reason[] = [
  ...reasonsOf('Evidence', 'info', 'wait', [
    ['MembersAgree', 'all members of both databases agree', 'Nothing.'],
    ['DatabaseServed', 'both databases are served', 'Nothing.'],
    ['OneActive', 'one northd is active', 'Nothing.'],
    ['ChassisConnected', 'all chassis are connected', 'Nothing.'],
    ['TopologyMatches', 'the topology is as recorded', 'Nothing.'],
    ['PacketsDelivered', 'all packets arrived', 'Nothing.'],
    ['PeerVerified', 'the other half was seen to fit', 'Nothing.'],
    ['Redundant', 'nothing is lost', 'Nothing.'],
  ]),
];

export const evidenceReasons: readonly Reason[] = [...broken, ...brokenPeers, ...unknown, ...weak, ...good];
