/** Freezes the example anew, after a change that is meant: the chart's digest, the lock, and what it all renders to. */
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exampleFolder, goldenFile, goldenOf, openBench, startExampleRegistry } from './example-bed.ts';

const bench = await openBench();
const registry = await startExampleRegistry(bench.folder);
try {
  const network = join(exampleFolder, 'network.yaml');
  const text = await readFile(network, 'utf8');
  await writeFile(network, text.replace(/digest: sha256:[0-9a-f]{64}/, `digest: ${registry.chart.digest}`));
  const served = await bench.copy('served', registry.host);
  await rm(join(served, 'keelson.lock.yaml'), { force: true });
  const locked = await bench.keelson(['lock', '-c', served]);
  if (locked.code !== 0) throw new Error(locked.err);
  console.log(locked.out);
  await copyFile(join(served, 'keelson.lock.yaml'), join(exampleFolder, 'keelson.lock.yaml'));
  const frozen = await bench.copy('frozen');
  const out = join(bench.folder, 'out');
  const rendered = await bench.keelson(['render', '-c', frozen, '--out', out]);
  if (rendered.code !== 0) throw new Error(rendered.err);
  console.log(rendered.out);
  await writeFile(goldenFile, `${JSON.stringify(await goldenOf(join(out, 'example')), null, 2)}\n`);
} finally {
  await registry.close();
  await bench.dispose();
}
