import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import { fixedZone } from './zone.ts';

/** A throw-away home for one run of Helm: nothing of the user's configuration, repositories, plug-ins or clusters. */
export interface Workspace {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

export interface WorkspaceOptions {
  /** Folder under which the workspace is made. */
  readonly tempFolder: string;
  /** Where a Helm that disobeys would look for a cluster. */
  readonly apiServer: string;
  readonly offsetHours: number;
}

/** A kubeconfig without credentials whose only cluster is `server`. */
function kubeconfig(server: string): string {
  return dumpYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'none', cluster: { server } }],
    users: [{ name: 'none', user: {} }],
    contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
    'current-context': 'none',
  });
}

/** Makes a workspace; the caller removes it. */
export async function createWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const folder = await mkdtemp(join(options.tempFolder, 'keelson-helm-'));
  const inside = (name: string): string => join(folder, name);
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await Promise.all(['cache', 'config', 'data', 'plugins'].map((name) => mkdir(inside(name))));
    await writeFile(inside('kubeconfig'), kubeconfig(options.apiServer), { mode: 0o600 });
    await writeFile(inside('zone'), fixedZone(options.offsetHours));
  } catch (error) {
    await remove();
    throw error;
  }
  const env = {
    HOME: folder,
    HELM_CACHE_HOME: inside('cache'),
    HELM_CONFIG_HOME: inside('config'),
    HELM_DATA_HOME: inside('data'),
    HELM_PLUGINS: inside('plugins'),
    HELM_REGISTRY_CONFIG: inside('registry.json'),
    HELM_REPOSITORY_CONFIG: inside('repositories.yaml'),
    HELM_REPOSITORY_CACHE: inside('cache'),
    KUBECONFIG: inside('kubeconfig'),
    LANG: 'C',
    TMPDIR: folder,
    TZ: inside('zone'),
  };
  return { folder, env, remove };
}
