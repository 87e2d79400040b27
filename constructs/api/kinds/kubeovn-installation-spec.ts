import { z } from 'zod';
import { celRules, immutable } from '../cel.ts';
import { defaultCentralSelector } from '../constants.ts';
import {
  digest,
  dnsLabel,
  dnsName,
  duration,
  imageText,
  nameRef,
  requiredText,
  semverText,
  stringMap,
  text,
} from '../fields.ts';
import { memberRequests } from './kubeovn-members.ts';
import { backupSchedule, endpoint } from './network-fields.ts';

/** `spec` of KubeOVNInstallation. */

const installationModes = ['full', 'centralOnly', 'nodeNetworking'] as const;

export const networkStacks = ['ipv4', 'ipv6', 'dual_stack'] as const;

const loopback = '(127[.][0-9]{1,3}[.][0-9]{1,3}[.][0-9]{1,3}|\\\\[::1\\\\])(:[0-9]{1,5})?';
const urlHost = '[A-Za-z0-9.-]+(:[0-9]{1,5})?|\\\\[[0-9a-fA-F:.]+\\\\](:[0-9]{1,5})?';

const chart = z.strictObject({
  source: requiredText(1024).meta({
    description: 'HTTPS URL of a .tgz, or oci:// repository. http:// only for a literal loopback address.',
    ...celRules({
      rule: `self.matches('^https://(${urlHost})/[^?#@ ]*[.]tgz$') || self.matches('^http://${loopback}/[^?#@ ]*[.]tgz$') || self.matches('^oci://(${urlHost})(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$')`,
      message:
        'chart.source must be an https:// URL of a .tgz, an oci:// repository, or http:// with a literal loopback address',
    }),
  }),
  digest: digest().meta({ description: 'sha256 of the archive, or of the chart layer of an OCI artifact.' }),
});

const storage = z
  .strictObject({
    hostPath: z
      .string()
      .max(512)
      .regex(/^\/[A-Za-z0-9_./-]+$/)
      .optional()
      .meta({ description: 'Folder of the databases on the node (RAFT).' }),
    claim: z
      .strictObject({
        existingClaim: dnsName().optional().meta({ description: 'A claim that exists already.' }),
        storageClassName: dnsName().optional().meta({ description: 'Class of the claim that the chart makes.' }),
        size: z
          .string()
          .max(32)
          .regex(/^[1-9][0-9]*(Ki|Mi|Gi|Ti|k|M|G|T)?$/)
          .optional()
          .meta({ description: 'Size of the claim that the chart makes.' }),
      })
      .optional()
      .meta({
        description: 'Claim of the database (standalone).',
        ...celRules({
          rule: '!has(self.existingClaim) || (!has(self.storageClassName) && !has(self.size))',
          message: 'an existingClaim brings its own class and size',
        }),
      }),
  })
  .meta({
    ...celRules({
      rule: 'has(self.hostPath) != has(self.claim)',
      message: 'central.storage must name exactly one of hostPath and claim',
    }),
  });

const central = z
  .strictObject({
    replicas: z.int().min(1).max(9).default(3).meta({ description: 'Members of the RAFT cluster.' }),
    database: z
      .enum(['raft', 'standalone'])
      .default('raft')
      .meta({ description: 'Model of the databases.', ...celRules(immutable('central.database')) }),
    nodeSelector: z
      .record(z.string().max(317), z.string().max(63))
      .default({ ...defaultCentralSelector })
      .meta({ description: 'The one label that central nodes carry.', minProperties: 1, maxProperties: 1 }),
    storage: storage.optional().meta({ description: 'Where the databases live; the chart decides when absent.' }),
    memberRequests: memberRequests(),
  })
  .meta({
    ...celRules(
      {
        rule: "self.database != 'standalone' || self.replicas == 1",
        message: 'a standalone database needs central.replicas: 1',
      },
      {
        rule: "self.database != 'standalone' || !has(self.memberRequests) || self.memberRequests.size() == 0",
        message: 'memberRequests need a RAFT database',
      },
      {
        rule: "!has(self.storage) || (self.database == 'raft') == has(self.storage.hostPath)",
        message: 'a RAFT database lives on a hostPath, a standalone one in a claim',
      },
    ),
  });

const hcp = z
  .strictObject({
    enabled: z.boolean().default(false).meta({ description: 'Whether this cluster is half of a pair.' }),
    role: z
      .enum(['central', 'dataPlane'])
      .optional()
      .meta({ description: 'Half of the pair that this cluster holds.' }),
    peerNamespace: dnsLabel().optional().meta({ description: 'Namespace of the other half.' }),
    tlsSecretRef: nameRef().optional().meta({ description: 'Secret with the client keys; its data is never copied.' }),
    northbound: endpoint('hcp.northbound').optional(),
    southbound: endpoint('hcp.southbound').optional(),
  })
  .meta({
    ...celRules(
      { rule: '!self.enabled || has(self.role)', message: 'an enabled hcp needs role' },
      { rule: '!self.enabled || has(self.peerNamespace)', message: 'an enabled hcp needs peerNamespace' },
      { rule: '!self.enabled || has(self.tlsSecretRef)', message: 'an enabled hcp needs tlsSecretRef' },
      {
        rule: '!self.enabled || (has(self.northbound) && has(self.southbound))',
        message: 'an enabled hcp needs northbound and southbound',
      },
      {
        rule: "!has(self.northbound) || !has(self.southbound) || self.northbound.startsWith('ssl:') == self.southbound.startsWith('ssl:')",
        message: 'both hcp endpoints must use the same protocol',
      },
    ),
  });

