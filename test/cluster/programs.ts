import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pauseBinary } from '../../images/pause.ts';
import { ensureDebian } from '../tools/debian.ts';
import { toolCache } from '../tools/store.ts';
import { ensureTools } from '../tools/tools.ts';

/** Debian packages that a cluster's host needs: container runtime, CNI plugins, registry and network tools. */
export const clusterPackages: readonly string[] = [
  'containerd',
  'runc',
  'containernetworking-plugins',
  'docker-registry',
  'iptables',
  'conntrack',
  'ethtool',
  'iproute2',
  'kmod',
  'mount',
  'openssl',
  'util-linux',
];

const tools = [
  'etcd',
  'kube-apiserver',
  'kubectl',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'coredns',
] as const;

/** The tools that a cluster runs, in the order in which they are best built. */
export const clusterTools: readonly (typeof tools)[number][] = tools;

export type ClusterPrograms = Readonly<Record<(typeof tools)[number] | 'pause', string>>;

export interface ProgramOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** Folder for what the images are built from; it may be removed at any time. */
export function imageCache(env: NodeJS.ProcessEnv): string {
  return join(dirname(toolCache(env)), 'images');
}

/** Paths of everything a cluster runs; what is missing is built or installed first. */
export async function ensurePrograms(options: ProgramOptions): Promise<ClusterPrograms> {
  await ensureDebian(clusterPackages, options);
  const paths = await ensureTools(tools, options);
  const pause = await pauseBinary(imageCache(options.env));
  for (const path of [...Object.values(paths), pause]) {
    if (!existsSync(path)) throw new Error(`${path} is missing although it was built`);
  }
  return { ...paths, pause };
}
