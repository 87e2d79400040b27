import { apiGroup } from '../constants.ts';
import { releaseSpec, releaseStatus } from '../release.ts';
import { ageColumn, commonConditions, type Kind, messageColumn, readyColumns } from './kind.ts';

export const releaseKind: Kind = {
  group: apiGroup,
  version: 'v1alpha1',
  kind: 'Release',
  plural: 'releases',
  singular: 'release',
  shortNames: ['krel'],
  scope: 'Namespaced',
  description: 'One payload that the cluster is to have, how far it may go, and how far it has got.',
  spec: releaseSpec,
  status: releaseStatus,
  rules: [
    {
      rule: "self.metadata.name == 'addresses' || self.metadata.name.matches('^(network|storage|manifests)-.+$')",
      message: 'the name must be network-<name>, storage-<name>, addresses or manifests-<name>',
    },
    {
      rule: '!self.spec.dependsOn.exists(d, d.name == self.metadata.name)',
      message: 'a release cannot depend on itself',
    },
  ],
  columns: [
    ...readyColumns,
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Step', type: 'string', jsonPath: '.status.sync.step' },
    { name: 'Done', type: 'integer', jsonPath: '.status.sync.done' },
    { name: 'Total', type: 'integer', jsonPath: '.status.sync.total' },
    { name: 'Desired', type: 'string', jsonPath: '.status.desired', priority: 1 },
    { name: 'Actual', type: 'string', jsonPath: '.status.actual', priority: 1 },
    messageColumn,
    ageColumn,
  ],
  conditionTypes: [
    ...commonConditions,
    { type: 'Accepted', meaning: 'the wanted payload passed all acceptance steps; the reason of False is the step' },
    { type: 'Unverified', meaning: 'an unsigned payload was accepted because a flag allows it' },
    {
      type: 'Held',
      meaning: 'an annotation or an override keeps the executor from writing the release or objects of it',
    },
    { type: 'Pinned', meaning: 'an annotation enforces a retained payload instead of the wanted one' },
  ],
};
