import { Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../../constructs/lib/clock.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import { formatProblems, ProblemError } from '../../constructs/lib/problems.ts';
import { withLock } from '../tools/lock.ts';
import { destroyCluster } from './destroy.ts';
import { defaultName } from './plan.ts';
import { startCluster } from './start.ts';
import { type CniMode, clusterLock, clustersDirectory, listStates } from './state.ts';
import { clusterTable } from './status.ts';

const root = clustersDirectory(process.env);

function number(text: string): number {
  if (!/^[0-9]+$/.test(text)) throw new InvalidArgumentError('give a number');
  return Number(text);
}

function cniMode(text: string): CniMode {
  if (text !== 'none' && text !== 'bridge') throw new InvalidArgumentError('give none or bridge');
  return text;
}

async function up(options: { name: string; cni: CniMode; nodes: number }): Promise<void> {
  const began = performance.now();
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => abort.abort(new Error(`stopped by ${signal}`)));
  }
  const cluster = await startCluster({
    ...options,
    directory: root,
    keep: true,
    onProgress: (line) => console.error(line),
    signal: abort.signal,
  });
  console.error(`up in ${formatDuration(Math.round((performance.now() - began) / 100) * 100)}`);
  console.log(
    `kubeconfig  ${cluster.kubeconfig}\nregistry    ${cluster.registry.hostRef}\nkubectl     ${cluster.kubectlPath}`,
  );
}

async function down(options: { name: string; all?: boolean }): Promise<void> {
  const states = listStates(root).filter((state) => options.all === true || state.name === options.name);
  if (states.length === 0) console.error(options.all === true ? 'no cluster here' : `no cluster ${options.name} here`);
  for (const { name, directory } of states) {
    await withLock(clusterLock(directory), {}, () => destroyCluster(directory, systemClock));
    console.error(`${name} is down`);
  }
}

const program = new Command('cluster').description('A local cluster of real nodes in network namespaces.');
program
  .command('up')
  .description('start a cluster that runs until it is taken down')
  .option('--name <name>', 'a DNS label', defaultName)
  .option('--cni <mode>', 'none: only pods on the host network; bridge: a network for pods', cniMode, 'none')
  .option('--nodes <count>', 'number of nodes', number, 3)
  .action(up);
program
  .command('down')
  .description('remove a cluster and everything it left')
  .option('--name <name>', 'a DNS label', defaultName)
  .option('--all', 'every cluster of this user')
  .action(down);
program
  .command('status')
  .description('list clusters, their nodes and what runs')
  .action(() => console.log(clusterTable(listStates(root), systemClock.now())));

try {
  await program.parseAsync();
} catch (error) {
  console.error(
    error instanceof ProblemError ? formatProblems(error.problems) : error instanceof Error ? error.message : error,
  );
  process.exitCode = 1;
}
