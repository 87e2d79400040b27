import { z } from 'zod';
import { celRules, listMap } from '../cel.ts';
import { dnsLabel, dnsName, nameRef, pinnedImage } from '../fields.ts';
import { listener, uidRef } from './network-fields.ts';

/** One explicit request to add, replace or retire a member of OVN central. */
const memberRequest = z
  .strictObject({
    name: dnsLabel().meta({ description: 'Stable name of the member.' }),
    node: dnsName().optional().meta({ description: 'Ready node that the member is pinned to.' }),
    storage: z
      .strictObject({ claimName: dnsName().meta({ description: 'Name of the claim.' }) })
      .optional()
      .meta({ description: 'Bound filesystem claim that holds the databases.' }),
    image: pinnedImage().optional().meta({ description: 'Runtime image, pinned by digest.' }),
    addresses: z
      .strictObject({
        northboundClient: listener('northboundClient'),
        southboundClient: listener('southboundClient'),
        northboundRaft: listener('northboundRaft'),
        southboundRaft: listener('southboundRaft'),
      })
      .optional()
      .meta({
        description: 'Listeners of the member.',
        ...celRules({
          rule: '[self.northboundClient, self.southboundClient, self.northboundRaft, self.southboundRaft].all(x, [self.northboundClient, self.southboundClient, self.northboundRaft, self.southboundRaft].exists_one(y, y == x))',
          message: 'the four addresses of a member must differ',
        }),
      }),
    tlsSecretRef: nameRef().optional().meta({ description: 'Secret with the keys of the member.' }),
    replacePod: dnsName().optional().meta({ description: 'Central pod that the member takes the place of.' }),
    retirePod: dnsName()
      .optional()
      .meta({ description: 'Central pod of the chart that is retired; nothing is added.' }),
    removalApprovalRef: uidRef().optional().meta({ description: 'Approval to remove a lost member.' }),
  })
  .meta({
    ...celRules(
      {
        rule: 'has(self.retirePod) || (has(self.node) && has(self.storage) && has(self.image) && has(self.addresses))',
        message: 'a member request needs node, storage, image and addresses unless it only retires a pod',
      },
      {
        rule: '!has(self.retirePod) || (!has(self.node) && !has(self.storage) && !has(self.image) && !has(self.addresses) && !has(self.tlsSecretRef) && !has(self.replacePod) && !has(self.removalApprovalRef))',
        message: 'a request with retirePod must name nothing else',
      },
      {
        rule: "!has(self.addresses) || has(self.tlsSecretRef) || [self.addresses.northboundClient, self.addresses.southboundClient, self.addresses.northboundRaft, self.addresses.southboundRaft].all(a, !a.startsWith('ssl:'))",
        message: 'ssl: addresses of a member need tlsSecretRef',
      },
    ),
  });

export const memberRequests = () =>
  z
    .array(memberRequest)
    .max(9)
    .optional()
    .meta({
      description: 'Requests that change the membership. Only after the first topology was recorded.',
      ...listMap('name'),
    });
