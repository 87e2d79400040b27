import { z } from 'zod';
import { celRules, listMap } from '../cel.ts';
import { conditions, requiredText, text, timestamp, uuid } from '../fields.ts';
import { untouchedStatus } from '../release.ts';
import { ageColumn, commonConditions, type Kind } from './kind.ts';
import { networkGroup } from './kubeovn-installation.ts';
import { databaseName, raftAddress, requestedBy, uidRef } from './network-fields.ts';

const approvalSpec = z
  .strictObject({
    installationRef: uidRef().meta({ description: 'The installation, by name and UID.' }),
    operationID: uuid().meta({ description: 'Operation that the approval is for; it is reused as its durable id.' }),
    databases: z
      .array(
        z.strictObject({
          name: databaseName().meta({ description: 'The database.' }),
          clusterID: uuid().meta({ description: 'Full id of the RAFT cluster.' }),
          serverID: uuid().meta({ description: 'Full id of the lost server.' }),
          address: raftAddress(),
        }),
      )
      .min(1)
      .max(2)
      .meta({ description: 'What is removed from which database.', ...listMap('name') }),
    reason: requiredText(1024).meta({ description: 'Why the member is lost for good.' }),
    expiresAt: timestamp().meta({ description: 'No new removal is dispatched afterwards.' }),
    requestedBy: requestedBy(),
    revoked: z.boolean().default(false).meta({ description: 'Withdraws the approval. It can not be taken back.' }),
  })
  .meta({
    ...celRules(
      {
        rule: 'self.installationRef == oldSelf.installationRef && self.operationID == oldSelf.operationID && self.databases == oldSelf.databases && self.reason == oldSelf.reason && self.expiresAt == oldSelf.expiresAt && has(self.requestedBy) == has(oldSelf.requestedBy) && (!has(self.requestedBy) || self.requestedBy == oldSelf.requestedBy)',
        message: 'an approval cannot be changed, only revoked',
      },
      { rule: '!oldSelf.revoked || self.revoked', message: 'a revoked approval stays revoked' },
    ),
  });

const approvalPhases = ['Pending', 'Reserved', 'Completed', 'Revoked', 'Expired', 'Invalid'] as const;

const approvalStatus = z
  .strictObject({
    observedGeneration: z.int().min(-1).optional(),
    phase: z.enum(approvalPhases).optional(),
    conditions: conditions().optional(),
    reservation: z
      .strictObject({ operationID: uuid(), reservedAt: timestamp() })
      .optional()
      .meta({ description: 'Operation that the decision is reserved for; set before the first removal is sent.' }),
    completedAt: timestamp().optional(),
    message: text(1024).optional(),
  })
  .meta({
    ...celRules(
      {
        rule: "!has(oldSelf.phase) || oldSelf.phase != 'Completed' || self == oldSelf",
        message: 'the status of a completed approval cannot be changed',
      },
      {
        rule: '!has(oldSelf.reservation) || (has(self.reservation) && self.reservation == oldSelf.reservation)',
        message: 'a reserved approval stays reserved for its operation',
      },
    ),
  })
  .prefault(untouchedStatus);

export const kubeOVNMemberRemovalApprovalKind: Kind = {
  group: networkGroup,
  version: 'v1alpha1',
  kind: 'KubeOVNMemberRemovalApproval',
  plural: 'kubeovnmemberremovalapprovals',
  singular: 'kubeovnmemberremovalapproval',
  shortNames: ['koma'],
  scope: 'Namespaced',
  description:
    'The decision of a person to remove one lost member from one or both OVN databases. The right to create it is the authority; it is never delivered from Git.',
  spec: approvalSpec,
  status: approvalStatus,
  rules: [],
  columns: [
    { name: 'Installation', type: 'string', jsonPath: '.spec.installationRef.name' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Revoked', type: 'boolean', jsonPath: '.spec.revoked' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    ageColumn,
  ],
  conditionTypes: commonConditions,
};
