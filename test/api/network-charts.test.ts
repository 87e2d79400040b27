// time limit: 420s
/**
 * Whole charts, from the archive to workloads that are ready: controllers, scheduler and fake kubelets take part. Further
 * archives can be named in KEELSON_CHART_ARCHIVES, separated by commas; nothing of them is kept.
 */
import { readFile } from 'node:fs/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { InstallationSpecInput } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { readTarGz } from '../../constructs/lib/tar.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { packageChart } from '../charts/build.ts';
import {
  bypass,
  changes,
  gatesBypassed,
  type Loose,
  networkBed,
  paths,
  payloadMutations,
  type Workshop,
  workshop,
} from './network-bed.ts';
import { type ChartPin, networkRelease } from './network-folder.ts';
import { orderProblems, phaseOrder } from './network-log.ts';
import { craneShelf } from './network-shelf.ts';

const archivesVariable = 'KEELSON_CHART_ARCHIVES';

const test = suite<{ shop: Workshop }>('network charts');

test.before(async (context) => {
  context.shop = await workshop(craneShelf);
});
test.after(({ shop }) => shop.close());

const external = { external: { northbound: 'tcp:192.0.2.1:6641', southbound: 'tcp:192.0.2.1:6642' } } as const;

/** What a spec says for each mode. */
const modes: Readonly<Record<string, Partial<InstallationSpecInput>>> = {
  full: { mode: 'full' },
  centralOnly: { mode: 'centralOnly' },
  nodeNetworking: { mode: 'nodeNetworking', ...external },
};

async function shelve(shop: Workshop, archive: Uint8Array): Promise<ChartPin> {
  const files = await readTarGz(archive);
  const file = files.find(({ path }) => /^[^/]+\/Chart\.yaml$/.test(path));
  const chart = parseYaml(Buffer.from(file?.bytes ?? []).toString('utf8'), 'Chart.yaml').documents[0]?.value;
  if (!isObject(chart)) throw new Error('the archive holds no Chart.yaml');
  const appVersion = String(chart.appVersion);
  await shop.shelf.putChart(`v${appVersion}`, archive);
  return { tag: `v${appVersion}`, digest: sha256Digest(archive), appVersion };
}

/** Applies one mode of a chart to a cluster of its own. */
async function install(shop: Workshop, chart: ChartPin, mode: string): Promise<void> {
  const bed = await networkBed(shop, { chart, with: ['controllers', 'scheduler', 'kwok'] });
  try {
    const rendered = await bed.render({ spec: modes[mode] ?? {} });
    const { index } = networkRelease(rendered);
    const counts = index.content.phases.map((phase) => `${phase.name} ${phase.objects.length}`);
    const total = index.content.phases.flatMap(({ objects }) => objects).length;
    const hooks = index.provenance.filteredHooks.length;
    console.log(
      `${chart.appVersion} ${chart.digest} ${mode}: ${total} objects, ${total + hooks} with hooks (${counts})`,
    );
    await bed.deliver(rendered);
    const executor = await bed.executor(bypass);
    const release = await bed.until(paths.release, 'the release to be through', gatesBypassed, 120_000);
    await bed.until(
      paths.installation,
      'the version to be observed',
      (object) => object.status.observedVersion === chart.appVersion,
    );
    const { log } = executor.plan;
    assert.equal(orderProblems(log), []);
    assert.equal(
      phaseOrder(log),
      index.content.phases.map(({ name }) => name),
    );
    assert.is(payloadMutations(log).length, total);
    assert.ok(payloadMutations(log).every(({ status }) => status === 201));
    assert.is(release.status.plan.counts.created, total);
    const definitions = await bed.get('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
    const theirs = definitions.items.filter((crd: Loose) => crd.spec.group === 'kubeovn.io');
    const conditions = theirs.map((crd: Loose) => crd.status.conditions.find((c: Loose) => c.type === 'Established'));
    assert.ok(conditions.every((c: Loose) => c?.status === 'True'));
    console.log(`${chart.appVersion} ${mode}: first pass ${JSON.stringify(byVerb(executor.plan.counts()))}`);
    const seen = (): number => executor.plan.count({ verb: 'list', resource: 'serviceaccounts' });
    const settled = seen();
    await bed.until(paths.release, 'the status to settle', () => seen() > settled + 1);
    executor.plan.resetLog();
    await bed.until(paths.release, 'three more passes', () => seen() >= 3);
    assert.equal(
      changes(log).map(({ verb, path }) => `${verb} ${path}`),
      [],
    );
    console.log(`${chart.appVersion} ${mode}: second pass ${JSON.stringify(byVerb(executor.plan.counts()))}`);
  } finally {
    await bed.close();
  }
}

/** Requests by verb, dry runs apart. */
function byVerb(counts: Readonly<Record<string, number>>): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [key, n] of Object.entries(counts)) {
    const verb = `${key.split(' ')[0]}${key.endsWith('(dry run)') ? ' (dry run)' : ''}`;
    sums[verb] = (sums[verb] ?? 0) + n;
  }
  return sums;
}

/** Modes that a chart can render; the others are refused by name. */
async function supported(shop: Workshop, chart: ChartPin): Promise<string[]> {
  const bed = await networkBed(shop, { chart });
  try {
    const found: string[] = [];
    for (const [mode, spec] of Object.entries(modes)) {
      const outcome = await bed.tryRender({ spec });
      if (outcome.ok) found.push(mode);
      else assert.equal([...new Set(outcome.problems.map(({ reason }) => reason))], ['ChartLacksMode']);
    }
    return found;
  } finally {
    await bed.close();
  }
}

for (const variant of ['new', 'old'] as const)
  test(`the test chart, ${variant} shape, in full`, async ({ shop }) => {
    const chart = await shelve(shop, (await packageChart(variant)).bytes);
    assert.equal(await supported(shop, chart), variant === 'new' ? Object.keys(modes) : ['full']);
    await install(shop, chart, 'full');
  });

for (const file of (process.env[archivesVariable] ?? '').split(',').filter((name) => name !== ''))
  test(`the archive ${file}, in every mode that it has`, async ({ shop }) => {
    const chart = await shelve(shop, await readFile(file));
    const found = await supported(shop, chart);
    assert.ok(found.includes('full'));
    for (const mode of found) await install(shop, chart, mode);
  });

test.run();
