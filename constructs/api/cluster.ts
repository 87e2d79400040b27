import { z } from 'zod';
import { addressesSettings } from './addresses-settings.ts';
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

const couriers = ['flux', 'argo', 'none'] as const;

const secretRef = () => nameRef();

const prefix = () =>
  z
    .string()
    .min(1)
    .max(40)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .default('keelson')
    .meta({
      description: 'Start of the names of the objects; one for each cluster where several share the namespace.',
    });

const fluxSettings = z.strictObject({
  namespace: dnsLabel().default('flux-system').meta({ description: 'Namespace of the objects of Flux.' }),
  prefix: prefix(),
  interval: duration().default('1m').meta({ description: 'How often Flux looks at the repository.' }),
  timeout: duration().default('5m').meta({ description: 'How long Flux tries.' }),
  secretRef: secretRef().optional().meta({ description: 'Secret with the credentials of the repository.' }),
  artifactFor: z.array(dnsLabel()).max(64).default([]).meta({
    description:
      'Releases whose payload the executor fetches from the artifact of Flux, in place of ConfigMaps. Not for the network itself, and nothing that keelson deliver can bring.',
    'x-kubernetes-list-type': 'set',
  }),
});

const argoSettings = z.strictObject({
  namespace: dnsLabel().default('argocd').meta({ description: 'Namespace of the Applications.' }),
  prefix: prefix(),
  project: dnsName().default('default').meta({ description: 'Project of the Applications.' }),
});

const delivery = z
  .strictObject({
    repository: z
      .string()
      .min(1)
      .max(1024)
      .regex(
        /^([A-Za-z0-9_.~/][A-Za-z0-9_.~/-]*|[a-z][a-z0-9+.-]*:\/\/[^\s-][^\s]*|[A-Za-z0-9_.][A-Za-z0-9_.-]*@[A-Za-z0-9.][A-Za-z0-9.-]*:[^\s]+)$/,
      )
      .meta({
        description: 'Repository that receives the rendered tree: URL without credentials, or a relative path.',
      }),
    branch: z
      .string()
      .min(1)
      .max(255)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/)
      .default('main')
      .meta({ description: 'Branch that receives the rendered tree.' }),
    path: z
      .string()
      .max(512)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/)
      .optional()
      .meta({ description: 'Folder of this cluster in the repository; the name of the cluster when absent.' }),
    author: z
      .strictObject({
        name: requiredText(128).meta({ description: 'Name in commits.' }),
        email: requiredText(254).meta({ description: 'Address in commits.' }),
      })
      .meta({ description: 'Author of the commits.' }),
    courier: z
      .enum(couriers)
      .default('none')
      .meta({ description: 'Who applies the rendered tree; none leaves it to keelson deliver.' }),
    flux: fluxSettings.optional().meta({ description: 'Settings for courier flux.' }),
    argo: argoSettings.optional().meta({ description: 'Settings for courier argo.' }),
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
        rule: "!has(self.path) || !self.path.matches('(^|/)([.][.]?|[.][gG][iI][tT])?(/|$)')",
        message: 'the path must not hold empty, ., .. or .git segments',
      },
      {
        rule: "!has(self.branch) || !self.branch.matches('[.][.]|//|/[.]|[.]lock(/|$)|[./]$|^HEAD$|^refs/')",
        message: 'git does not take the name for a branch; write it without refs/heads/',
      },
    ],
  });

export const registryMirror = z.strictObject({
  match: requiredText(320).meta({ description: 'Host, or host and repository prefix, of the references it rewrites.' }),
  mirror: requiredText(320).meta({ description: 'What stands in its place.' }),
  caFile: text(512)
    .optional()
    .meta({ description: 'PEM file with the CA of the mirror, relative to the folder of the cluster.' }),
  pullSecret: dnsName().optional().meta({ description: 'Secret that pods pull with.' }),
});
export type RegistryMirror = z.output<typeof registryMirror>;

