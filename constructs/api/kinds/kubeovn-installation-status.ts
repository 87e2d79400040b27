import { z } from 'zod';
import {
  conditions,
  digest,
  dnsName,
  ipText,
  objectUID,
  requiredText,
  text,
  timestamp,
  upperCamel,
  uuid,
} from '../fields.ts';
import { changeClasses, untouchedStatus } from '../release.ts';
import { networkStacks } from './kubeovn-installation-spec.ts';
import { backupPair, databaseName } from './network-fields.ts';

/** `status` of KubeOVNInstallation. Evidence in it is of the last round; what could not be observed is absent. */

export const installationPhases = [
  'Pending',
  'Planned',
  'Adopting',
  'Applying',
  'Verifying',
  'Ready',
  'Upgrading',
  'ChangingMembers',
  'RollingBack',
  'Recovering',
  'Blocked',
  'Failed',
] as const;
export type InstallationPhase = (typeof installationPhases)[number];

const upgradeSteps = ['CustomResourceDefinitions', 'Central', 'DataPlane', 'Complete'] as const;
const checkpointPhases = ['Capturing', 'Verified', 'Applying', 'Applied', 'Failed'] as const;
export const restorePhases = ['Quiescing', 'Restoring', 'Workloads', 'Verifying'] as const;

export const applyCheckpoint = z.strictObject({
  specDigest: digest(),
  manifestDigest: digest(),
  /** specDigest without member requests and the number of central replicas. */
  baseDigest: digest(),
  payloadDigest: digest(),
  recordedAt: timestamp(),
});
export type ApplyCheckpoint = z.infer<typeof applyCheckpoint>;

/** What authorised the last change of the checkpoint. */
const authorisation = z.strictObject({
  changeClass: z.enum(changeClasses),
  payloadDigest: digest(),
  planDigest: digest().optional(),
  recordedAt: timestamp(),
});

const pairOfEndpoints = { northbound: text(320), southbound: text(320) };

/** What of the specification decides what is looked at, as the accepted payload was rendered from it. */
export const enforcedSpec = z.strictObject({
  specDigest: digest(),
  version: text(64),
  networkStack: z.enum(networkStacks).optional(),
  networkProbe: z.boolean(),
  replicas: z.int().min(1).max(9),
  external: z.strictObject(pairOfEndpoints).optional(),
  hcp: z
    .strictObject({
      role: z.enum(['central', 'dataPlane']),
      peerNamespace: text(63),
      tlsSecretRef: z.strictObject({ name: text(253) }),
      ...pairOfEndpoints,
    })
    .optional(),
});

const member = z.strictObject({
  serverID: uuid(),
  address: text(64).optional(),
  pod: text(253).optional(),
  node: text(253).optional(),
  /** 64-bit counters are decimal strings. */
  index: text(20).optional(),
});

const database = z.strictObject({
  name: databaseName(),
  model: z.enum(['clustered', 'standalone']),
  clusterID: uuid().optional(),
  leader: uuid().optional(),
  term: text(20).optional(),
  members: z.array(member).max(16),
});

const topology = z.strictObject({
  observedAt: timestamp().optional(),
  databases: z
    .array(database)
    .max(2)
    .optional()
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
  inventory: z
    .strictObject({ name: dnsName(), uid: objectUID(), digest: digest() })
    .optional()
    .meta({ description: 'The retained record. A failed observation does not clear it.' }),
});

const northd = z.strictObject({
  observedAt: timestamp(),
  members: z
    .array(z.strictObject({ node: text(253), state: text(64) }))
    .max(64)
    .meta({ description: 'What northd of each node of OVN central says of itself, or why nothing is known of it.' }),
});

