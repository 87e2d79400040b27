import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BuiltImage, buildImage, hostArchitecture } from './build.ts';
import { debianRoot } from './debian.ts';
import { type LayerEntry, treeEntries } from './layer.ts';

/** Packages whose programs entry scripts of network daemons call, beside the daemons' own packages. */
const toolPackages = [
  ...['bash', 'coreutils', 'curl', 'ethtool', 'grep', 'hostname', 'iproute2', 'iptables', 'mawk', 'procps'],
  ...['sed', 'util-linux', 'uuid-runtime'],
];

/** Names that the packages' install scripts would have made as links. */
const alternatives: Readonly<Record<string, string>> = {
  'usr/bin/awk': 'mawk',
  'usr/sbin/ovs-vswitchd': '../lib/openvswitch-switch/ovs-vswitchd',
  'usr/sbin/iptables': 'iptables-nft',
  'usr/sbin/iptables-save': 'iptables-nft-save',
  'usr/sbin/iptables-restore': 'iptables-nft-restore',
};

export interface OvnImageInput {
  /** Debian packages with the daemons; with all they depend on they make the lower layer. */
  readonly packages: readonly string[];
  /** Programs that must be found in the image with all their libraries. */
  readonly programs: readonly string[];
  /** The upper layer: entry scripts. */
  readonly scripts: readonly LayerEntry[];
  /** Folder for unpacked packages and the layout. */
  readonly cache: string;
}

/**
 * The runtime image of OVN and Open vSwitch, made of the distribution's packages without installing them.
 * @throws Error with every program that is missing or lacks a library.
 */
export async function buildOvnImage(input: OvnImageInput): Promise<BuiltImage> {
  const root = await debianRoot([...input.packages, ...toolPackages], input.cache);
  const system = [...(await treeEntries(root)), ...(await systemEntries(root))];
  await checkPrograms(root, input.programs);
  return buildImage({
    layout: join(input.cache, 'layouts', 'ovn'),
    layers: [system, input.scripts],
    config: {
      command: ['bash'],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
      workingDir: '/',
    },
    architecture: hostArchitecture(process.arch),
  });
}

async function systemEntries(root: string): Promise<LayerEntry[]> {
  const present = (path: string): boolean => existsSync(join(root, path));
  const text = (path: string, content: string): LayerEntry => ({ type: 'file', path, mode: 0o644, content });
  const links = Object.entries(alternatives).filter(([path]) => !present(path));
  return [
    ...links.map(([path, target]): LayerEntry => ({ type: 'symlink', path, target })),
    ...[
      text('etc/passwd', 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n'),
      text('etc/group', 'root:x:0:\nnogroup:x:65534:\n'),
      text('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    ].filter((entry) => !present(entry.path)),
    ...['root', 'var/log/ovn', 'var/log/openvswitch', 'etc/ovn', 'etc/openvswitch'].map(
      (path): LayerEntry => ({ type: 'directory', path, mode: 0o755 }),
    ),
    { type: 'directory', path: 'tmp', mode: 0o1777 },
    ...(present('run') ? [] : [{ type: 'directory', path: 'run', mode: 0o755 } as const]),
    ...(present('var/run') ? [] : [{ type: 'symlink', path: 'var/run', target: '../run' } as const]),
  ];
}

async function checkPrograms(root: string, programs: readonly string[]): Promise<void> {
  const loader = await findLoader(root);
  const libraries = (await readdir(join(root, 'usr', 'lib'))).filter((name) => name.endsWith('-linux-gnu'));
  const path = libraries.map((name) => join(root, 'usr', 'lib', name)).join(':');
  const problems: string[] = [];
  for (const program of programs) {
    const candidates = ['usr/sbin', 'usr/bin'].map((folder) => join(folder, program));
    const linked = candidates.map((name) =>
      alternatives[name] === undefined ? name : join(name, '..', alternatives[name]),
    );
    const found = linked.map((name) => join(root, name)).find((name) => existsSync(name));
    if (found === undefined) problems.push(`${program}: not in the packages`);
    else problems.push(...(await missingLibraries(loader, path, found)).map((name) => `${program}: needs ${name}`));
  }
  if (problems.length > 0) throw new Error(`the OVN image would not work:\n${problems.join('\n')}`);
}

async function findLoader(root: string): Promise<string> {
  for (const folder of ['usr/lib64', 'usr/lib']) {
    const name = (await readdir(join(root, folder))).find((each) => each.startsWith('ld-linux'));
    if (name !== undefined) return join(root, folder, name);
  }
  throw new Error(`no dynamic loader in ${root}`);
}

async function missingLibraries(loader: string, path: string, program: string): Promise<string[]> {
  const list = ['--inhibit-cache', '--library-path', path, '--list', program];
  try {
    const { stdout } = await promisify(execFile)(loader, list, { timeout: 30_000 });
    return [...stdout.matchAll(/(\S+) => not found/g)].map(([, name]) => name ?? '');
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const [, name] = /error while loading shared libraries: ([^:]+):/.exec(stderr ?? '') ?? [];
    if (name !== undefined) return [name];
    throw error;
  }
}
