import { z } from 'zod';
import { type Digest, digestOf, isDigest, sha256Hex } from '../lib/digest.ts';
import { parseObjectId } from '../lib/names.ts';
import { limits, neverPrunedKinds } from './constants.ts';
import type { Ledger, LedgerEntry } from './ledger.ts';

/**
 * Uninstalling a release: what happens to each object of its ledger, and in which order. Pure, so that the command that
 * asks a person and the executor that carries it out come to the same digest.
 */

/** `orphan`: every object stays and is no longer ours. `delete`: what can be made again is deleted. */
export const uninstallModes = ['orphan', 'delete'] as const;
export type UninstallMode = (typeof uninstallModes)[number];

/** What a person asked for, as annotation `keelson.dev/uninstall` of the Release says it: `<mode> <digest of the plan>`. */
export interface UninstallRequest {
  readonly mode: UninstallMode;
  readonly digest: string;
}

export const formatUninstall = ({ mode, digest }: UninstallRequest): string => `${mode} ${digest}`;

/** Reads the annotation; undefined when it is not one. */
export function parseUninstall(text: string): UninstallRequest | undefined {
  const [mode, digest, ...more] = text.split(' ');
  const known = uninstallModes.find((one) => one === mode);
  return known !== undefined && digest !== undefined && isDigest(digest) && more.length === 0
    ? { mode: known, digest }
    : undefined;
}

/**
 * `delete`: by its UID. `letGo`: it stays; its owner and our marks are taken off. `forget`: as far as the ledger knows it is
 * not ours, so nothing is written; where the object itself bears what we applied, it is let go.
 */
export type UninstallAction = 'delete' | 'letGo' | 'forget';

export interface UninstallObject {
  readonly id: string;
  /** Absent when no run ever saw the object; only one that carries our marks is then touched. */
  readonly uid?: string;
  readonly action: UninstallAction;
}

export interface UninstallStep {
  readonly name: UninstallStage;
  readonly objects: readonly UninstallObject[];
}

export interface UninstallPlan {
  readonly mode: UninstallMode;
  readonly digest: Digest;
  /** In order; a step begins when everything of the one before is done. */
  readonly steps: readonly UninstallStep[];
}

/**
 * What can refuse others goes first, what others are served by last: a custom resource goes while its controller runs, and
 * accounts outlive the pods that use them. The stages of a network follow the order in which Kube-OVN takes itself away:
 * what tests, what controls, what serves pods, and the databases last.
 */
const stages = [
  'admission',
  'custom resources',
  'network tests',
  'controllers',
  'pod network',
  'databases',
  'workloads',
  'configuration',
  'access',
  'definitions',
  'data',
] as const;
export type UninstallStage = (typeof stages)[number];

const groupStages: Readonly<Record<string, UninstallStage>> = {
  '': 'configuration',
  'admissionregistration.k8s.io': 'admission',
  'apiregistration.k8s.io': 'admission',
  'apiextensions.k8s.io': 'definitions',
  apps: 'workloads',
  batch: 'workloads',
  autoscaling: 'workloads',
  'rbac.authorization.k8s.io': 'access',
  policy: 'configuration',
  'networking.k8s.io': 'configuration',
  'discovery.k8s.io': 'configuration',
  'storage.k8s.io': 'configuration',
  'scheduling.k8s.io': 'configuration',
  'node.k8s.io': 'configuration',
  'coordination.k8s.io': 'configuration',
};

const kindStages: Readonly<Record<string, UninstallStage>> = {
  '/Pod': 'workloads',
  '/ReplicationController': 'workloads',
  '/ServiceAccount': 'access',
  '/Namespace': 'data',
  '/PersistentVolume': 'data',
  '/PersistentVolumeClaim': 'data',
};

