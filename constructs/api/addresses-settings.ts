import { z } from 'zod';
import { dnsLabel, dnsName, requiredText } from './fields.ts';

/** `spec.addresses` of cluster.yaml: the role that keeps the address ledger, and who may do what with it. */

const addressWorkers = ['core', 'driver'] as const;

/** What the driver does with a Service that goes on using an address which is not its own any more. */
const forcedReleases = ['never', 'deleted', 'always'] as const;

/** A policy that holds everybody back but those who are named. */
const allowlist = (description: string) =>
  z
    .strictObject({
      enabled: z.boolean().default(false).meta({ description: 'Whether the policy is rendered.' }),
      allowedUsers: z.array(requiredText(253)).max(64).default([]).meta({
        description:
          'User names that may, such as system:serviceaccount:flux-system:kustomize-controller: whoever applies such objects from Git belongs here, and controllers of the platform that write them.',
        'x-kubernetes-list-type': 'set',
      }),
      allowedGroups: z
        .array(requiredText(253))
        .max(64)
        .default([])
        .meta({ description: 'Groups that may.', 'x-kubernetes-list-type': 'set' }),
    })
    .prefault({})
    .meta({ description });
export type Allowlist = z.output<ReturnType<typeof allowlist>>;

const metallb = z
  .strictObject({
    namespace: dnsLabel().default('metallb-system').meta({ description: 'Namespace of MetalLB.' }),
    account: dnsName()
      .default('controller')
      .meta({ description: 'Service account of the controller of MetalLB; policies let it do its work.' }),
    placeholderNamespace: dnsLabel().default('metallb-iad-system').meta({
      description:
        'Namespace of the Services that hold addresses. It is made where it is not there, closed to everybody else, and never removed. It can not be changed while the ledger is in use.',
    }),
    loadBalancerClass: requiredText(253)
      .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/)
      .optional()
      .meta({ description: 'Class of Services that MetalLB serves, where it was started with --lb-class.' }),
    forcedRelease: z.enum(forcedReleases).default('deleted').meta({
      description:
        'Whether an address is taken off a Service that goes on using it: once it is deleted from the ledger, also when only the annotation was taken off the Service, or never.',
    }),
  })
  .prefault({})
  .meta({ description: 'The driver for MetalLB.' });

export const addressesSettings = z.strictObject({
  workers: z
    .array(z.enum(addressWorkers))
    .min(1)
    .max(addressWorkers.length)
    .default([...addressWorkers])
    .meta({
      description: 'What the role does; the rest is left to whoever does it already.',
      'x-kubernetes-list-type': 'set',
    }),
  leaseNamespace: dnsLabel().optional().meta({
    description:
      'Namespace of the Leases: where controllers before these may still run, theirs. That of the executor when absent.',
  }),
  metallb,
  admission: z
    .strictObject({
      addressName: allowlist('Who may ask for one particular address: set or change addressName of a claim.'),
      pins: allowlist(
        'Who may choose addresses and pools of MetalLB: set, change or take away its annotations, spec.loadBalancerIP or the mark of the driver on a Service.',
      ),
      provisioner: allowlist('Who, beside the core, may write the provisioner on a claim.'),
    })
    .prefault({})
    .meta({ description: 'Admission policies for tenants. None of them binds administrators (allow.principals).' }),
});
export type AddressesSettings = z.output<typeof addressesSettings>;

/** The settings, with their defaults where the file names none. */
export const addressesOf = (spec: { readonly addresses?: AddressesSettings | undefined }): AddressesSettings =>
  spec.addresses ?? addressesSettings.parse({});
