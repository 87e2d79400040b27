/**
 * `npm run quickstart`: the main job on a local cluster. Every step that a user would take is the user's own command, run
 * as a program; the rest (cluster, images, repositories) is what a user already has.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../constructs/lib/clock.ts';
import { formatProblems, ProblemError } from '../../constructs/lib/problems.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { destroyCluster } from '../../test/cluster/destroy.ts';
import { buildFluxImages } from '../../test/cluster/flux/images.ts';
import { claimAddress, untilServed } from '../../test/cluster/local/addresses.ts';
import { buildImages, fillRegistry } from '../../test/cluster/local/images.ts';
import { commitSpecs, makeRepositories } from '../../test/cluster/local/repositories.ts';
import { copySpecs } from '../../test/cluster/local/specs.ts';
import { imageCache } from '../../test/cluster/programs.ts';
import { startCluster } from '../../test/cluster/start.ts';
import { clusterLock, clustersDirectory, listStates } from '../../test/cluster/state.ts';
import type { Cluster } from '../../test/cluster/types.ts';
import { withLock } from '../../test/tools/lock.ts';
import { ensureTool } from '../../test/tools/tools.ts';
import { nameFlux, startFlux } from './flux.ts';
import { type Place, quickstartName, quickstartPlace } from './place.ts';
import { writePrograms } from './programs.ts';
import { runProgram } from './run.ts';
import { type Say, speak } from './say.ts';
import { closingWords, type QuickstartCourier } from './words.ts';

const root = clustersDirectory(process.env);
const readyLimitMs = 15 * 60_000;
/** Of what is told while something is waited for. */
const lineLength = 240;

async function down(place: Place, say: Say): Promise<void> {
  await say.step('Removing the cluster and everything the quickstart made', async () => {
    for (const { name, directory } of listStates(root).filter((state) => state.name === quickstartName)) {
      await withLock(clusterLock(directory), {}, () => destroyCluster(directory, systemClock));
      say.note(`cluster ${name} is down`);
    }
    await rm(place.root, { recursive: true, force: true });
    say.note(`removed ${place.root}`);
  });
}

async function ground(courier: QuickstartCourier, say: Say, signal: AbortSignal) {
  const cache = imageCache(process.env);
  const onProgress = (line: string): void => say.note(line);
  const cluster = await say.step('Starting a cluster of three nodes, without any network for pods', () =>
    startCluster({ name: quickstartName, cni: 'none', directory: root, keep: true, onProgress, signal }),
  );
  const title = "Building the images of Keelson, the OVN runtime and MetalLB's controller, without an engine";
  const images = await say.step(title, () => buildImages(cache, { addresses: true, onProgress, signal }));
  const chartDigest = await say.step('Filling the local registry with images and the chart', () =>
    fillRegistry(cluster.registry.hostRef, images),
  );
  const helm = await say.step('Making sure of Helm', () => ensureTool('helm', { onProgress, signal }));
  if (courier === 'none') return { cluster, chartDigest, helm, flux: undefined };
  const flux = await say.step('Building the controllers of Flux and their images, once for this machine', () =>
    buildFluxImages(cache, { onProgress, signal }),
  );
  return { cluster, chartDigest, helm, flux };
}

/** Releases that are waited for, beside the network. */
const releases = { demo: 'manifests-demo', metallb: 'manifests-metallb', addresses: 'addresses' } as const;

/** How far network and releases are, in a line each for people, and whether the wait is over. */
async function look(cluster: Cluster): Promise<{ done: boolean; lines: readonly string[] }> {
  const path = '{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\\n"}{end}';
  const conditions = (namespace: string, ...object: string[]): Promise<string> =>
    cluster.kubectl(['-n', namespace, 'get', ...object, '-o', `jsonpath=${path}`]);
  const told = await Promise.all([
    conditions('kube-system', 'koi', 'local').then((text) => ['network', text] as const),
    ...Object.entries(releases).map(async ([what, name]) => {
      return [what, await conditions('keelson-system', 'release', name)] as const;
    }),
  ]);
  const ready = (text: string): string => text.split('\n').find((each) => each.startsWith('Ready=')) ?? 'Ready=?';
  return {
    done: told.every(([, text]) => ready(text).startsWith('Ready=True')),
    lines: told.map(([what, text]) => `${what.padEnd(9)}  ${ready(text)}`),
  };
}

