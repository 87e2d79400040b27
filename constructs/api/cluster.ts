import { z } from 'zod';
import { apiVersion } from './constants.ts';
import {
  dnsLabel,
  dnsName,
  duration,
  groupKind,
  hostPort,
  imageText,
  nameRef,
  requiredText,
  stringMap,
  text,
  upperCamel,
  uuid,
} from './fields.ts';
import { approval, dependsOn, overrides, prunePolicy, suspendPhases } from './release.ts';

/** `cluster.yaml`: what belongs to the cluster rather than to one installation in it. */

export const couriers = ['flux', 'argo', 'none'] as const;
export type Courier = (typeof couriers)[number];

const secretRef = () => nameRef();

const delivery = z
  .strictObject({
    repository: z
      .string()
      .min(1)
      .max(1024)
      .regex(/^([A-Za-z0-9_.~/-]+|[a-z][a-z0-9+.-]*:\/\/[^\s]+|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:[^\s]+)$/)
      .meta({
        description: 'Repository that receives the rendered tree: URL without credentials, or a relative path.',
      }),
    branch: z
      .string()
      .min(1)
      .max(255)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/)
      .default('main'),
    path: z
      .string()
      .max(512)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/)
      .optional()
      .meta({ description: 'Folder of this cluster in the repository; the name of the cluster when absent.' }),
    author: z.strictObject({ name: requiredText(128), email: requiredText(254) }),
    courier: z.enum(couriers).default('none'),
    flux: z
      .strictObject({
        namespace: dnsLabel().default('flux-system'),
        interval: duration().default('1m'),
        timeout: duration().default('5m'),
        secretRef: secretRef().optional(),
      })
      .optional(),
    argo: z.strictObject({ namespace: dnsLabel().default('argocd'), project: dnsName().default('default') }).optional(),
  })
  .meta({
    description: 'Where the rendered tree goes, and who applies it.',
    'x-kubernetes-validations': [
      {
        rule: "!self.repository.matches('^[a-z][a-z0-9+.-]*://[^/@]*:[^/@]*@')",
        message: 'the repository URL must not hold a password; give it to git by a credential helper',
      },
      {
        rule: "!has(self.flux) || self.courier == 'flux'",
        message: 'flux settings need courier: flux',
      },
      {
        rule: "!has(self.argo) || self.courier == 'argo'",
        message: 'argo settings need courier: argo',
      },
      {
        rule: "!has(self.path) || !self.path.matches('(^|/)[.][.]?(/|$)')",
        message: 'the path must not hold . or .. segments',
      },
    ],
  });

export const registryMirror = z.strictObject({
  match: requiredText(320).meta({ description: 'Host, or host and repository prefix, of the references it rewrites.' }),
  mirror: requiredText(320).meta({ description: 'What stands in its place.' }),
  caFile: text(512).optional(),
  pullSecret: dnsName().optional(),
});
export type RegistryMirror = z.output<typeof registryMirror>;

export const releaseDelivery = z.strictObject({
  paused: z.boolean().optional(),
  suspendPhases: suspendPhases().optional(),
  overrides: overrides().optional(),
  dependsOn: dependsOn().optional(),
  approval: approval.optional(),
  prune: prunePolicy.optional(),
});
export type ReleaseDelivery = z.output<typeof releaseDelivery>;

export const clusterSpec = z
  .strictObject({
    kubernetesVersion: z
      .string()
      .max(64)
      .regex(/^v?(1\.(3[0-9]|[4-9][0-9]|[1-9][0-9]{2})|[2-9]\.[0-9]+)\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/)
      .meta({ description: 'Version of the API server, 1.30 or later.' }),
    clusterUID: uuid()
      .optional()
      .meta({ description: 'UID of namespace kube-system; the executor refuses another cluster.' }),
    delivery,
    images: z
      .strictObject({ executor: imageText(), probe: imageText().optional() })
      .meta({ description: 'Images of our own parts.' }),
    executor: z
      .strictObject({
        namespace: dnsLabel().default('keelson-system'),
        replicas: z.int().min(1).max(3).default(2),
        apiServer: hostPort()
          .optional()
          .meta({ description: 'Address of the API server that needs neither DNS nor a cluster address.' }),
        nodeSelector: stringMap(16).optional(),
        retain: z.int().min(1).max(10).default(3).meta({ description: 'Payloads that are kept per release.' }),
        testBypassGates: z
          .array(upperCamel(64))
          .max(8)
          .default([])
          .meta({
            description:
              'Gates that a test cluster goes past without looking. The executor refuses them unless its namespace is labelled keelson.dev/test-cluster=true.',
          }),
      })
      .prefault({}),
    allow: z
      .strictObject({
        chartHosts: z.array(hostPort()).max(64).default([]),
        imageHosts: z.array(hostPort()).max(64).default([]),
        extraKinds: z.array(groupKind()).max(64).default([]),
        principals: z
          .strictObject({ courier: requiredText(253), admins: z.array(requiredText(253)).max(32) })
          .optional()
          .meta({ description: 'Who may write Releases, payloads and trust objects.' }),
      })
      .prefault({})
      .meta({ description: 'Closed lists; what they do not name is refused.' }),
    registries: z.array(registryMirror).max(64).default([]),
    fenceAgent: z
      .strictObject({
        enabled: z.boolean().default(false),
        serverTLSSecret: dnsName().optional(),
        clientCASecret: dnsName().optional(),
      })
      .meta({
        'x-kubernetes-validations': [
          {
            rule: '!self.enabled || (has(self.serverTLSSecret) && has(self.clientCASecret))',
            message: 'an enabled fence agent needs serverTLSSecret and clientCASecret',
          },
        ],
      })
      .prefault({}),
    deletionGuard: z.boolean().default(true),
    acceptUnverifiedNetwork: z
      .boolean()
      .default(false)
      .meta({ description: 'Render a mode with a data plane without networkProbe.image; NetworkReady stays Unknown.' }),
    releases: z
      .record(dnsLabel(), releaseDelivery)
      .meta({ maxProperties: 256, description: 'Delivery settings by release name.' })
      .optional(),
  })
  .meta({ description: 'Settings of the cluster.' });
export type ClusterSpec = z.output<typeof clusterSpec>;

export const cluster = z.strictObject({
  apiVersion: z.literal(apiVersion),
  kind: z.literal('Cluster'),
  metadata: z.strictObject({ name: dnsLabel() }),
  spec: clusterSpec,
});
export type Cluster = z.output<typeof cluster>;
export type ClusterInput = z.input<typeof cluster>;

/** Folder of the cluster in the rendered repository. */
export const deliveryPath = (c: Cluster): string => c.spec.delivery.path ?? c.metadata.name;
