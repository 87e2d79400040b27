import { startCluster } from '../start.ts';
import { runIdlePods } from './pods.ts';

// A process that owns a cluster: the harness test starts it, and kills it with SIGKILL. It tells its progress line by line.
const [directory, name] = process.argv.slice(2);
if (directory === undefined || name === undefined) throw new Error('usage: owner.ts DIRECTORY NAME');
const cluster = await startCluster({ directory, name, onProgress: (line) => console.log(line) });
await runIdlePods(cluster);
console.log('running');
setInterval(() => undefined, 60_000);