/** Parts of Kube-OVN by the names that its chart gives them; a Service of that name goes with its workload. */
const networkStages: Readonly<Record<string, UninstallStage>> = {
  'kube-ovn-pinger': 'network tests',
  'kube-ovn-monitor': 'controllers',
  'kube-ovn-controller': 'controllers',
  'ovn-ic-controller': 'controllers',
  'kube-ovn-cni': 'pod network',
  'ovs-ovn': 'databases',
  'ovs-ovn-dpdk': 'databases',
  'ovn-central': 'databases',
  'ovn-nb': 'databases',
  'ovn-sb': 'databases',
  'ovn-northd': 'databases',
  'kube-ovn-tls': 'databases',
};

/** Kinds of which the table of network parts speaks. */
const networkKinds: ReadonlySet<string> = new Set([
  'apps/Deployment',
  'apps/DaemonSet',
  'apps/StatefulSet',
  '/Service',
  '/Secret',
]);

function stageOf(id: string, network: boolean): UninstallStage {
  const { group, kind, name } = parseObjectId(id);
  const groupKind = `${group}/${kind}`;
  const part = network && networkKinds.has(groupKind) ? networkStages[name] : undefined;
  return part ?? kindStages[groupKind] ?? groupStages[group] ?? 'custom resources';
}

/** Kinds that are never deleted: they hold data, or other objects go with them. A definition takes all its objects along. */
const letGoKinds: ReadonlySet<string> = new Set([
  ...neverPrunedKinds,
  '/Namespace',
  'apiextensions.k8s.io/CustomResourceDefinition',
]);

function actionOf(entry: LedgerEntry, mode: UninstallMode): UninstallAction {
  if (entry.state === 'unmanaged' || entry.state === 'adopting') return 'forget';
  const { group, kind } = parseObjectId(entry.id);
  return mode === 'orphan' || entry.keep === true || letGoKinds.has(`${group}/${kind}`) ? 'letGo' : 'delete';
}

export interface UninstallInput {
  readonly release: string;
  readonly releaseUID: string;
  readonly mode: UninstallMode;
  readonly ledger: Ledger;
}

/** The whole plan. Its digest changes with any object, UID or action. */
export function uninstallPlan({ release, releaseUID, mode, ledger }: UninstallInput): UninstallPlan {
  const network = release.startsWith('network-');
  const objects = [...ledger.values()]
    .map(
      (entry): UninstallObject => ({
        id: entry.id,
        ...(entry.uid === undefined ? {} : { uid: entry.uid }),
        action: actionOf(entry, mode),
      }),
    )
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const digest = digestOf({ release, releaseUID, mode, objects: objects.map((object) => ({ ...object })) });
  const steps = stages.flatMap((name): UninstallStep[] => {
    const here = objects.filter(({ id }) => stageOf(id, network) === name);
    return here.length === 0 ? [] : [{ name, objects: here }];
  });
  return { mode, digest, steps };
}

/** What stands for one object, its UID and what happens to it, in the record of what was approved. */
export const approvalOf = ({ id, uid, action }: UninstallObject): string =>
  sha256Hex(JSON.stringify([id, uid ?? null, action])).slice(0, 16);

/** How far an uninstall is; kept in the cluster from before its first write on. */
export const uninstallRecord = z.strictObject({
  digest: z.string().max(128),
  mode: z.enum(uninstallModes),
  state: z.enum(['running', 'done']),
  /** Objects at its beginning. */
  total: z.int().min(0),
  /** Definitions among them, which only their own consent deletes. */
  definitions: z.array(z.strictObject({ name: z.string().max(253), uid: z.string().max(64) })).max(1_000),
  /** UID of the Release that it was approved for. */
  releaseUID: z.string().max(64),
  /** {@link approvalOf} of every object that was approved: nothing else is touched, whatever the ledger says by then. */
  approved: z.array(z.string().max(16)).max(limits.objects * 2),
  /** Another release takes objects over; it must be able to see in the ledger that they are free. */
  handsOver: z.literal(true).optional(),
});
export type UninstallRecord = z.infer<typeof uninstallRecord>;

/** Key of the one member of the record's `data`. */
export const uninstallKey = 'uninstall.json';
