import { z } from 'zod';
import { addressAnnotations, addressesGroup, addressFinalizers } from '../addresses.ts';
import { celRules, immutable } from '../cel.ts';
import { text } from '../fields.ts';
import { claimFamilies, claimPhases } from '../ledger-words.ts';
import { objectNameText, standardConditions } from './ipaddress-fields.ts';
import { ageColumn, type Kind } from './kind.ts';

const claimSpec = z
  .strictObject({
    className: text(253).optional().meta({ description: 'Class of the address; absent: the default class.' }),
    family: z
      .enum(claimFamilies)
      .default('IPv4')
      .meta({
        description: 'Family of the address; Dual asks for one of each.',
        ...celRules(immutable('family')),
      }),
    addressName: text(253)
      .optional()
      .meta({ description: 'Name of the one IPAddress that is wanted; nothing is provisioned for such a claim.' }),
  })
  .meta({
    ...celRules({
      rule: "!has(self.addressName) || self.addressName == '' || self.family != 'Dual'",
      message: 'addressName names one address: use family IPv4 or IPv6',
    }),
  })
  // A claim without a spec asks for an IPv4 address of the default class; such claims are stored in clusters.
  .prefault({});

const claimStatus = z.strictObject({
  phase: z.enum(claimPhases).optional().meta({ description: 'Where the claim is in its life; absent means Pending.' }),
  className: text(253)
    .optional()
    .meta({ description: 'Class that was found for the claim; a later default does not move it.' }),
  addresses: z
    .array(
      z.strictObject({
        name: objectNameText().meta({ description: 'Name of the IPAddress.' }),
        address: text(64).meta({ description: 'The address.' }),
      }),
    )
    .max(256)
    .optional()
    .meta({ description: 'Addresses that the claim has, by name; made from the addresses, and made again when lost.' }),
  conditions: standardConditions().optional(),
});

export const ipAddressClaimKind: Kind = {
  group: addressesGroup,
  version: 'v1alpha1',
  kind: 'IPAddressClaim',
  plural: 'ipaddressclaims',
  singular: 'ipaddressclaim',
  shortNames: [],
  categories: [],
  scope: 'Namespaced',
  description:
    'The wish of a tenant for an address that stays, whatever becomes of the Service that uses it. Never delivered from Git. A ResourceQuota counts claims, not addresses: one of family Dual is one claim with two.',
  spec: claimSpec,
  status: claimStatus,
  rules: [],
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Class', type: 'string', jsonPath: '.status.className' },
    { name: 'Addresses', type: 'string', jsonPath: '.status.addresses[*].address' },
    ageColumn,
  ],
  conditionTypes: [
    { type: 'ClassResolved', meaning: 'the class of the claim was found' },
    { type: 'Bound', meaning: 'the claim has an address of every family that it asks for' },
  ],
  facts: {
    annotations: [
      [
        addressAnnotations.provisioner,
        'provisioner of the class; written by the core, and set back when somebody else writes it',
      ],
      [addressAnnotations.replaceLost, '`"true"`: a lost address may be replaced by another one'],
    ],
    finalizers: [[addressFinalizers.claim, 'stays until every address of the claim is released or deleted']],
    phases: [
      ['Pending', 'an address is still missing; never entered again once the claim was Bound'],
      ['Bound', 'the claim has an address of every family that it asks for'],
      ['Lost', 'an address that the claim had is gone; it is waited for, and not replaced'],
    ],
    events: [
      'ClassNotFound',
      'NoDefaultClass',
      'MultipleDefaultClasses',
      'AddressNameUnusable',
      'PreBindingRefused',
      'Matched',
      'Pending',
      'Bound',
      'Lost',
      'AddressDeleted',
      'AddressReleased',
      'Reserving',
      'Provisioned',
      'LedgerMismatch',
      'PlaceholderRefused',
    ],
  },
};