const dataPlane = z.strictObject({
  observedAt: timestamp(),
  nodes: z.int().min(0).meta({ description: 'Nodes that carry Open vSwitch.' }),
  connected: z.int().min(0).meta({ description: 'Those whose chassis was seen to run its bridge, connected to SB.' }),
  missing: z
    .array(text(300))
    .max(20)
    .optional()
    .meta({ description: 'The first of the others, each with what it lacks.' }),
});

const network = z.strictObject({
  observedAt: timestamp(),
  nodes: z.int().min(0),
  families: z.array(z.enum(['ipv4', 'ipv6'])).max(2),
  checks: z.int().min(0),
  passed: z.int().min(0),
  missing: z.array(text(300)).max(20).optional().meta({ description: 'Nodes and families without a passed check.' }),
});

const hcp = z.strictObject({
  observedAt: timestamp(),
  peer: z.strictObject({ namespace: text(63), name: text(253), uid: objectUID(), version: text(64).optional() }),
  secret: z.strictObject({ name: text(253), uid: objectUID(), resourceVersion: text(64) }),
  endpoints: z
    .array(z.strictObject({ endpoint: text(320), reachable: z.boolean() }))
    .max(4)
    .optional(),
});

const upgradeCheckpoint = z.strictObject({
  phase: z.enum(checkpointPhases),
  sourceVersion: text(64),
  targetVersion: text(64),
  destination: text(1024),
  topologyDigest: digest().optional(),
  backup: backupPair.optional(),
  message: text(1024).optional(),
  recordedAt: timestamp(),
});

const rollback = z.strictObject({
  sourceVersion: text(64),
  targetVersion: text(64),
  pairID: digest().optional(),
  topologyDigest: digest().optional(),
  targetChartDigest: digest().optional(),
  rpoSeconds: z.int().min(0).optional().meta({ description: 'Measured age of the backup.' }),
  phase: z.enum(restorePhases).optional(),
  blockedReason: upperCamel(128).optional(),
  message: text(1024).optional(),
});

const upgrade = z.strictObject({
  step: z.enum(upgradeSteps).optional(),
  canRollback: z.boolean().optional().meta({ description: 'True once restore, workload and fence are proven.' }),
  rollback: rollback.optional(),
  checkpoint: upgradeCheckpoint.optional(),
});

const backupRetention = z.strictObject({
  lastAttemptAt: timestamp(),
  kept: z.int().min(0),
  deleted: z.int().min(0),
  failed: z.int().min(0),
  message: text(1024).optional(),
});

export const installationStatus = z
  .strictObject({
    observedGeneration: z.int().min(-1).optional(),
    phase: z.enum(installationPhases).optional(),
    conditions: conditions().optional(),
    observedVersion: text(64)
      .optional()
      .meta({ description: 'Version that runs; set only after its rollout is complete.' }),
    applyCheckpoint: applyCheckpoint
      .optional()
      .meta({ description: 'What was authorised; recorded before the first write.' }),
    enforced: enforcedSpec
      .optional()
      .meta({ description: 'What of the accepted specification is looked at, also while a change of it is blocked.' }),
    authorisation: authorisation.optional().meta({ description: 'What authorised the checkpoint.' }),
    release: z
      .strictObject({ name: dnsName(), digest: digest() })
      .optional()
      .meta({ description: 'Release and payload that carry this installation.' }),
    plan: z
      .strictObject({ configMap: requiredText(253), digest: digest() })
      .optional()
      .meta({ description: 'The plan last written.' }),
    nodes: z
      .array(z.strictObject({ name: dnsName(), uid: objectUID(), addresses: z.array(ipText()).max(8) }))
      .max(64)
      .optional()
      .meta({ description: 'Nodes of OVN central, in its order.' }),
    topology: topology.optional(),
    northd: northd.optional(),
    dataPlane: dataPlane.optional(),
    network: network.optional(),
    hcp: hcp.optional(),
    upgrade: upgrade.optional(),
    lastBackup: backupPair.optional(),
    backupRetention: backupRetention.optional(),
  })
  .prefault(untouchedStatus);
