import { cpSync, existsSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { containerdConfig, registryHosts } from './containerd.ts';
import { kubeletConfig, kubeProxyConfig } from './kubelet.ts';
import type { ClusterState, NodeRecord } from './state.ts';

/** What goes into a node's root directory besides the files every node has. */
export interface NodeFilesInput {
  readonly state: ClusterState;
  readonly node: NodeRecord;
  readonly sandboxImage: string;
  readonly snapshotter: 'overlayfs' | 'native';
  /** Texts of the two kubeconfigs. */
  readonly kubeletKubeconfig: string;
  readonly kubeProxyKubeconfig: string;
}

/** Where the tools of the host are seen inside a node. */
export const nodeBin = '/opt/keelson/bin';

const directories = [
  'dev',
  'etc',
  'mnt',
  'old',
  'opt/cni/bin',
  'opt/keelson/bin',
  'proc',
  'root',
  'run',
  'srv',
  'sys',
  'tmp',
  'usr',
];
const stateDirectories = [
  'var/lib/containerd',
  'var/lib/kubelet',
  'var/log',
  'var/tmp',
  'var/cache',
  'etc/cni/net.d',
  'etc/keelson',
];
const hostFiles = [
  'alternatives',
  'ethertypes',
  'group',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'nsswitch.conf',
  'passwd',
  'protocols',
  'rpc',
  'services',
  'ssl/certs',
  'ssl/openssl.cnf',
  'ca-certificates',
  'xattr.conf',
];
const topLinks = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/** Folder of a node's root. */
export function rootOf(node: NodeRecord): string {
  return join(node.directory, 'root');
}

/**
 * Lays out a node's own root directory. The host's /usr shows inside it, everything that can be written is the node's:
 * three nodes share neither /etc, /run, /var nor /opt, as three machines would not.
 */
export function writeNodeFiles(input: NodeFilesInput): void {
  const { state, node } = input;
  const root = rootOf(node);
  for (const path of [...directories, ...stateDirectories]) mkdirSync(join(root, path), { recursive: true });
  for (const path of ['upper', 'work']) mkdirSync(join(node.directory, 'usr', path), { recursive: true });
  for (const name of topLinks) copyTopLink(root, name);
  symlinkSync('../run', join(root, 'var/run'));
  for (const name of hostFiles) {
    const source = join('/etc', name);
    if (existsSync(source))
      cpSync(source, join(root, 'etc', name), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  }
  const file = (path: string, content: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  file('etc/hostname', `${node.name}\n`);
  file(
    'etc/hosts',
    ['127.0.0.1 localhost', ...state.nodes.map((each) => `${each.address} ${each.name}`), ''].join('\n'),
  );
  file('etc/resolv.conf', '# no resolver: nodes have no way out\n');
  file('etc/machine-id', `${sha256Hex(`${state.id}/${node.name}`).slice(0, 32)}\n`);
  file(
    'etc/containerd/config.toml',
    containerdConfig({ sandboxImage: input.sandboxImage, snapshotter: input.snapshotter }),
  );
  const registry = `127.0.0.1:${state.ports.registry}`;
  file(
    `etc/containerd/certs.d/${registry}/hosts.toml`,
    registryHosts(`http://${state.bridge.address}:${state.ports.registry}`),
  );
  file('etc/keelson/kubelet.json', JSON.stringify(kubeletConfig(state, node), null, 2));
  file('etc/keelson/kube-proxy.json', JSON.stringify(kubeProxyConfig(state, node), null, 2));
  file('etc/keelson/kubelet.kubeconfig', input.kubeletKubeconfig);
  file('etc/keelson/kube-proxy.kubeconfig', input.kubeProxyKubeconfig);
  writeCni(node, state, state.cni);
}

function copyTopLink(root: string, name: string): void {
  const source = join('/', name);
  if (!existsSync(source)) return;
  if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source), join(root, name));
  else mkdirSync(join(root, name));
}

/** The host's top directories that are no links into /usr (a system without merged /usr): bound into the node. */
export function separateTopDirectories(): string[] {
  return topLinks.filter((name) => existsSync(join('/', name)) && !lstatSync(join('/', name)).isSymbolicLink());
}

const cniFile = 'etc/cni/net.d/10-keelson-bridge.conflist';

/** Writes the bridge plugin's configuration, or leaves the folder without it. containerd notices the change by itself. */
export function writeCni(node: NodeRecord, state: ClusterState, mode: ClusterState['cni']): void {
  const target = join(rootOf(node), cniFile);
  rmSync(target, { force: true });
  if (mode === 'none') return;
  const bridge = {
    type: 'bridge',
    bridge: 'cni0',
    isGateway: true,
    hairpinMode: true,
    ipam: {
      type: 'host-local',
      ranges: [[{ subnet: node.podCIDR }]],
      routes: [{ dst: '0.0.0.0/0' }],
      dataDir: '/run/cni/addresses',
    },
  };
  const portmap = { type: 'portmap', capabilities: { portMappings: true }, snat: true };
  writeFileSync(
    target,
    JSON.stringify({ cniVersion: '1.0.0', name: `${state.name}-pods`, plugins: [bridge, portmap] }, null, 2),
  );
}