const releaseDelivery = z.strictObject({
  paused: z.boolean().optional().meta({ description: 'Write nothing; keep looking and reporting.' }),
  suspendPhases: suspendPhases().optional().meta({ description: 'Phases that are not started.' }),
  overrides: overrides().optional().meta({ description: 'Objects that are left alone; gates still count them.' }),
  dependsOn: dependsOn().optional().meta({ description: 'Releases that must be Ready first.' }),
  approval: approval.optional(),
  prune: prunePolicy.optional(),
});

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
      .strictObject({
        executor: imageText().meta({ description: 'Image of the executor roles.' }),
        probe: imageText()
          .optional()
          .meta({ description: 'Image of the sidecars; without it there are none, and no evidence.' }),
      })
      .meta({ description: 'Images of our own parts.' }),
    executor: z
      .strictObject({
        namespace: dnsLabel()
          .default('keelson-system')
          .meta({ description: 'Namespace of the executor, the payloads and the Releases.' }),
        replicas: z.int().min(1).max(3).default(2).meta({ description: 'Pods of each role; one of them works.' }),
        apiServer: hostPort()
          .optional()
          .meta({ description: 'Address of the API server that needs neither DNS nor a cluster address.' }),
        nodeSelector: stringMap(16).optional().meta({ description: 'Nodes that may run the executor.' }),
        retain: z.int().min(1).max(10).default(3).meta({ description: 'Payloads that are kept per release.' }),
        evidenceAtOnce: z.int().min(1).max(64).optional().meta({
          description: 'Nodes that are asked for evidence at a time; four when absent. A thousand nodes want sixteen.',
        }),
        monitoring: z.enum(['none', 'configMaps', 'prometheusRule']).default('none').meta({
          description:
            'Dashboard and alert rules: none, both as ConfigMaps, or the rules as a PrometheusRule, whose definition must be there before.',
        }),
        testBypassGates: z.array(upperCamel(64)).max(8).default([]).meta({
          description:
            'Gates that a test cluster goes past without looking. The executor refuses them unless its namespace is labelled keelson.dev/test-cluster=true.',
        }),
        testLeaseDuration: duration().optional().meta({
          description:
            'How long a Lease counts in a test cluster, in place of 30s: a crashed replica is followed sooner, and less delay is forgiven. Refused like testBypassGates.',
        }),
        testObserveInterval: duration().optional().meta({
          description:
            'Pause between rounds of observation in a test cluster, in place of 5s and 8s: a fault is told sooner. Refused like testBypassGates.',
        }),
      })
      .prefault({})
      .meta({ description: 'The executor in the cluster.' }),
    allow: z
      .strictObject({
        chartHosts: z.array(hostPort()).max(64).default([]).meta({ description: 'Hosts that charts may come from.' }),
        imageHosts: z
          .array(hostPort())
          .max(64)
          .default([])
          .meta({ description: 'Hosts whose images must be locked wherever they are named.' }),
        extraKinds: z
          .array(groupKind())
          .max(64)
          .default([])
          .meta({ description: 'Further kinds, as group/Kind, that payloads may hold.' }),
        principals: z
          .strictObject({
            courier: requiredText(253).optional().meta({
              description:
                'User name of the courier; the account of the controller that delivery.courier names when absent.',
            }),
            admins: z
              .array(requiredText(253))
              .max(32)
              .default([])
              .meta({ description: 'User and group names of people, besides group system:masters.' }),
            authority: requiredText(253).optional().meta({
              description:
                'User name of who brings Secret keelson-evidence-ca in place of the executor, such as the account of cert-manager.',
            }),
          })
          .optional()
          .meta({ description: 'Who may write Releases, payloads and trust objects.' }),
      })
      .prefault({})
      .meta({ description: 'Closed lists; what they do not name is refused.' }),
    registries: z.array(registryMirror).max(64).default([]).meta({ description: 'Mirrors; the first match counts.' }),
    fenceAgent: z
      .strictObject({
        enabled: z.boolean().default(false).meta({ description: 'Put the fence agent beside OVN central.' }),
        serverTLSSecret: dnsName().optional().meta({ description: 'Secret with the keys of the agent.' }),
        clientCASecret: dnsName().optional().meta({ description: 'Secret with the CA of its clients.' }),
      })
      .meta({
        description: 'The agent that lets a mutation through only under a current Lease.',
        'x-kubernetes-validations': [
          {
            rule: '!self.enabled || (has(self.serverTLSSecret) && has(self.clientCASecret))',
            message: 'an enabled fence agent needs serverTLSSecret and clientCASecret',
          },
        ],
      })
      .prefault({}),
    addresses: addressesSettings.optional().meta({
      description:
        'The address ledger. It is kept wherever a class is in Git, and where this is set; take it out only after the ledger was emptied.',
    }),
    deletionGuard: z
      .boolean()
      .default(true)
      .meta({ description: 'Refuse the deletion of what holds the network or data, unless it is confirmed.' }),
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

export type Delivery = ClusterSpec['delivery'];

/** Settings of Flux, with their defaults where the file names none. */
export const fluxOf = (d: Delivery): z.output<typeof fluxSettings> => d.flux ?? fluxSettings.parse({});
/** Settings of Argo CD, with their defaults where the file names none. */
export const argoOf = (d: Delivery): z.output<typeof argoSettings> => d.argo ?? argoSettings.parse({});

/** Folder of the cluster in the rendered repository. */
export const deliveryPath = (c: Cluster): string => c.spec.delivery.path ?? c.metadata.name;
