import { z } from 'zod';
import {
  conditions,
  digest,
  dnsLabel,
  dnsName,
  duration,
  objectName,
  requiredText,
  text,
  timestamp,
  upperCamel,
} from './fields.ts';
import { releaseStates } from './release-states.ts';

/** Release: one payload that the cluster is to have, how far it may go, and how far it has got. */

export type ReleaseState = (typeof releaseStates)[number];

/** Steps before the first write, in order. */
export const acceptanceSteps = ['Fetch', 'Verify', 'Preconditions', 'DryRun', 'Plan', 'Approval', 'Accepted'] as const;
export type AcceptanceStep = (typeof acceptanceSteps)[number];

export const phaseStates = ['Pending', 'Applying', 'Waiting', 'Done', 'Blocked', 'Failed', 'Suspended'] as const;
export type PhaseState = (typeof phaseStates)[number];

export const gateStates = ['Unknown', 'False', 'True'] as const;
export type GateState = (typeof gateStates)[number];

export const changeClasses = [
  'none',
  'policy',
  'additive',
  'free',
  'keelson',
  'versionOnly',
  'rollback',
  'membership',
  'blocked',
] as const;
export type ChangeClass = (typeof changeClasses)[number];

const fluxSource = z
  .strictObject({
    kind: z
      .enum(['GitRepository', 'OCIRepository', 'Bucket', 'ExternalArtifact'])
      .meta({ description: 'Kind of the source.' }),
    name: dnsName().meta({ description: 'Name of the source.' }),
    namespace: dnsLabel().meta({ description: 'Namespace of the source; the executor must be allowed to read there.' }),
    path: z
      .string()
      .max(512)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/)
      .meta({ description: 'Folder of the payload inside the artifact.' }),
  })
  .meta({
    description: 'Artifact of a Flux source.',
    'x-kubernetes-validations': [
      {
        rule: "!self.path.matches('(^|/)[.]{0,2}(/|$)')",
        message: 'the path must not hold empty, . or .. segments',
      },
    ],
  });

const releaseSource = z
  .strictObject({
    configMaps: z.strictObject({}).optional().meta({ description: 'The inbox ConfigMaps that a courier delivered.' }),
    flux: fluxSource.optional(),
  })
  .meta({
    description: 'Where the payload comes from; exactly one.',
    'x-kubernetes-validations': [
      {
        rule: 'has(self.configMaps) != has(self.flux)',
        message: 'name exactly one source: configMaps or flux',
      },
    ],
  });

const override = z.strictObject({
  group: text(253).meta({ description: 'API group; empty for the core group.' }),
  kind: requiredText(63).meta({ description: 'Kind of the object.' }),
  namespace: dnsLabel().optional().meta({ description: 'Namespace of the object.' }),
  name: objectName().meta({ description: 'Name of the object.' }),
});

export const approval = z
  .strictObject({
    mode: z
      .enum(['never', 'destructive', 'always'])
      .default('destructive')
      .meta({ description: 'When a plan needs a person: never, when it replaces or prunes what matters, or always.' }),
    planDigest: digest().optional().meta({ description: 'Digest of the plan that a person has approved.' }),
  })
  .meta({ description: 'Which plans need approval, and which one has it.' });

export const prunePolicy = z
  .strictObject({
    enabled: z.boolean().default(true).meta({ description: 'Whether objects are removed at all.' }),
    maxPercent: z.int().min(0).max(100).default(10).meta({ description: 'Share of the old objects, in percent.' }),
    maxCount: z.int().min(0).max(10_000).default(20).meta({ description: 'Number of objects.' }),
  })
  .meta({ description: 'Removal of objects that leave the payload; a prune over either bound needs approval.' });
export type PrunePolicy = z.output<typeof prunePolicy>;

export const suspendPhases = () => z.array(dnsLabel()).max(64);
export const overrides = () => z.array(override).max(100);
export const dependsOn = () =>
  z.array(z.strictObject({ name: dnsName().meta({ description: 'Name of the Release.' }) })).max(32);