const labelSelector = z.strictObject({
  matchLabels: stringMap(32).optional().meta({ description: 'Labels with exactly these values.' }),
  matchExpressions: z
    .array(
      z
        .strictObject({
          key: requiredText(317).meta({ description: 'Key of the label.' }),
          operator: z
            .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
            .meta({ description: 'How the label is compared.' }),
          values: z.array(text(63)).max(32).optional().meta({ description: 'Values for In and NotIn.' }),
        })
        .meta({
          ...celRules({
            rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            message: 'In and NotIn need values, Exists and DoesNotExist take none',
          }),
        }),
    )
    .max(16)
    .optional()
    .meta({ description: 'Conditions on labels; all must hold.' }),
});

const adoption = z
  .strictObject({
    enabled: z.boolean().default(false).meta({ description: 'Take over objects that exist and match the selector.' }),
    selector: labelSelector.optional().meta({ description: 'Labels that everything to be adopted carries.' }),
    takeManagers: z
      .array(requiredText(128))
      .max(16)
      .default([])
      .meta({ description: 'Field managers whose fields may be taken over.', 'x-kubernetes-list-type': 'set' }),
  })
  .meta({
    ...celRules({
      rule: '!self.enabled || (has(self.selector) && ((has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0) || (has(self.selector.matchExpressions) && self.selector.matchExpressions.size() > 0)))',
      message: 'an enabled adoption needs a selector that is not empty',
    }),
  });

const upgrade = z.strictObject({
  allowRollback: z.boolean().default(false).meta({ description: 'Allow a version below the observed one.' }),
  pauseOnDegraded: z.boolean().default(false).meta({ description: 'Start no upgrade while Degraded is True.' }),
  backup: z
    .strictObject({
      destination: requiredText(1024).meta({
        description: 'file:///absolute/folder or s3://bucket/prefix.',
        ...celRules({
          rule: "self.matches('^file:///[A-Za-z0-9_][A-Za-z0-9_./-]*$') || self.matches('^s3://[a-z0-9][a-z0-9.-]*[a-z0-9](/[A-Za-z0-9_.=/-]*)?$')",
          message: 'backup.destination must be file:///<absolute folder> or s3://<bucket>/<prefix>',
        }),
      }),
      schedule: backupSchedule().optional(),
      retention: z
        .strictObject({
          keepLast: z.int().min(1).max(1000).optional().meta({ description: 'Number of backup pairs that are kept.' }),
          maxAge: duration().optional().meta({ description: 'Age up to which backup pairs are kept.' }),
        })
        .optional()
        .meta({ description: 'What may be deleted; nothing while both are absent.' }),
    })
    .optional()
    .meta({ description: 'Backups of the databases before a change and on a schedule.' }),
});

export const installationSpec = z
  .strictObject({
    mode: z
      .enum(installationModes)
      .meta({ description: 'Parts that this installation holds.', ...celRules(immutable('mode')) }),
    version: semverText().meta({
      description: 'Kube-OVN version; equals appVersion of the chart but for a leading v.',
    }),
    chart: chart.meta({ description: 'The upstream chart, pinned.' }),
    networkStack: z
      .enum(networkStacks)
      .optional()
      .meta({ description: 'Address families; the chart decides when absent.' }),
    central: central.prefault({}).meta({ description: 'OVN central: how many members, where and on what.' }),
    dataPlane: z
      .strictObject({
        nodeSelector: stringMap(16).optional().meta({ description: 'Merged into every data-plane workload.' }),
        ovsUpdateStrategy: z
          .enum(['RollingUpdate', 'OnDelete'])
          .default('RollingUpdate')
          .meta({ description: 'How the pods of ovs-ovn are replaced.' }),
      })
      .prefault({})
      .meta({ description: 'Node agents and the network controller.' }),
    external: z
      .strictObject({ northbound: endpoint('external.northbound'), southbound: endpoint('external.southbound') })
      .optional()
      .meta({ description: 'OVN databases outside of this installation.' }),
    hcp: hcp.optional().meta({ description: 'Half of a hosted-control-plane pair.' }),
    adoption: adoption.optional().meta({ description: 'Take over what already exists.' }),
    networkProbe: z
      .strictObject({ image: imageText().meta({ description: 'Image that holds /network-probe.' }) })
      .optional()
      .meta({ description: 'Probe of the network; to be set before the first apply.' }),
    upgrade: upgrade.optional().meta({ description: 'How a change of version is carried out.' }),
  })
  .meta({
    ...celRules(
      {
        rule: "self.mode != 'nodeNetworking' || has(self.external) || (has(self.hcp) && self.hcp.enabled)",
        message: 'mode nodeNetworking needs external or an enabled hcp',
      },
      {
        rule: "!has(self.external) || self.mode == 'nodeNetworking'",
        message: 'external needs mode nodeNetworking',
      },
      {
        rule: '!has(self.external) || !has(self.hcp) || !self.hcp.enabled',
        message: 'external and an enabled hcp exclude each other',
      },
      {
        rule: "!has(self.hcp) || !self.hcp.enabled || !has(self.hcp.role) || (self.hcp.role == 'central' ? self.mode == 'centralOnly' : self.mode == 'nodeNetworking')",
        message: 'hcp role central needs mode centralOnly, role dataPlane needs mode nodeNetworking',
      },
      {
        rule: "self.mode != 'nodeNetworking' || !has(self.central.memberRequests) || self.central.memberRequests.size() == 0",
        message: 'memberRequests need a local central',
      },
    ),
  });
export type InstallationSpec = z.output<typeof installationSpec>;
export type InstallationSpecInput = z.input<typeof installationSpec>;
