import { shortDigest } from '../lib/digest.ts';

/** Names, numbers and limits that every part shares. Changing one of them is a change of a public contract. */

export const apiGroup = 'keelson.dev';
export const apiVersion = 'keelson.dev/v1alpha1';
export const networkApiVersion = 'network.keelson.dev/v1alpha1';

/** Where the executor, the payloads and the Releases live. */
export const systemNamespace = 'keelson-system';
/** Where Kube-OVN and the objects that describe it live. */
export const networkNamespace = 'kube-system';

/** In-cluster roles; each has its own Deployment, account, RBAC and Lease. */
export const roles = ['executor', 'storage', 'addresses', 'convert'] as const;
export type Role = (typeof roles)[number];

/** Name of the Deployment and of the service account of a role. */
export const roleName = (role: Role): string => `keelson-${role}`;

/** Server-side apply managers. They are never renamed: ownership of every object hangs on them. */
export const managers = {
  objects: 'keelson',
  status: 'keelson-status',
  addresses: 'keelson-addresses',
  flux: 'kustomize-controller',
  argo: 'argocd-controller',
  none: 'keelson-deliver',
} as const;

/** Field manager that `bootstrap` and `deliver` use, so that a later hand-over to the courier has one owner. */
export const courierManager = (courier: 'flux' | 'argo' | 'none'): string => managers[courier];

export const labels = {
  managedBy: 'app.kubernetes.io/managed-by',
  release: 'keelson.dev/release',
  phase: 'keelson.dev/phase',
  installationUID: 'keelson.dev/installation-uid',
  /** On ConfigMaps of ours: what they hold (`payload`, `retained`, `ledger`, `plan`, `report`). */
  holds: 'keelson.dev/holds',
  /** On a namespace: gates may be bypassed by a test executor. */
  testCluster: 'keelson.dev/test-cluster',
  /** On objects of a courier: the cluster whose tree it carries. */
  cluster: 'keelson.dev/cluster',
} as const;
export const managedByValue = 'keelson';

export const annotations = {
  /** The object's own id; a copy of the object does not match it. */
  id: 'keelson.dev/id',
  /** Digest of the payload that an object or a chunk belongs to. */
  payload: 'keelson.dev/payload',
  /** `fail` or `yield`. */
  conflictPolicy: 'keelson.dev/conflict-policy',
  /** JSON pointers, separated by commas, that a `yield` object gives up to another manager. */
  yieldFields: 'keelson.dev/yield-fields',
  /** `"true"`: may be deleted and created again when a change hits an immutable field. */
  recreate: 'keelson.dev/recreate',
  /** `"true"`: created once and never changed afterwards. */
  createOnly: 'keelson.dev/create-only',
  /** `"disabled"`: left in place when it leaves the payload. */
  prune: 'keelson.dev/prune',
  /** `"true"` on a manifest: the object is to be absent. */
  absent: 'keelson.dev/absent',
  /** Break-glass: nothing of ours writes the object or the release. */
  hold: 'keelson.dev/hold',
  /** A lifecycle has the object, or the release, in hand: nothing of it is repaired or pruned meanwhile. */
  quiesce: 'keelson.dev/quiesce',
  /** Break-glass on a Release: enforce this retained payload. */
  pin: 'keelson.dev/pin',
  /** On a Release: `<mode> <digest of a plan>`, the uninstall that a person approved. */
  uninstall: 'keelson.dev/uninstall',
  /** UID of the object: its deletion is meant. */
  confirmDelete: 'keelson.dev/confirm-delete',
  /** `<n>/<count>` on a chunk of a payload. */
  chunk: 'keelson.dev/chunk',
  /** sha256 over the joined chunks of a payload. */
  archive: 'keelson.dev/archive-sha256',
  /** Revision of the source that a retained payload was read from. */
  revision: 'keelson.dev/revision',
  /** On Events: revision of what the source was made from. */
  originRevision: 'keelson.dev/originRevision',
  /** Number of shards the ledger was divided into when this one was written. */
  shards: 'keelson.dev/ledger-shards',
  /** On the first shard of a ledger: where the release is inside a one-way span. */
  span: 'keelson.dev/span',
  /** On the Secret of the authority of evidence: a request for another authority; another value is another request. */
  rotate: 'keelson.dev/rotate',
  /** Format in which a ledger was written; one without it is older than formats are. */
  ledgerFormat: 'keelson.dev/ledger-format',
} as const;

/** Foreign annotations that carry meaning for us. */
export const foreignAnnotations = {
  helmResourcePolicy: 'helm.sh/resource-policy',
  helmHook: 'helm.sh/hook',
  podDeletionCost: 'controller.kubernetes.io/pod-deletion-cost',
} as const;

export const orphanFinalizer = 'keelson.dev/orphan';

const uid8 = (uid: string): string => uid.replaceAll('-', '').slice(0, 8);

export const leaseNames = {
  role: (role: Role): string => `keelson-${role}`,
  installation: (uid: string): string => `keelson-installation-${uid8(uid)}`,
  central: (uid: string): string => `keelson-central-${uid8(uid)}`,
} as const;

/** Secret that holds the public keys whose signatures are accepted. */
export const trustSecret = 'keelson-trust';

