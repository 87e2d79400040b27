import { z } from 'zod';
import { addressAnnotations, addressesGroup, addressFinalizers } from '../addresses.ts';
import { celRules, immutable } from '../cel.ts';
import { requiredText, text } from '../fields.ts';
import { addressPhases } from '../ledger-words.ts';
import { canonicalAddress, objectNameText, reclaimPolicies, standardConditions } from './ipaddress-fields.ts';
import { ageColumn, type Kind } from './kind.ts';

const claimRef = z.strictObject({
  namespace: objectNameText().meta({ description: 'Namespace of the claim.' }),
  name: objectNameText().meta({ description: 'Name of the claim.' }),
  uid: text(128).optional().meta({ description: 'UID of the claim; filled in when the claim takes the address.' }),
});

const source = z
  .strictObject({
    fromClass: z.strictObject({}).optional().meta({ description: 'Taken from the range of the class.' }),
    providerRef: z
      .strictObject({ id: requiredText(1024).meta({ description: 'Id that the provider knows the address by.' }) })
      .optional()
      .meta({ description: 'A reservation that somebody outside the cluster holds.' }),
  })
  .meta({
    description: 'Where the address comes from; exactly one.',
    ...celRules(
      {
        rule: 'has(self.fromClass) != has(self.providerRef)',
        message: 'source must name exactly one of fromClass and providerRef',
      },
      immutable('source'),
    ),
  });

const unheld = "!has(oldSelf.claimRef) || !has(oldSelf.claimRef.uid) || oldSelf.claimRef.uid == ''";
const bothRefs = '!has(oldSelf.claimRef) || !has(self.claimRef)';

const addressSpec = z
  .strictObject({
    className: objectNameText().meta({ description: 'Class that the address belongs to.' }),
    address: requiredText(64).meta({
      description: 'The address, in canonical form.',
      ...celRules(canonicalAddress, immutable('address')),
    }),
    reclaimPolicy: z
      .enum(reclaimPolicies)
      .default('Retain')
      .meta({ description: 'What becomes of the address when its claim goes: it stays Released, or is deleted.' }),
    claimRef: claimRef
      .optional()
      .meta({ description: 'The claim that has the address; the only record of it. Absent: nobody has it.' }),
    source,
  })
  .meta({
    ...celRules(
      {
        rule: `self.className == oldSelf.className || ${unheld}`,
        message: 'className cannot be changed while a claim has the address',
      },
      {
        rule: `${bothRefs} || (self.claimRef.__namespace__ == oldSelf.claimRef.__namespace__ && self.claimRef.name == oldSelf.claimRef.name)`,
        message: 'claimRef cannot be turned to another claim: take it away first',
      },
      {
        rule: `${bothRefs} || ${unheld} || !has(self.claimRef.uid) || self.claimRef.uid == '' || self.claimRef.uid == oldSelf.claimRef.uid`,
        message: 'claimRef.uid is filled in or emptied, never exchanged',
      },
    ),
  });

const addressStatus = z.strictObject({
  phase: z
    .enum(addressPhases)
    .optional()
    .meta({ description: 'Where the address is in its life; absent means Pending.' }),
  associatedTo: z
    .strictObject({
      kind: requiredText(63).meta({ description: 'Kind of the workload.' }),
      namespace: objectNameText().meta({ description: 'Namespace of the workload.' }),
      name: objectNameText().meta({ description: 'Name of the workload.' }),
    })
    .optional()
    .meta({ description: 'Workload that uses the address; written by the driver.' }),
  conditions: standardConditions().optional(),
});

export const ipAddressKind: Kind = {
  group: addressesGroup,
  version: 'v1alpha1',
  kind: 'IPAddress',
  plural: 'ipaddresses',
  singular: 'ipaddress',
  shortNames: [],
  categories: [],
  scope: 'Cluster',
  description:
    'One reserved address. Made by a driver or an administrator, never delivered from Git; it outlives the workloads that use it.',
  spec: addressSpec,
  status: addressStatus,
  rules: [],
  columns: [
    { name: 'Address', type: 'string', jsonPath: '.spec.address' },
    { name: 'Class', type: 'string', jsonPath: '.spec.className' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'ClaimNamespace', type: 'string', jsonPath: '.spec.claimRef.namespace' },
    { name: 'Claim', type: 'string', jsonPath: '.spec.claimRef.name' },
    { name: 'AttachedTo', type: 'string', jsonPath: '.status.associatedTo.name' },
    ageColumn,
  ],
  conditionTypes: [
    { type: 'Bound', meaning: 'a live claim has the address' },
    { type: 'Held', meaning: 'the backend keeps the address free for its workload; written by the driver' },
  ],
  facts: {
    annotations: [
      [
        addressAnnotations.held,
        '`"true"`: the address is not given back when the delay of its class is over; time goes on counting',
      ],
    ],
    finalizers: [[addressFinalizers.address, 'stays while a live claim has the address']],
    phases: [
      ['Pending', 'not looked at yet, waiting for its claim, or its text is no address'],
      ['Available', 'nobody has it, and it can be claimed'],
      ['Bound', 'a live claim has it'],
      ['Released', 'its claim is gone; it waits for a person, or for the delay of its class'],
      ['Conflict', 'a workload without authority uses it; set and withdrawn by the driver'],
      ['Lost', 'the reservation behind it is gone; set and withdrawn by the driver'],
    ],
    events: [
      'InvalidAddress',
      'DuplicateAddress',
      'DeletionBlocked',
      'Reclaimed',
      'Returned',
      'Held',
      'AssociationCleared',
      'Conflict',
      'ConflictResolved',
      'PlaceholderRefused',
      'ReservationLost',
      'ReservationRestored',
      'Releasing',
    ],
  },
};
