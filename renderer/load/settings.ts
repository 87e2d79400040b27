import type { Cluster } from '../../constructs/api/cluster.ts';
import { apiVersion } from '../../constructs/api/constants.ts';
import type { Inventory } from '../../constructs/api/inventory.ts';
import type { Lock } from '../../constructs/api/lock.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { addressProblems } from './addresses.ts';
import { courierProblems } from './courier.ts';
import { problemAt, type SourceDocument } from './source.ts';
import { validateDocument } from './validate.ts';

/** Names of the three files that describe a cluster rather than what runs in it. */
export const settingsFiles = {
  cluster: 'cluster.yaml',
  inventory: 'inventory.yaml',
  lock: 'keelson.lock.yaml',
} as const;

export interface Settings {
  readonly cluster: Cluster;
  readonly inventory: Inventory | undefined;
  readonly lock: Lock | undefined;
}

export interface SettingsDocuments {
  readonly cluster: SourceDocument | undefined;
  readonly inventory: SourceDocument | undefined;
  readonly lock: SourceDocument | undefined;
}

/** Reads the settings; `inventory.yaml` and the lock may be missing, and whoever needs them says so. */
export function readSettings(folder: string, documents: SettingsDocuments, problems: Problem[]): Settings | undefined {
  const file = `${folder}/${settingsFiles.cluster}`;
  if (documents.cluster === undefined) {
    // A file that could not be read has told its problems already.
    if (problems.some((problem) => problem.file === file)) return undefined;
    problems.push({
      reason: 'FileMissing',
      message: 'the cluster has no cluster.yaml',
      file,
      remedy: 'write the Cluster document; docs/reference shows its fields',
    });
    return undefined;
  }
  const read = {
    cluster: readKind<Cluster>('Cluster', documents.cluster, problems),
    inventory: readKind<Inventory>('Inventory', documents.inventory, problems),
    lock: readKind<Lock>('Lock', documents.lock, problems),
  };
  if (read.cluster === undefined) return undefined;
  const settings: Settings = { cluster: read.cluster, inventory: read.inventory, lock: read.lock };
  problems.push(...contradictions(settings, documents), ...courierProblems(settings.cluster, documents.cluster));
  if (settings.inventory !== undefined && documents.inventory !== undefined)
    problems.push(...addressProblems(settings.inventory, documents.inventory));
  return settings;
}

function readKind<T>(kind: string, document: SourceDocument | undefined, problems: Problem[]): T | undefined {
  if (document === undefined) return undefined;
  if (document.value.kind !== kind || document.value.apiVersion !== apiVersion) {
    problems.push(
      problemAt(document, ['kind'], {
        reason: 'UnknownKind',
        message: `the file must hold a ${kind} of ${apiVersion}`,
        value: `${document.value.apiVersion} ${document.value.kind}`,
        remedy: `write apiVersion: ${apiVersion} and kind: ${kind}`,
      }),
    );
    return undefined;
  }
  // The schema of the document is the one that the type is made from.
  return validateDocument(document, problems) as T | undefined;
}

function contradictions(settings: Settings, documents: SettingsDocuments): Problem[] {
  const problems: Problem[] = [];
  const { name } = settings.cluster.metadata;
  for (const part of ['inventory', 'lock'] as const) {
    const [value, document] = [settings[part], documents[part]];
    if (value === undefined || document === undefined || value.metadata.name === name) continue;
    problems.push(
      problemAt(document, ['metadata', 'name'], {
        reason: 'ClusterMismatch',
        message: `it belongs to cluster ${value.metadata.name}, not to ${name}`,
        value: value.metadata.name,
        remedy: `write it again with \`keelson ${part}\``,
      }),
    );
  }
  const uid = settings.cluster.spec.clusterUID;
  const { inventory: facts } = settings;
  if (uid !== undefined && facts !== undefined && documents.inventory !== undefined && facts.spec.clusterUID !== uid)
    problems.push(
      problemAt(documents.inventory, ['spec', 'clusterUID'], {
        reason: 'ClusterMismatch',
        message: `the inventory was taken from another cluster; cluster.yaml names ${uid}`,
        value: facts.spec.clusterUID,
        remedy: 'take the inventory again with the kubeconfig of this cluster',
      }),
    );
  return problems;
}