/** Secret of the keys that Kube-OVN speaks TLS with, where a specification names no other. */
export const ovnTLSSecret = 'kube-ovn-tls';

/** Secret of the authority that signs for the executor and its probes; lies beside the executor. */
export const evidenceSecret = 'keelson-evidence-ca';
/** ConfigMap, beside the probes, of the authorities that they believe. */
export const evidenceTrust = { name: 'keelson-evidence-trust', key: 'ca.crt' } as const;

export const configMapNames = {
  payload: (release: string, digest: string, n: number): string =>
    `keelson-payload-${release}-${shortDigest(digest)}-${n}`,
  retained: (release: string, digest: string, n: number): string =>
    `keelson-retained-${release}-${shortDigest(digest)}-${n}`,
  ledger: (release: string, n: number): string => `keelson-ledger-${release}-${n}`,
  plan: (release: string): string => `keelson-plan-${release}`,
  uninstall: (release: string): string => `keelson-uninstall-${release}`,
  report: (digest: string): string => `keelson-report-${shortDigest(digest)}`,
  topology: (installation: string, digest: string): string => `keelson-topology-${installation}-${shortDigest(digest)}`,
} as const;

/** TCP ports on the host; all lie between 10670 and 10679. */
export const ports = {
  metrics: 10670,
  page: 10671,
  central: 10672,
  centralSpare: 10673,
  chassis: 10674,
  chassisSpare: 10675,
  drain: 10676,
  fence: 10677,
  convert: 10678,
  convertSpare: 10679,
} as const;

/** Where a probe finds its token and whom it believes. */
export const evidenceMount = '/var/run/secrets/keelson.dev/evidence';

/** Containers in which probes run, by the kind of their evidence. */
export const probeContainers = {
  central: 'keelson-probe',
  chassis: 'keelson-probe',
  drain: 'keelson-drain-probe',
  network: 'keelson-network-probe',
} as const;

/** Volumes that a probe beside daemons brings: its token and anchor, and the empty one over the usual place of tokens. */
export const probeVolumes = { evidence: 'keelson-evidence', noToken: 'keelson-no-token' } as const;

/** Objects of the network probe. Its ports are inside its own pods, and none of the host's. */
export const networkProbe = {
  clients: 'keelson-network-client',
  servers: 'keelson-network-server',
  service: 'keelson-network-probe',
  evidencePort: 10672,
  echoPort: 10673,
  /** Where a server says that it serves. */
  readyPath: '/v1/ready',
} as const;

/** Timings in milliseconds. Parts take them as an options object, so that tests can shorten them. */
export const timings = {
  lease: { durationMs: 30_000, renewMs: 10_000 },
  backoff: { initialMs: 2_000, factor: 2, maxMs: 120_000, jitter: 0.2 },
  sweepMs: 600_000,
  outageGraceMs: 30_000,
  phaseSoftLimitMs: 600_000,
  driftFight: { repairs: 3, windowMs: 3_600_000 },
  evidence: {
    nodeConcurrency: 4,
    certificateMs: 86_400_000,
    leaderProbeMs: 5_000,
    nodeProbeMs: 10_000,
    retryMs: 10_000,
    freshMs: 60_000,
  },
} as const;

/** Sizes in bytes, and counts. */
export const limits = {
  chunkBytes: 128 * 1024,
  archiveBytes: 8 * 1024 * 1024,
  unpackedBytes: 64 * 1024 * 1024,
  objectBytes: 1024 * 1024,
  indexBytes: 8 * 1024 * 1024,
  objects: 5_000,
  phases: 64,
  gatesPerPhase: 16,
  statusBytes: 32 * 1024,
  conditionMessage: 1_024,
  evidenceBytes: 256 * 1024,
  history: 100,
  failures: 10,
} as const;

export const payloadFormatVersion = 1;

/** Format of ledgers that this executor writes. It reads that one, and the one before: entries without a mark. */
export const ledgerFormatVersion = 1;

/** Label selector of the nodes that carry OVN central when a spec names none. */
export const defaultCentralSelector: Readonly<Record<string, string>> = { 'node-role.kubernetes.io/control-plane': '' };

/**
 * Kinds, as `group/Kind`, whose removal always needs a person: they hold data, or take other objects with them.
 */
export const confirmKinds: readonly string[] = [
  '/Namespace',
  '/PersistentVolume',
  '/PersistentVolumeClaim',
  'apiextensions.k8s.io/CustomResourceDefinition',
  'apps/DaemonSet',
  'apps/StatefulSet',
  'storage.k8s.io/StorageClass',
];

/** Kinds, as `group/Kind`, that are left in place when they leave a payload, whatever the prune policy says. */
export const neverPrunedKinds: readonly string[] = [
  '/PersistentVolumeClaim',
  '/PersistentVolume',
  'local.sdn.cozystack.io/IPAddressClaim',
  'local.sdn.cozystack.io/IPAddress',
];

/**
 * Kinds, as `group/Kind`, whose objects may be deleted and created again when their manifest asks for it and a change hits
 * a field that can not change. None of them holds data that would be lost, or takes other objects with it.
 */
export const recreatableKinds: readonly string[] = [
  'batch/Job',
  'apps/Deployment',
  'apps/DaemonSet',
  '/Service',
  '/ConfigMap',
  '/Secret',
];