export const releaseSpec = z.strictObject({
  payload: z
    .strictObject({ digest: digest().meta({ description: 'Content digest of the payload.' }) })
    .meta({ description: 'Content digest of the payload that is wanted.' }),
  source: releaseSource,
  paused: z.boolean().default(false).meta({ description: 'Write nothing; keep looking and reporting.' }),
  suspendPhases: suspendPhases()
    .default([])
    .meta({ description: 'Phases that are not started.', 'x-kubernetes-list-type': 'set' }),
  overrides: overrides().default([]).meta({ description: 'Objects that are left alone; gates still count them.' }),
  dependsOn: dependsOn()
    .default([])
    .meta({
      description: 'Releases that must be Ready first.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    }),
  approval: approval.prefault({}),
  prune: prunePolicy.prefault({}),
});
export type ReleaseSpec = z.output<typeof releaseSpec>;
export type ReleaseSpecInput = z.input<typeof releaseSpec>;

export const blocker = z.strictObject({
  object: text(700).optional(),
  gate: text(130).optional(),
  reason: upperCamel(128),
  message: text(1024),
  since: timestamp(),
  softLimit: duration().optional(),
  limit: duration().optional(),
});
export type Blocker = z.infer<typeof blocker>;

const planCounts = z.strictObject({
  adopted: z.int().min(0).optional(),
  created: z.int().min(0),
  configured: z.int().min(0),
  unchanged: z.int().min(0),
  replaced: z.int().min(0),
  pruned: z.int().min(0),
  absent: z.int().min(0),
});

const releasePlan = z.strictObject({
  digest: digest(),
  changeClass: z.enum(changeClasses),
  counts: planCounts,
  confidence: z.enum(['full', 'partial']),
  report: text(253).optional().meta({ description: 'Name of the ConfigMap that holds the whole plan.' }),
});

const releaseSync = z.strictObject({
  step: text(64).meta({ description: 'Acceptance step or phase that is worked on.' }),
  done: z.int().min(0),
  total: z.int().min(0),
  attempt: z.int().min(0),
  completed: z.int().min(0).meta({ description: 'Passes completed in a row since the last change.' }),
  versionHash: text(71),
  verified: z.boolean(),
  lastProgressTime: timestamp().optional(),
  blocker: blocker.optional(),
  retryAt: timestamp().optional(),
});

export const gateStatus = z.strictObject({
  type: upperCamel(),
  scope: dnsLabel(),
  state: z.enum(gateStates),
  bypassed: z.boolean().optional(),
  reason: upperCamel(128),
  message: text(1024),
  since: timestamp(),
  evidenceTime: timestamp().optional(),
});
export type GateStatus = z.infer<typeof gateStatus>;

export const phaseStatus = z.strictObject({
  name: dnsLabel(),
  state: z.enum(phaseStates),
  applied: z.int().min(0),
  total: z.int().min(0),
  since: timestamp(),
  bypassed: z.boolean().optional(),
  gates: z.array(gateStatus).max(16),
});
export type PhaseStatus = z.infer<typeof phaseStatus>;

export const historyEntry = z.strictObject({
  digest: digest(),
  state: z.enum(['Partial', 'Completed']),
  startedAt: timestamp(),
  completedAt: timestamp().optional(),
  acceptedRisks: text(1024).optional(),
});
export type HistoryEntry = z.infer<typeof historyEntry>;

export const failure = z.strictObject({
  object: text(700).optional(),
  reason: upperCamel(128),
  message: text(1024),
});
export type Failure = z.infer<typeof failure>;

/** Member without which kstatus and Argo would read an untouched object as current. */
export const untouchedStatus = { observedGeneration: -1 };

export const releaseStatus = z
  .strictObject({
    observedGeneration: z.int().min(-1).optional(),
    conditions: conditions().optional(),
    state: z.enum(releaseStates).optional(),
    desired: digest().optional().meta({ description: 'Digest that the spec (or a pin) asks for.' }),
    actual: digest().optional().meta({ description: 'Digest that is accepted and enforced.' }),
    plan: releasePlan.optional(),
    sync: releaseSync.optional(),
    phases: z
      .array(phaseStatus)
      .max(64)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
    history: z.array(historyEntry).max(100).optional().meta({ description: 'Newest first.' }),
    ledger: z.strictObject({ count: z.int().min(0), digest: digest(), configMaps: z.int().min(0) }).optional(),
    failures: z.array(failure).max(10).optional(),
    failureCount: z.int().min(0).optional(),
    lastHandledReconcileAt: text(64).optional(),
    lastAttemptedRevision: text(512)
      .optional()
      .meta({ description: 'Revision of the source whose payload was last looked at for acceptance.' }),
    lastAppliedRevision: text(512)
      .optional()
      .meta({ description: 'Revision of the source that the payload in place was read from.' }),
  })
  .prefault(untouchedStatus);
export type ReleaseStatus = z.output<typeof releaseStatus>;
