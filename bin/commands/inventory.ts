import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultCentralSelector } from '../../constructs/api/constants.ts';
import type { Inventory } from '../../constructs/api/inventory.ts';
import { validateDocument } from '../../constructs/api/validate.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { replaceFile } from '../../constructs/lib/replacefile.ts';
import { dumpYaml, parseYaml } from '../../constructs/lib/yaml.ts';
import { captureInventory } from '../../executor/observe/inventory.ts';
import { specKinds } from '../../renderer/domain.ts';
import { loadCluster } from '../../renderer/load/load.ts';
import { settingsFiles } from '../../renderer/load/settings.ts';
import { type ClusterFolder, clusterFolder, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { domains } from '../supply.ts';

export interface Options extends CommonOptions {
  readonly check?: boolean;
  readonly serviceCidr?: readonly string[];
}

/** `keelson inventory`: the facts about the cluster that rendering relies on, in a file that people review. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const folder = await clusterFolder(invocation, options);
  const source = await readFolder(folder);
  // What is written now may be of another cluster, or of another format; it is about to be written anew.
  const files = new Map([...source.files].filter(([path]) => path !== settingsFiles.inventory));
  const read = loadCluster({ ...source, files }, specKinds(domains(invocation, folder.path)));
  if (!read.ok) throw new ProblemError(read.problems);
  const { cluster, specs } = read.loaded;
  const before = await readFile(join(folder.path, settingsFiles.inventory)).catch(() => undefined);
  const captured = await withClient(invocation, options, (client) =>
    captureInventory({
      client,
      signal: invocation.signal,
      cluster: cluster.metadata.name,
      namespace: cluster.spec.executor.namespace,
      labels: selectorKeys([cluster as unknown as JsonValue, ...specs.map((spec) => spec.value)]),
      ...topologyOf(before, cluster.metadata.name),
      ...(options.serviceCidr === undefined ? {} : { serviceCIDRs: options.serviceCidr }),
    }),
  );
  // The cluster did not answer as it should: nothing about the input is wrong.
  if (!captured.ok) throw new Error(new ProblemError(captured.problems).message);
  const wanted = cluster.spec.clusterUID;
  const found = captured.inventory.spec.clusterUID;
  if (wanted !== undefined && wanted !== found)
    throw new ProblemError([
      {
        reason: 'ClusterMismatch',
        message: `the kubeconfig leads to cluster ${found}`,
        file: `${folder.shown}/${settingsFiles.cluster}`,
        path: 'spec.clusterUID',
        value: wanted,
        remedy: 'use the kubeconfig of this cluster',
      },
    ]);
  return finish(invocation, options, folder, captured.inventory, before);
}

async function finish(
  invocation: Invocation,
  options: Options,
  folder: ClusterFolder,
  inventory: Inventory,
  before: Uint8Array | undefined,
): Promise<ExitCode> {
  const checked = validateDocument(inventory as unknown as JsonObject, { file: settingsFiles.inventory });
  if (!checked.ok) throw new ProblemError(checked.problems);
  const bytes = Buffer.from(dumpYaml(inventory as unknown as JsonObject));
  const file = `${folder.shown}/${settingsFiles.inventory}`;
  const same = before !== undefined && Buffer.compare(before, bytes) === 0;
  if (same) invocation.out(`${file}: nothing changed`);
  else if (options.check === true) invocation.out(`${file}: the cluster has changed; run keelson inventory`);
  else {
    const part = join(folder.path, `.${settingsFiles.inventory}.part.${process.pid}`);
    await replaceFile(join(folder.path, settingsFiles.inventory), bytes, part);
    invocation.out(`${file}: written (${inventory.spec.nodes.length} nodes)`);
  }
  return options.check === true && !same ? exitCodes.differs : exitCodes.done;
}

/** Keys of all node selectors in documents, and of the selectors that apply when there is none. */
function selectorKeys(documents: readonly JsonValue[]): Set<string> {
  const keys = new Set(['kubernetes.io/os', ...Object.keys(defaultCentralSelector)]);
  const walk = (value: JsonValue | undefined): void => {
    if (Array.isArray(value)) for (const item of value) walk(item);
    else if (isObject(value))
      for (const [name, member] of Object.entries(value)) {
        if (name === 'nodeSelector' && isObject(member)) for (const key of Object.keys(member)) keys.add(key);
        walk(member);
      }
  };
  for (const document of documents) walk(document);
  return keys;
}

/** The topology of the file, when it is of this cluster and well-formed. */
function topologyOf(bytes: Uint8Array | undefined, cluster: string): Pick<Inventory['spec'], 'topology'> {
  if (bytes === undefined) return {};
  const value = parseYaml(Buffer.from(bytes).toString(), settingsFiles.inventory).documents[0]?.value;
  const read = value === undefined ? undefined : validateDocument(value);
  if (read?.ok !== true) return {};
  const { metadata, spec } = read.value as unknown as Inventory;
  return metadata.name !== cluster || spec.topology === undefined ? {} : { topology: spec.topology };
}
