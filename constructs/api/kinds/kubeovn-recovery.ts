import { z } from 'zod';
import { celRules } from '../cel.ts';
import {
  conditions,
  digest,
  dnsLabel,
  nameRef,
  objectUID,
  requiredText,
  text,
  timestamp,
  upperCamel,
} from '../fields.ts';
import { untouchedStatus } from '../release.ts';
import { ageColumn, commonConditions, type Kind } from './kind.ts';
import { networkGroup } from './kubeovn-installation.ts';
import { restorePhases } from './kubeovn-installation-status.ts';
import { requestedBy, uidRef } from './network-fields.ts';

const recoveryModes = ['rejoin', 'reconvert', 'freshBootstrap'] as const;

const recoverySpec = z
  .strictObject({
    installationRef: nameRef().meta({ description: 'The installation; its UID is pinned when the plan is made.' }),
    mode: z.enum(recoveryModes).meta({ description: 'How the databases are recovered.' }),
    targetMemberName: dnsLabel().optional().meta({ description: 'The entry of central.memberRequests that rejoins.' }),
    backupRef: z
      .strictObject({ pairID: digest().meta({ description: 'Id of the pair, as status.lastBackup shows it.' }) })
      .optional()
      .meta({ description: 'The verified backup pair that is restored.' }),
    lostQuorumApprovalRef: uidRef()
      .optional()
      .meta({ description: 'Approval for the case that the old quorum can not be proven.' }),
    reason: requiredText(1024).meta({ description: 'Why the databases are recovered.' }),
    expiresAt: timestamp().meta({ description: 'Nothing is started afterwards.' }),
    requestedBy: requestedBy(),
  })
  .meta({
    ...celRules(
      {
        rule: "(self.mode == 'rejoin') == has(self.targetMemberName)",
        message: 'mode rejoin needs targetMemberName, the other modes take none',
      },
      {
        rule: "(self.mode != 'rejoin') == has(self.backupRef)",
        message: 'modes reconvert and freshBootstrap need backupRef, mode rejoin takes none',
      },
    ),
  });

const recoveryPhases = ['Pending', 'AwaitingExecution', 'Executing', 'Succeeded', 'Failed', 'Rejected'] as const;

const plan = z.strictObject({
  digest: digest(),
  installationUID: objectUID(),
  installationGeneration: z.int().min(0),
  requestGeneration: z.int().min(0),
  mode: z.enum(recoveryModes),
  observedVersion: text(64).optional(),
  topologyDigest: digest().optional(),
  memberDigest: digest().optional().meta({ description: 'Digest over the whole member request that rejoins.' }),
  pairID: digest().optional(),
  requestedBy: requestedBy(),
  preparedAt: timestamp(),
});

const recoveryStatus = z
  .strictObject({
    observedGeneration: z.int().min(-1).optional(),
    phase: z.enum(recoveryPhases).optional(),
    conditions: conditions().optional(),
    plan: plan.optional(),
    execution: z
      .strictObject({
        phase: z.enum(restorePhases).optional(),
        startedAt: timestamp(),
        completedAt: timestamp().optional(),
        rpoSeconds: z.int().min(0).optional(),
        rtoSeconds: z.int().min(0).optional(),
        reason: upperCamel(128).optional(),
        message: text(1024).optional(),
      })
      .optional(),
  })
  .meta({
    ...celRules({
      rule: "!has(oldSelf.phase) || !(oldSelf.phase in ['Succeeded', 'Failed', 'Rejected']) || (has(self.phase) && self.phase == oldSelf.phase)",
      message: 'a recovery that has ended stays ended',
    }),
  })
  .prefault(untouchedStatus);

export const kubeOVNRecoveryRequestKind: Kind = {
  group: networkGroup,
  version: 'v1alpha1',
  kind: 'KubeOVNRecoveryRequest',
  plural: 'kubeovnrecoveryrequests',
  singular: 'kubeovnrecoveryrequest',
  shortNames: ['korr'],
  scope: 'Namespaced',
  description: 'A request to recover the OVN databases of an installation once. It is never delivered from Git.',
  spec: recoverySpec,
  status: recoveryStatus,
  rules: [],
  columns: [
    { name: 'Installation', type: 'string', jsonPath: '.spec.installationRef.name' },
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Step', type: 'string', jsonPath: '.status.execution.phase' },
    ageColumn,
  ],
  conditionTypes: commonConditions,
};
