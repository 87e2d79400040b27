import { digestOf, sha256Digest } from '../../constructs/lib/digest.ts';
import { formatProblems } from '../../constructs/lib/problems.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import type { ClusterFiles } from '../../renderer/load/source.ts';
import { renderCluster } from '../../renderer/render.ts';

/** Prints one digest over a rendered tree. Arguments: the folder, and `reversed` to hand over the files the other way round. */
const [folder = '', order = ''] = process.argv.slice(2);
const { source } = await readClusterFolder(folder, 'clusters/plain');
const files = order === 'reversed' ? new Map([...source.files].reverse()) : source.files;
const shuffled: ClusterFiles = { ...source, files };
const outcome = await renderCluster({ source: shuffled, domains: [], keelson: '0.0.0-test' });
if (!outcome.ok) throw new Error(formatProblems(outcome.problems));
const list = [...outcome.rendered.tree].map(([path, bytes]) => [path, sha256Digest(bytes)]);
process.stdout.write(digestOf(list));