async function untilReady(cluster: Cluster, say: Say, signal: AbortSignal): Promise<void> {
  const told = new Set<string>();
  await waitFor({
    what: 'the network, the demo and the addresses to be Ready',
    limitMs: readyLimitMs,
    intervalMs: 3_000,
    clock: systemClock,
    signal,
    async probe(saw) {
      const { done, lines } = await look(cluster);
      saw(lines.join('; '));
      for (const line of lines.filter((each) => !told.has(each))) say.note(line.slice(0, lineLength));
      for (const line of lines) told.add(line);
      return done ? true : undefined;
    },
  });
}

/** Claims an address, which no file in Git may do, and answers the one that the Service in the specs has of it. */
async function claim(cluster: Cluster, say: Say, signal: AbortSignal): Promise<string> {
  await claimAddress(cluster);
  const { ip } = await untilServed(cluster, { signal });
  say.note(`Service demo/web has ${ip}`);
  return ip;
}

/** Answers the address that the application has. */
async function up(place: Place, courier: QuickstartCourier, say: Say, signal: AbortSignal): Promise<string> {
  const { cluster, chartDigest, helm, flux } = await ground(courier, say, signal);
  const { env, git } = await say.step('Writing the specs into a Git repository', async () => {
    const apiServer = new URL(cluster.apiServer).host;
    await mkdir(place.keys, { recursive: true, mode: 0o700 });
    await makeRepositories(place);
    const facts = { registry: cluster.registry.hostRef, apiServer, chartDigest };
    const files = await copySpecs(place.specs, facts, { addresses: true, signal });
    for (const file of files) say.note(file);
    const served = flux === undefined ? undefined : await nameFlux(cluster, place);
    await commitSpecs(place, 'Add the local cluster');
    const tools = { kubectl: cluster.kubectlPath, helm, kubeconfig: cluster.kubeconfig };
    const askpass = served === undefined ? {} : { askpass: served.askpass };
    return { env: await writePrograms(place, { ...tools, ...askpass }), git: served };
  });
  const keelson = (title: string, ...args: string[]): Promise<void> =>
    say.step(`${title}: keelson ${args.join(' ')}`, () =>
      runProgram([join(place.programs, 'keelson'), ...args], {
        cwd: place.specs,
        env: { ...process.env, ...env },
        signal,
        onLine: (line) => say.note(line),
      }),
    );
  await keelson('Making a signing key', 'keys', 'init', '--out', join(place.keys, 'signing.key'));
  await keelson('Taking the facts about the nodes', 'inventory');
  await keelson('Resolving chart and images to digests', 'lock');
  await commitSpecs(place, 'Add inventory and lock');
  await keelson('Rendering, signing and committing', 'publish');
  const trust = ['--trust', join(place.keys, 'signing.key.pub')];
  // Flux comes after the network that it needs; the executor and `deliver` need none.
  const before = flux === undefined ? [] : ['--no-courier'];
  await keelson('Bringing the executor into the cluster', 'bootstrap', ...trust, ...before);
  await keelson('Delivering what was published', 'deliver');
  await say.step('Waiting until everything was looked at', () => untilReady(cluster, say, signal));
  await keelson('What was seen', 'status');
  const ip = await say.step('Claiming an address for the application, as a tenant', () => claim(cluster, say, signal));
  if (flux === undefined || git === undefined) return ip;
  const bootstrap = (): Promise<void> => keelson('Pointing Flux at the published tree', 'bootstrap');
  await startFlux(cluster, { images: flux, git, say, bootstrap });
  return ip;
}

function courierOf(text: string): QuickstartCourier {
  if (text === 'none' || text === 'flux') return text;
  throw new TypeError(`--courier ${text}: give none (the default) or flux`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { down: { type: 'boolean', default: false }, courier: { type: 'string', default: 'none' } },
  });
  const courier = courierOf(values.courier);
  const place = quickstartPlace(process.env);
  const began = performance.now();
  const say = speak(
    (line) => process.stderr.write(`${line}\n`),
    () => performance.now(),
  );
  const abort = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => abort.abort(new Error(`stopped by ${name}`)));
  const seconds = (): string => `${Math.round((performance.now() - began) / 1000)} s`;
  if (values.down) {
    await down(place, say);
    process.stderr.write(`down in ${seconds()}\n`);
    return;
  }
  const address = await up(place, courier, say, abort.signal);
  process.stdout.write(closingWords(place, courier, address));
  process.stderr.write(`up in ${seconds()}\n`);
}

try {
  await main();
} catch (error) {
  const text =
    error instanceof ProblemError
      ? formatProblems(error.problems)
      : error instanceof Error
        ? error.message
        : String(error);
  process.stderr.write(
    `quickstart: ${text}\nquickstart: what was started stays for a look; npm run quickstart -- --down removes it\n`,
  );
  process.exitCode = 1;
}
