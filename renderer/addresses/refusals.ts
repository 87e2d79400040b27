import { addressesOf } from '../../constructs/api/addresses-settings.ts';
import { metallbGroup, metallbKinds, metallbLabels, poolName } from '../../constructs/api/metallb.ts';
import type { Tree } from '../../constructs/api/tree.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { LoadedCluster } from '../load/load.ts';
import { settingsFiles } from '../load/settings.ts';
import { member, problemAt, type SourceObject } from '../load/source.ts';
import { formerPlaceholders } from './previous.ts';

/** What the driver makes in a cluster; in Git it would be made again after the driver took it away. */
export function runtimeProblems(
  manifests: readonly SourceObject[],
  served: readonly SourceObject[],
  placeholderNamespace: string,
): Problem[] {
  const pools = new Map(served.map(({ identity }) => [poolName(identity.name), identity.name]));
  return manifests.flatMap((source): Problem[] => {
    const { apiVersion, kind, name, namespace } = source.identity;
    const labelled = member(member(source.value, 'metadata'), 'labels')[metallbLabels.placeholder] !== undefined;
    if (apiVersion === 'v1' && kind === 'Service' && (labelled || namespace === placeholderNamespace))
      return [
        problemAt(source, labelled ? ['metadata', 'labels', metallbLabels.placeholder] : ['metadata', 'namespace'], {
          reason: 'RuntimeObject',
          message: labelled
            ? 'placeholders are made and taken away by the driver'
            : `namespace ${placeholderNamespace} is for the placeholders of the driver alone`,
          remedy: labelled ? 'remove the document' : 'use another namespace',
        }),
      ];
    const className = kind in metallbKinds && groupOf(apiVersion) === metallbGroup ? pools.get(name) : undefined;
    if (className === undefined) return [];
    return [
      problemAt(source, ['metadata', 'name'], {
        reason: 'RuntimeObject',
        message: `the driver makes it of class ${className}, and keeps it as the class says`,
        value: name,
        remedy: 'remove the document; what is special about the pool or its announcement may be changed in the cluster',
      }),
    ];
  });
}

/** Placeholders are known by their namespace: those in another one would hold their addresses for nobody. */
export function placeholderProblems(loaded: LoadedCluster, previous: Tree | undefined): Problem[] {
  const { workers, metallb } = addressesOf(loaded.cluster.spec);
  const now = metallb.placeholderNamespace;
  const before = formerPlaceholders(previous);
  if (!workers.includes('driver') || before === undefined || before === now) return [];
  return [
    {
      reason: 'PlaceholdersMoved',
      message: `what is published keeps its placeholders in ${before}; in ${now} the driver would not find them`,
      file: `${loaded.folder}/${settingsFiles.cluster}`,
      path: 'spec.addresses.metallb.placeholderNamespace',
      value: now,
      remedy: `write ${before}; another one takes an empty ledger and an uninstalled release`,
    },
  ];
}

/** The role would be taken away while the ledger may still need it: finalizers of what is left would never go. */
export function departureWarnings(loaded: LoadedCluster, previous: Tree | undefined, file: string): Problem[] {
  if (!(previous?.has(file) ?? false)) return [];
  return [
    {
      reason: 'LedgerLeavesGit',
      message: 'no class is left, and spec.addresses is not set: the role that keeps the ledger is taken away',
      file: `${loaded.folder}/${settingsFiles.cluster}`,
      path: 'spec.addresses',
      remedy: 'set spec.addresses: {} until the ledger is empty and the release is uninstalled',
    },
  ];
}
