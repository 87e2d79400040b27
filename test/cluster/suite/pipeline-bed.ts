import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { labels, systemNamespace } from '../../../constructs/api/constants.ts';
import { ensureTool } from '../../tools/tools.ts';
import { buildImages, buildOwnImage, fillRegistry, pushOwnImage } from '../local/images.ts';
import { commitSpecs, makeRepositories } from '../local/repositories.ts';
import { copySpecs } from '../local/specs.ts';
import { imageCache } from '../programs.ts';
import { startCluster } from '../start.ts';
import type { Cluster } from '../types.ts';
import { type Command, startCommand } from './pipeline-command.ts';
import { type Look, openLook } from './pipeline-look.ts';

const entry = fileURLToPath(new URL('../../../bin/keelson.ts', import.meta.url));

/** A cluster without a pod network, and a user before it: repositories, a key, programs, a home of their own. */
export interface PipelineBed {
  readonly cluster: Cluster;
  readonly look: Look;
  readonly home: string;
  /** Starts `keelson` as a program, as the user would. */
  start(...args: string[]): Command;
  /** Runs `keelson` to its end and answers what it printed. @throws Error when it does not end with 0. */
  keelson(...args: string[]): Promise<string>;
  /** Changes a file of the cluster's folder. */
  edit(path: string, change: (text: string) => string): void;
  /** Writes a file of the cluster's folder; undefined removes it. */
  write(path: string, text: string | undefined): void;
  commit(message: string): Promise<void>;
  /** Makes a key, takes the inventory, locks, publishes and brings the executor into the cluster. */
  prepare(...bootstrap: readonly string[]): Promise<void>;
  /** Commits, publishes, and delivers without following. */
  ship(message: string): Promise<void>;
  /** Number of commits in the rendered repository. */
  published(): number;
  close(): Promise<void>;
}

export interface BedOptions {
  /** False for a cluster that has a network for its pods, and specs without one. */
  readonly network?: boolean;
  /** True for addresses too: the ledger, and MetalLB's controller. They need a network. */
  readonly addresses?: boolean;
}

/** Fills the registry of a cluster; answers the digest of the network's chart, or of none. */
type Supply = (registry: string) => Promise<string>;

/** Builds what the cluster pulls. */
async function supplies({ network = true, addresses = false }: BedOptions): Promise<Supply> {
  const cache = imageCache(process.env);
  if (network) {
    const images = await buildImages(cache, { addresses });
    return (registry) => fillRegistry(registry, images);
  }
  const image = await buildOwnImage(cache);
  return async (registry) => {
    await pushOwnImage(registry, image);
    return `sha256:${'0'.repeat(64)}`;
  };
}

/** Takes the network out of the specs, and the probes with it, whose image is not in the registry then. */
function withoutNetwork(folder: string): void {
  rmSync(join(folder, 'network.yaml'));
  const file = join(folder, 'cluster.yaml');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(file, lines.filter((line) => !/^ {4}probe: /.test(line)).join('\n'));
}

/** Starts the cluster, fills its registry, and leaves everything else to the user. */
export async function pipelineBed(name: string, options: BedOptions = {}): Promise<PipelineBed> {
  const { network = true, addresses = false } = options;
  const home = mkdtempSync(join(tmpdir(), 'keelson-pipeline-'));
  const place = { specs: join(home, 'specs'), rendered: join(home, 'rendered.git') };
  const folder = join(place.specs, 'clusters/local');
  const [cluster, supply, helm] = await Promise.all([
    startCluster({ directory: join(home, 'clusters'), name, cni: network ? 'none' : 'bridge' }),
    supplies(options),
    ensureTool('helm'),
  ]);
  const registry = cluster.registry.hostRef;
  const chartDigest = await supply(registry);
  await makeRepositories(place);
  const facts = { registry, apiServer: new URL(cluster.apiServer).host, chartDigest };
  await copySpecs(place.specs, facts, { addresses });
  if (!network) withoutNetwork(folder);
  mkdirSync(join(home, 'bin'));
  symlinkSync(helm, join(home, 'bin/helm'));
  const env = {
    PATH: `${join(home, 'bin')}:/usr/bin:/bin`,
    HOME: home,
    GIT_CONFIG_NOSYSTEM: '1',
    KUBECONFIG: cluster.kubeconfig,
    KEELSON_SIGNING_KEY_FILE: join(home, 'signing.key'),
    GIT_ASKPASS: join(home, 'git-askpass'),
  };
  const start = (...args: string[]): Command =>
    startCommand([process.execPath, '--disable-warning=ExperimentalWarning', entry, ...args], {
      cwd: place.specs,
      env,
    });
  const look = openLook(cluster, place.rendered);
  const bed: PipelineBed = {
    cluster,
    look,
    home,
    start,
    async keelson(...args) {
      const { code, out, text } = await start(...args).ended;
      if (code !== 0) throw new Error(`keelson ${args.join(' ')} ended with ${code}:\n${text}`);
      return out;
    },
    edit(path, change) {
      const file = join(folder, path);
      const before = readFileSync(file, 'utf8');
      const after = change(before);
      if (after === before) throw new Error(`${path}: the edit changes nothing`);
      writeFileSync(file, after);
    },
    write(path, text) {
      const file = join(folder, path);
      if (text === undefined) return rmSync(file);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    },
    commit: (message) => commitSpecs(place, message),
    async prepare(...bootstrap) {
      await bed.keelson('keys', 'init', '--out', '../signing.key');
      await bed.keelson('inventory');
      await bed.keelson('lock');
      await bed.commit('Add inventory and lock');
      await bed.keelson('publish');
      // What only a test cluster may have, its namespace has to say so itself.
      if (/^ +test[A-Z]/m.test(readFileSync(join(folder, 'cluster.yaml'), 'utf8'))) {
        await cluster.kubectl(['create', 'namespace', systemNamespace]);
        await cluster.kubectl(['label', 'namespace', systemNamespace, `${labels.testCluster}=true`]);
      }
      await bed.keelson('bootstrap', '--trust', '../signing.key.pub', ...bootstrap);
    },
    async ship(message) {
      await bed.commit(message);
      await bed.keelson('publish');
      await bed.keelson('deliver');
    },
    published: () =>
      Number(execFileSync('git', ['-C', place.rendered, 'rev-list', '--count', 'main'], { encoding: 'utf8' }).trim()),
    async close() {
      await look.close();
      await cluster.down();
      rmSync(home, { recursive: true, force: true });
    },
  };
  return bed;
}
