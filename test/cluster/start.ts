import { statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../constructs/lib/clock.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { buildPauseImage } from '../../images/pause.ts';
import { imageReference, pushImage } from '../../images/push.ts';
import { withLock } from '../tools/lock.ts';
import { adminKubeconfig, createAccounts, type Kubeconfigs } from './accounts.ts';
import { serviceAddress } from './addresses.ts';
import { RunningCluster } from './cluster.ts';
import { type ControlPlaneInput, startApiServer, startControllers, startEtcd } from './controlPlane.ts';
import { destroyCluster } from './destroy.ts';
import { startDns } from './dns.ts';
import { createNodeNetwork } from './network.ts';
import { checkMachine, Node } from './node.ts';
import { writeNodeFiles } from './nodeFiles.ts';
import { registerNodes, waitForReady } from './nodeObjects.ts';
import { createPki } from './pki.ts';
import { defaultName, optionProblems, reserveCluster } from './plan.ts';
import { isAlive } from './processes.ts';
import { type ClusterPrograms, ensurePrograms, imageCache } from './programs.ts';
import { type Reaper, startReaper } from './reaper.ts';
import { registryRef, startRegistry } from './registry.ts';
import { type ClusterState, clusterLock, readState, type StateFile } from './state.ts';
import type { Cluster, ClusterOptions } from './types.ts';

/** File system type number of overlayfs, on which no second overlay can write. */
const overlayMagic = 0x794c7630;

/**
 * Starts a cluster: control plane on the host, nodes in namespaces of their own, one registry for all. It is removed
 * when this process ends, however it ends, unless `keep` is set and the start came to its end.
 * @throws ProblemError for unusable options or a name in use; Error, after everything is removed again, when a part
 * does not come up.
 */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const problems = optionProblems(options);
  if (problems.length > 0) throw new ProblemError(problems.map((message) => ({ reason: 'InvalidOption', message })));
  await checkMachine();
  const programs = await ensurePrograms({ ...options, env: process.env });
  const directory = join(options.directory, options.name ?? defaultName);
  const clock = systemClock;
  return withLock(clusterLock(directory), options.signal === undefined ? {} : { signal: options.signal }, async () => {
    await clearPlace(directory, clock);
    const reaper = startReaper(directory);
    try {
      const file = await reserveCluster(options, clock);
      const cluster = await bringUp(options, programs, file, reaper, clock);
      file.update({ phase: 'running', ...(options.keep === true ? { owner: 'kept' } : {}) });
      if (options.keep === true) await reaper.release();
      return cluster;
    } catch (error) {
      await destroyCluster(directory, clock);
      await reaper.release();
      throw error;
    }
  });
}

/** Removes what a dead owner left; a cluster that runs is not touched. */
async function clearPlace(directory: string, clock: Clock): Promise<void> {
  const state = readState(directory);
  if (state === undefined) return;
  const abandoned = state.owner === 'kept' ? state.phase !== 'running' : !isAlive(state.owner);
  if (!abandoned) {
    throw new ProblemError([
      {
        reason: 'ClusterExists',
        object: state.name,
        message: `a cluster of this name is ${state.phase}`,
        remedy: `remove it first (npm run cluster -- down --name ${state.name}) or choose another name`,
      },
    ]);
  }
  await destroyCluster(directory, clock);
}

async function bringUp(
  options: ClusterOptions,
  programs: ClusterPrograms,
  file: StateFile,
  reaper: Reaper,
  clock: Clock,
): Promise<Cluster> {
  const state = file.current;
  const say = (text: string): void => options.onProgress?.(text);
  const waiting = { clock, ...(options.signal === undefined ? {} : { signal: options.signal }) };
  const pki = await createPki(join(state.directory, 'pki'), [
    ...['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local'],
    ...['localhost', '127.0.0.1', state.bridge.address, serviceAddress],
  ]);
  const accounts = await createAccounts(state, pki);
  writeFileSync(adminKubeconfig(state), accounts.admin, { mode: 0o600 });
  const control: ControlPlaneInput = {
    ...{ file, programs, pki, ...waiting },
    fsync: options.fsync ?? false,
    apiServerFlags: options.apiServerFlags ?? [],
  };
  const overlay = statfsSync(state.directory).type !== overlayMagic;
  const nodes = state.nodes.map(
    (record) => new Node({ file, record, programs: nodePrograms(programs), overlay, ...waiting }),
  );
  const pause = await buildPauseImage(imageCache(process.env));
  const pauseTarget = { registry: registryRef(state), repository: 'keelson/pause' };
  const pauseImage = imageReference(pause, pauseTarget);
  const cluster = new RunningCluster({ file, nodes, programs, pauseImage, control, reaper, clock });
  say(`control plane on ${cluster.apiServer}`);
  await Promise.all([
    startControlPlane(control, accounts),
    startRegistry(file, clock, options.signal).then(() => pushImage(pause, pauseTarget)),
    prepareNodes(state, accounts, pauseImage, overlay),
  ]);
  say(`nodes ${nodes.map((node) => `${node.name} (${node.ip})`).join(', ')}`);
  const access = { kubectl: programs.kubectl, kubeconfig: cluster.kubeconfig, ...waiting };
  const dns = { file, program: programs.coredns, kubeconfig: writeKubeconfig(state, 'dns', accounts.dns), ...waiting };
  await Promise.all([startDns(dns, access), ...nodes.map((node) => node.start())]);
  await registerNodes(access, state.nodes);
  if (state.cni === 'bridge') await waitForReady(access, state.nodes);
  return cluster;
}

function writeKubeconfig(state: ClusterState, name: string, text: string): string {
  const path = join(state.directory, 'pki', `${name}.kubeconfig`);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

async function startControlPlane(control: ControlPlaneInput, accounts: Kubeconfigs): Promise<void> {
  const state = control.file.current;
  await startEtcd(control);
  await startApiServer(control);
  await startControllers(control, {
    manager: writeKubeconfig(state, 'manager', accounts.manager),
    scheduler: writeKubeconfig(state, 'scheduler', accounts.scheduler),
  });
}

async function prepareNodes(
  state: ClusterState,
  accounts: Kubeconfigs,
  sandboxImage: string,
  overlay: boolean,
): Promise<void> {
  for (const node of state.nodes) {
    writeNodeFiles({
      ...{ state, node, sandboxImage },
      snapshotter: overlay ? 'overlayfs' : 'native',
      kubeletKubeconfig: accounts.kubelets[node.name] ?? '',
      kubeProxyKubeconfig: accounts.proxy,
    });
    await createNodeNetwork(
      state,
      node,
      state.nodes.filter((other) => other !== node),
    );
  }
}

function nodePrograms(programs: ClusterPrograms) {
  return { pause: programs.pause, kubelet: programs.kubelet, 'kube-proxy': programs['kube-proxy'] };
}
