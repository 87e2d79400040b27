import { rootCertificates } from 'node:tls';
import type { ImageConfig } from './build.ts';
import type { LayerEntry } from './layer.ts';
import { libraryEntries } from './libraries.ts';

/** The account that Keelson's containers run as. */
export const unprivilegedUser = 65532;

/**
 * The environment of the program in its image. Its heap is bounded as a pod's limit of 512 MiB would bound it, wherever it
 * runs, and so it is collected sooner; the young generation, which answers fill in no time, stays small.
 */
export const imageEnvironment = {
  PATH: '/bin',
  HOME: '/tmp',
  SSL_CERT_DIR: '/etc/ssl/certs',
  NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=8',
} as const;

/** How Keelson's own image runs: without rights, and without a shell to run anything else. */
export const programConfig: ImageConfig = {
  entrypoint: ['/keelson'],
  user: `${unprivilegedUser}:${unprivilegedUser}`,
  env: imageEnvironment,
  workingDir: '/',
};

/** Tells Node that a file without an ending is an ES module. */
export const moduleMark: LayerEntry = {
  type: 'file',
  path: 'package.json',
  mode: 0o644,
  content: '{"type":"module"}\n',
};

/**
 * The lowest layer of Keelson's image: the pinned Node with the libraries it needs, the certificate authorities that
 * this Node trusts, accounts and /tmp. `node` is the path of the pinned binary.
 */
export async function nodeLayer(node: string): Promise<LayerEntry[]> {
  const id = unprivilegedUser;
  const text = (path: string, content: string): LayerEntry => ({ type: 'file', path, mode: 0o644, content });
  return [
    { type: 'file', path: 'bin/node', mode: 0o755, source: node },
    ...(await libraryEntries([node])),
    text('etc/passwd', `root:x:0:0:root:/root:/sbin/nologin\nkeelson:x:${id}:${id}:keelson:/tmp:/sbin/nologin\n`),
    text('etc/group', `root:x:0:\nkeelson:x:${id}:\n`),
    text('etc/nsswitch.conf', 'hosts: files dns\n'),
    text('etc/ssl/certs/ca-certificates.crt', `${rootCertificates.join('\n')}\n`),
    { type: 'directory', path: 'tmp', mode: 0o1777 },
  ];
}
