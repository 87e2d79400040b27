import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ClusterInput } from '../../constructs/api/cluster.ts';
import type { Inventory } from '../../constructs/api/inventory.ts';
import type { InstallationSpecInput } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { KeyPair } from '../../constructs/api/signature.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { formatProblems } from '../../constructs/lib/problems.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import { specKinds } from '../../renderer/domain.ts';
import { resolveImages } from '../../renderer/images/resolve.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import type { ClusterFiles } from '../../renderer/load/source.ts';
import { collectNeeds } from '../../renderer/lock/collect.ts';
import { makeLock } from '../../renderer/lock/lock.ts';
import { signerOf } from '../../renderer/payload/sign.ts';
import { type Rendered, type RenderOutcome, renderCluster } from '../../renderer/render.ts';
import { helmVersion, type Shelf, type Workbench } from './network-shelf.ts';

/** A chart as a spec names it. */
export interface ChartPin {
  readonly tag: string;
  readonly digest: string;
  readonly appVersion: string;
}

/** What is committed for a cluster with one installation. */
export interface ClusterText {
  readonly inventory: Inventory;
  readonly chart: ChartPin;
  readonly spec?: Partial<InstallationSpecInput>;
  /** Where the installation is; kube-system by default. */
  readonly namespace?: string;
  readonly settings?: Partial<ClusterInput['spec']>;
  /** Further files of the folder by their path. */
  readonly files?: Readonly<Record<string, string>>;
}

export const installationName = 'net';
export const releaseName = `network-${installationName}`;

/** Gates that no part of this executor can observe. */
export const evidenceGates = ['OVNDBReady', 'NorthdReady', 'DataPlaneReady'];

const executorImage = `registry.example.com/keelson/keelson@sha256:${'e'.repeat(64)}`;

function clusterYaml(host: string, settings: ClusterText['settings']): ClusterInput {
  return {
    apiVersion: 'keelson.dev/v1alpha1',
    kind: 'Cluster',
    metadata: { name: 'test' },
    spec: {
      kubernetesVersion: '1.34.2',
      delivery: { repository: '../rendered.git', author: { name: 'Test', email: 'test@example.com' } },
      images: { executor: executorImage },
      allow: { chartHosts: [host] },
      registries: [{ match: 'docker.io/kubeovn', mirror: `${host}/kubeovn` }],
      acceptUnverifiedNetwork: true,
      ...settings,
    },
  };
}

const networkYaml = (host: string, { chart, spec, namespace = 'kube-system' }: ClusterText): JsonObject =>
  ({
    apiVersion: 'network.keelson.dev/v1alpha1',
    kind: 'KubeOVNInstallation',
    metadata: { name: installationName, namespace },
    spec: {
      mode: 'full',
      version: chart.appVersion,
      chart: { source: `oci://${host}/charts/kube-ovn:${chart.tag}`, digest: chart.digest },
      ...spec,
    },
  }) as JsonObject;

/** Puts a small image under every name that a lock needs and the shelf is to have. */
async function stock(shelf: Shelf, texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    const ref = parseImageRef(text);
    if (ref?.registry !== 'docker.io' || !ref.repository.startsWith('kubeovn/')) continue;
    await shelf.putImage(ref.repository, ref.tag ?? 'latest');
  }
}

type LockOutcome = Awaited<ReturnType<typeof makeLock>>;

async function lockOf(shelf: Shelf, bench: Workbench, source: ClusterFiles): Promise<LockOutcome> {
  const kinds = [...specKinds([bench.renderer()])];
  const collected = await collectNeeds(source, (recorder) => [bench.renderer(recorder)], kinds);
  if (!collected.ok) return collected;
  await stock(shelf, collected.needs.images);
  return makeLock(collected.needs, {
    update: { what: 'nothing' },
    helm: helmVersion,
    resolve: (texts) => resolveImages(texts, bench.registry),
  });
}

async function write(folder: string, path: string, content: string | Uint8Array): Promise<void> {
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

/** Writes the folder of a cluster, locks it and renders it, all as the commands do; problems are an answer. */
export async function tryRender(
  { shelf, bench, key }: { shelf: Shelf; bench: Workbench; key: KeyPair },
  text: ClusterText,
): Promise<RenderOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-cluster-'));
  try {
    await write(folder, 'cluster.yaml', dumpYaml(clusterYaml(shelf.host, text.settings) as unknown as JsonObject));
    await write(folder, 'inventory.yaml', dumpYaml(text.inventory as unknown as JsonObject));
    await write(folder, 'network.yaml', dumpYaml(networkYaml(shelf.host, text)));
    for (const [path, content] of Object.entries(text.files ?? {})) await write(folder, path, content);
    const unlocked = await readClusterFolder(folder, 'clusters/test');
    const locked = await lockOf(shelf, bench, unlocked.source);
    if (!locked.ok) return { ok: false, problems: [...unlocked.problems, ...locked.problems] };
    await write(folder, 'keelson.lock.yaml', locked.result.bytes);
    const { source } = await readClusterFolder(folder, 'clusters/test');
    const domains = [bench.renderer()];
    return await renderCluster({ source, domains, keelson: '0.0.0-test', signer: signerOf(key.privateKey) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Like {@link tryRender}, where nothing should be wrong. */
export async function render(tools: Parameters<typeof tryRender>[0], text: ClusterText): Promise<Rendered> {
  const outcome = await tryRender(tools, text);
  if (outcome.ok) return outcome.rendered;
  throw new Error(formatProblems(outcome.problems));
}

/** The one release of such a cluster. */
export function networkRelease(rendered: Rendered): Rendered['releases'][number] {
  const release = rendered.releases.find(({ name }) => name === releaseName);
  if (release === undefined) throw new Error(`no release ${releaseName} was rendered`);
  return release;
}
