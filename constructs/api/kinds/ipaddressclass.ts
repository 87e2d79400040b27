import { z } from 'zod';
import { addressAnnotations, addressesGroup, addressFinalizers } from '../addresses.ts';
import { celRules, immutable } from '../cel.ts';
import { duration, requiredText } from '../fields.ts';
import { reclaimPolicies } from './ipaddress-fields.ts';
import { ageColumn, type Kind } from './kind.ts';

const classSpec = z.strictObject({
  provisioner: requiredText(253).meta({
    description: 'Name of the driver that serves claims of this class.',
    ...celRules(immutable('provisioner')),
  }),
  reclaimPolicy: z.enum(reclaimPolicies).default('Retain').meta({
    description: 'What becomes of an address when its claim goes; copied onto addresses that are made later.',
  }),
  parameters: z.record(z.string(), z.unknown()).optional().meta({
    description: 'Settings of the driver, which alone knows their shape.',
    'x-kubernetes-preserve-unknown-fields': true,
  }),
  releaseDelay: duration()
    .optional()
    .meta({
      description:
        'How long an address stays Released before it may be claimed again; absent: until a person takes its claimRef away.',
      ...celRules({
        rule: "duration(self) >= duration('0s') && duration(self) <= duration('87600h')",
        message: 'releaseDelay must be from 0s to 87600h',
      }),
    }),
});

export const ipAddressClassKind: Kind = {
  group: addressesGroup,
  version: 'v1alpha1',
  kind: 'IPAddressClass',
  plural: 'ipaddressclasses',
  singular: 'ipaddressclass',
  shortNames: [],
  categories: [],
  scope: 'Cluster',
  description: 'A kind of address that can be claimed: who provides it, and what becomes of it afterwards.',
  spec: classSpec,
  rules: [],
  columns: [
    { name: 'Provisioner', type: 'string', jsonPath: '.spec.provisioner' },
    { name: 'ReclaimPolicy', type: 'string', jsonPath: '.spec.reclaimPolicy' },
    ageColumn,
  ],
  conditionTypes: [],
  facts: {
    annotations: [
      [
        addressAnnotations.defaultClass,
        '`"true"`: claims that name no class get this one, if no other class says the same',
      ],
    ],
    finalizers: [[addressFinalizers.class, 'stays while an address of the class exists, in whatever phase']],
    events: ['ClassInUse', 'InvalidClassParameters', 'ClassRangeInUse', 'PoolRefused'],
  },
};
